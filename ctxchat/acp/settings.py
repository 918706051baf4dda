"""What an editor can set in a session: the permission mode and the model, as the protocol's config options and session modes,
and the editor's MCP servers as settings of ours."""

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
"""Ids of our two options; the protocol has the same words for their categories."""

ConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean

EditorServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


def mode_of(id: str) -> Mode:
    """The permission mode of that name. Raises UsageError."""
    for mode in MODES:
        if mode == id:
            return mode
    raise UsageError(f"There is no mode {clean(id)!r}.", f"There are {', '.join(get_args(Mode))}.")


def modes(session: Session) -> SessionModeState:
    """The modes there are, and the one in force."""
    rows = [SessionMode(id=id, name=name, description=about) for id, name, about in _modes()]
    return SessionModeState(current_mode_id=session.permissions.mode, available_modes=rows)


def config_options(session: Session, models: Collection[str]) -> list[ConfigOption]:
    """Mode and model; `models` are those to choose from, beside the one in use."""
    used = session.context_usage.model
    names = dict.fromkeys([used, *models])
    return [
        _select(MODE, "Permissions", session.permissions.mode, _modes()),
        _select(MODEL, "Model", used, [(name, clean(name), "") for name in names]),
    ]


def _modes() -> list[tuple[str, str, str]]:
    """Id, name and meaning of each."""
    return [(id, id.replace("-", " ").capitalize(), about) for id, about in MODES.items()]


def _select(
    id: Literal["mode", "model"], name: str, value: str, rows: Iterable[tuple[str, str, str]]
) -> SessionConfigOptionSelect:
    options = [SessionConfigSelectOption(value=v, name=n, description=about or None) for v, n, about in rows]
    return SessionConfigOptionSelect(type="select", id=id, name=name, category=id, current_value=value, options=options)


def servers(given: Sequence[EditorServer], known: Mapping[str, McpSettings]) -> dict[str, McpSettings]:
    """The editor's MCP servers as our settings, under another name where a `known` server has theirs. Raises UsageError for a
    kind that cannot be reached."""
    found: dict[str, McpSettings] = {}
    for server in given:
        name = _free_name(server.name, {*known, *found})
        match server:
            case McpServerStdio(command=command, args=args, env=env):
                found[name] = McpSettings(command=command, args=tuple(args), env={e.name: e.value for e in env})
            case HttpMcpServer(url=url, headers=headers):
                found[name] = McpSettings(url=url, headers={h.name: h.value for h in headers})
            case _:
                raise UsageError(
                    f"The MCP server {clean(server.name)} is of a kind ctxchat does not speak to.",
                    "It takes servers that are started, and those over streamable HTTP.",
                )
    return found


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """A free name for a server. No other may begin with it and `_`: the names of tools are built that way."""
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", wanted).strip("-")[:24] or "server"
    names = chain([plain], (f"{plain}-{number}" for number in count(2)))
    return next(name for name in names if name not in taken and not any(t.startswith(f"{name}_") for t in taken))
