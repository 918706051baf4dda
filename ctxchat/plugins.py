"""Tools, strategies, context providers and transforms from installed packages, ours and anyone's, by entry point.

A plug-in that cannot be loaded is named and left out; it never stops the program. What is in a group is up to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Literal

import msgspec

Group = Literal["ctxchat.tools", "ctxchat.strategies", "ctxchat.providers", "ctxchat.transforms"]

OURS = "ctxchat"
"""The package whose entries win when two have one name."""


class Plugins(msgspec.Struct, frozen=True):
    """Factories by name, and what went wrong with others, in sentences."""

    factories: dict[str, Callable[..., Any]]
    problems: tuple[str, ...] = ()


def load_plugins(group: Group) -> Plugins:
    """Every entry of a group, loaded. Takes some ten milliseconds: not for the way to the first frame."""
    factories: dict[str, Callable[..., Any]] = {}
    problems: list[str] = []
    found = sorted(entry_points(group=group), key=lambda entry: (_package(entry) == OURS, entry.name))
    for entry in found:
        try:
            factory = entry.load()
        except Exception as problem:  # foreign code: whatever it raises is its fault, not our end
            problems.append(
                f"Plug-in {entry.name} of {_package(entry)} was left out: {type(problem).__name__}: {problem}"
            )
            continue
        if not callable(factory):
            problems.append(f"Plug-in {entry.name} of {_package(entry)} was left out: {entry.value} cannot be called.")
            continue
        factories[entry.name] = factory
    return Plugins(factories, tuple(problems))


def _package(entry: Any) -> str:
    return entry.dist.name if entry.dist else "?"
