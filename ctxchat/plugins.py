"""Loads tools, strategies, context providers and transforms from installed packages, ctxchat and others, by entry point.

A plug-in that cannot be loaded is reported and left out; it never stops the program. This module does not know what a group
holds.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Literal

import msgspec

Group = Literal["ctxchat.tools", "ctxchat.strategies", "ctxchat.providers", "ctxchat.transforms"]

OURS = "ctxchat"
"""The package whose entry counts where two have the same name."""


class Plugins(msgspec.Struct, frozen=True):
    """Factories by name, and sentences about plug-ins that were left out."""

    factories: dict[str, Callable[..., Any]]
    problems: tuple[str, ...] = ()


def load_plugins(group: Group) -> Plugins:
    """Load all entries of a group. Takes about 10 ms: not to be called before the first frame."""
    factories: dict[str, Callable[..., Any]] = {}
    problems: list[str] = []
    entries = sorted(entry_points(group=group), key=lambda entry: (_package(entry) == OURS, entry.name))
    for entry in entries:
        try:
            factory = entry.load()
        except Exception as problem:  # foreign code may raise anything, and must not end the program
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
