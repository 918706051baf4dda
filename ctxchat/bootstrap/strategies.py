"""Every strategy by name: the built-in ones, and those of installed packages (entry points `ctxchat.strategies`).

A plug-in's entry is a callable that takes the planning options and returns a strategy.
"""

from __future__ import annotations

from ctxchat.agent.planner import Registry
from ctxchat.core.strategies.base import Strategy
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.plugins import Plugins, load


def with_plugins(plugins: Plugins | None = None) -> Registry:
    """A registry of all strategies. Installed plug-ins are looked up the first time a plan is made, not before."""
    found: list[Plugins] = [plugins] if plugins else []

    def registry(options: PlanOptions) -> dict[str, Strategy]:
        if not found:
            found.append(load("ctxchat.strategies"))
        ours = builtin_strategies(options)
        theirs = {name: made(options) for name, made in found[0].factories.items() if name not in ours}
        return theirs | ours

    return registry
