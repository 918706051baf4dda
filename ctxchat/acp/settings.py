"""Describes what an editor can set in a session (permission mode and model) as the protocol's config options and session modes,
and converts the editor's MCP servers to our settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Literal, get_args

from acp.schema import (
    AcpMcpServer,
    HttpMcpServer,
    McpServerStdio,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    SseMcpServer,
)

from ctxchat.agent.session import Session
from ctxchat.config.schema import McpSettings
from ctxchat.core.errors import UsageError
from ctxchat.core.permissions import Mode
from ctxchat.core.sanitize import clean
from ctxchat.presentation.modes import MODES

MODE: Literal["mode"] = "mode"
MODEL: Literal["model"] = "model"
"""Ids of our two options, which are also the protocol's names of their categories."""

ConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean

MAX_SERVER_NAME_CHARS = 24
"""Most characters of a server's name: the names of its tools begin with it, and may have at most 64."""

EditorServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


def mode_of(id: str) -> Mode:
    """The permission mode of that name. Raises UsageError."""
    for mode in MODES:
        if mode == id:
            return mode
    raise UsageError(f"There is no mode {clean(id)!r}.", f"There are {', '.join(get_args(Mode))}.")


def modes(session: Session) -> SessionModeState:
    """The permission modes, and the one in force."""
    rows = [SessionMode(id=id, name=name, description=about) for id, name, about in _mode_rows()]
    return SessionModeState(current_mode_id=session.permissions.mode, available_modes=rows)


def config_options(session: Session, models: Collection[str]) -> list[ConfigOption]:
    """The options for mode and model; `models` can be chosen in addition to the one in use."""
    current = session.context_usage.model
    names = dict.fromkeys([current, *models])
    return [
        _select(MODE, "Permissions", session.permissions.mode, _mode_rows()),
        _select(MODEL, "Model", current, [(name, clean(name), "") for name in names]),
    ]


def _mode_rows() -> list[tuple[str, str, str]]:
    """Id, name and description of each permission mode."""
    return [(id, id.replace("-", " ").capitalize(), about) for id, about in MODES.items()]


def _select(
    id: Literal["mode", "model"], name: str, value: str, rows: Iterable[tuple[str, str, str]]
) -> SessionConfigOptionSelect:
    options = [SessionConfigSelectOption(value=v, name=n, description=about or None) for v, n, about in rows]
    return SessionConfigOptionSelect(type="select", id=id, name=name, category=id, current_value=value, options=options)


def servers(offered: Sequence[EditorServer], known: Mapping[str, McpSettings]) -> dict[str, McpSettings]:
    """The editor's MCP servers as our settings, renamed where a `known` server has the same name. Raises UsageError for a kind
    that ctxchat cannot connect to."""
    result: dict[str, McpSettings] = {}
    for server in offered:
        name = _free_name(server.name, {*known, *result})
        match server:
            case McpServerStdio(command=command, args=args, env=env):
                result[name] = McpSettings(command=command, args=tuple(args), env={e.name: e.value for e in env})
            case HttpMcpServer(url=url, headers=headers):
                result[name] = McpSettings(url=url, headers={h.name: h.value for h in headers})
            case _:
                raise UsageError(
                    f"The MCP server {clean(server.name)} is of a kind ctxchat does not support.",
                    "It supports servers started by a command, and servers over streamable HTTP.",
                )
    return result


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """A name based on `wanted` that no other server has. No server name may be another's plus `_`: tools are called
    `server__tool`."""
    base = re.sub(r"[^A-Za-z0-9-]+", "-", wanted).strip("-")[:MAX_SERVER_NAME_CHARS] or "server"
    names = chain([base], (f"{base}-{number}" for number in count(2)))
    return next(name for name in names if name not in taken and not any(t.startswith(f"{name}_") for t in taken))
