"""Reads MCP servers from `.mcp.json` at the top of a project, in the JSON format that most agents share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.config.customizations.places import CustomizationFolder, exists, read_source
from ctxchat.config.problems import Problem

FILE = ".mcp.json"

LOGIN_KEYS = (("clientId", "client_id"), ("callbackPort", "callback_port"))
"""Fields for a login in an entry, and their names in ctxchat's settings."""

MAX_NAME_CHARS = 30
"""Characters of a server's name, which becomes part of its tools' names."""


def find_servers(path: Path, place: CustomizationFolder) -> Iterator[tuple[str, dict[str, Any]] | Problem]:
    """The servers in a file as tables of the settings. Variables such as `${NAME}` are replaced when a server is started."""
    if not exists(path):
        return
    file = read_source(path, place)
    try:
        tree = msgspec.json.decode(file.text or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        yield Problem(f"is not valid JSON: {error}", file=str(path))
        return
    if file.problem:
        yield Problem(file.problem, file=str(path))
    servers = tree.get("mcpServers") if isinstance(tree, dict) else None
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if not isinstance(server, dict):
            yield Problem("must be an object", f"mcpServers.{name}", file=str(path))
        elif server.get("type", "stdio") == "sse":
            yield Problem("speaks SSE, which is not known here; it is left out", f"mcpServers.{name}", file=str(path))
        else:
            yield server_name(name), server_table(server)


def server_name(name: str) -> str:
    """The name with only characters that the names of tools may have."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:MAX_NAME_CHARS] or "server"


def server_table(server: dict[str, Any]) -> dict[str, Any]:
    """The fields of an entry that ctxchat's settings have."""
    table = {key: server[key] for key in ("command", "args", "env", "cwd", "url", "headers") if server.get(key)}
    login = server.get("oauth")
    if isinstance(login, dict):
        table |= {ours: login[key] for key, ours in LOGIN_KEYS if login.get(key)}
    if server.get("disabled") is True or server.get("enabled") is False:
        table["enabled"] = False
    return table
