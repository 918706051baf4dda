"""Loads what installed packages add, by entry point: tools, context providers, transforms and strategies.

An entry is a function. `ctxchat.tools`: takes nothing, returns a ToolPort. `ctxchat.providers`: takes the workspace's path,
returns a ContextProvider. `ctxchat.transforms`: takes nothing, returns a Transform. `ctxchat.strategies`: takes PlanOptions,
returns a Strategy. A faulty one is reported and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ctxchat.agent.compaction.planner import Registry
from ctxchat.core.ports import ContextProvider, ToolPort
from ctxchat.core.strategies.base import Strategy
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.view import Transform
from ctxchat.plugins import Group, Plugins, load_plugins


def with_plugins(plugins: Plugins | None = None) -> Registry:
    """A registry of all strategies. Installed plug-ins are looked up the first time a plan is made, not before."""
    found: list[Plugins] = [plugins] if plugins else []

    def registry(options: PlanOptions) -> dict[str, Strategy]:
        if not found:
            found.append(load_plugins("ctxchat.strategies"))
        ours = builtin_strategies(options)
        theirs = {name: made(options) for name, made in found[0].factories.items() if name not in ours}
        return theirs | ours

    return registry


class Extensions:
    """The plug-ins of one session, loaded when first needed. `problems` are sentences about those that were left out."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def tools(self, taken: Sequence[str]) -> list[ToolPort]:
        """Tools of other packages whose name is not taken."""
        made = self.make_all("ctxchat.tools", lambda factory: factory())
        return [tool for tool in made.values() if tool.spec.name not in taken]

    def providers(self, names: Sequence[str], workspace: Path) -> dict[str, ContextProvider]:
        """The named context providers, by name."""
        return self.make_all("ctxchat.providers", lambda factory: factory(workspace), names)

    def transforms(self, names: Sequence[str]) -> list[Transform]:
        """The named transforms, in the order of the names."""
        made = self.make_all("ctxchat.transforms", lambda factory: factory(), names) if names else {}
        return [made[name] for name in names if name in made]

    def make_all(
        self, group: Group, make: Callable[[Callable[..., Any]], Any], names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The objects that the functions of a group make, by name; only the named ones, if `names` is given."""
        found = load_plugins(group)
        self.problems += found.problems
        made: dict[str, Any] = {}
        for name, factory in found.factories.items():
            if names is not None and name not in names:
                continue
            try:
                made[name] = make(factory)
            except Exception as problem:  # foreign code
                self.problems.append(f"Plug-in {name} was left out: {type(problem).__name__}: {problem}")
        return made


def broken_plugins(workspace: Path) -> list[str]:
    """A sentence for each installed plug-in that cannot be loaded or made."""
    makes: dict[Group, Callable[[Callable[..., Any]], Any]] = {
        "ctxchat.tools": lambda factory: factory(),
        "ctxchat.strategies": lambda factory: factory(PlanOptions()),
        "ctxchat.providers": lambda factory: factory(workspace),
        "ctxchat.transforms": lambda factory: factory(),
    }
    extensions = Extensions()
    for group, make in makes.items():
        extensions.make_all(group, make)
    return extensions.problems
