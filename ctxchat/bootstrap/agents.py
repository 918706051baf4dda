"""The settings as the chosen agent sees them. What the command line says stands above an agent, what a file says below it."""

from __future__ import annotations

from typing import cast

import msgspec

from ctxchat.bootstrap.flags import Flags
from ctxchat.config.consistency import for_agent
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.core.permissions import Mode


def in_force(settings: Settings, flags: Flags, name: str | None = None) -> tuple[Settings, AgentSettings]:
    """The settings for an agent (None: the one the settings name; empty: the usual one), and what is its alone. The one resolver:
    whoever needs the settings of an agent asks here.

    Raises UsageError for an unknown name.
    """
    resolved, agent = for_agent(settings, name)
    if flags.model:
        resolved = msgspec.structs.replace(resolved, model=flags.model)
    if flags.permissions:
        mode = cast("Mode", flags.permissions)
        resolved = msgspec.structs.replace(
            resolved, permissions=msgspec.structs.replace(resolved.permissions, mode=mode)
        )
    return resolved, agent


def unknown_tools(agent: AgentSettings, there: list[str]) -> list[str]:
    """A sentence for each tool the agent names that nobody offers."""
    missing = [name for name in agent.tools or () if name not in there]
    return [f"The agent's tool {name} is left out: there is no tool of that name." for name in missing]
