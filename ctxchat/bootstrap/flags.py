"""The options of the command line as a value, and the settings in force with them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from ctxchat.config import effective, paths
from ctxchat.config.consistency import for_agent
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.core.errors import UsageError
from ctxchat.core.permissions import Mode
from ctxchat.core.tool_names import is_listed


class Flags(msgspec.Struct, frozen=True):
    """The common options as given; empty or 0 where they were not."""

    model: str = ""
    api_base: str = ""
    api_key_env: str = ""
    window: int = 0
    config: str = ""
    session: str = ""
    json: bool = False
    permissions: str = ""
    max_rounds: int = 0
    cwd: str = ""
    log: str = ""


def settings_from(flags: Flags, workspace: Path) -> effective.Loaded:
    """The settings with the flags on top. Raises UsageError for a settings file that was named and is not there."""
    named = paths.expanded(flags.config) if flags.config else None
    if named is not None and not named.is_file():
        raise UsageError(f"{flags.config}: there is no such settings file.", "Without --config your own is used.")
    given = {"model": flags.model, "permissions.mode": flags.permissions}
    return effective.load_settings(workspace, config=named, flags={key: value for key, value in given.items() if value})


def in_force(settings: Settings, flags: Flags, name: str | None = None) -> tuple[Settings, AgentSettings]:
    """The settings for an agent (None: the one that the settings name; empty: the usual one), and its own settings alone. Whoever
    needs the settings of an agent asks here.

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
    """A sentence for each tool that the agent names and that does not exist."""
    missing = [name for name in agent.tools or () if not any(is_listed(tool, [name]) for tool in there)]
    return [f"The agent's tool {name} is left out: there is no tool of that name." for name in missing]
