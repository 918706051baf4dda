"""What a server says it offers, looked at tool by tool before the SDK sees it: one bad entry costs itself and no other.

Pure; knows no connection.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ctxchat.tools.text import clip_line, size

LONGEST_SCHEMA = 200_000
"""Bytes of one tool's schema: more would fill any window."""


def usable(listed: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The result of `tools/list` with nothing of each tool but what is used, and those that are none by name, with why."""
    tools: list[dict[str, Any]] = []
    left_out: list[str] = []
    for place, entry in enumerate(cast("list[object]", listed["tools"]), 1):
        tool = _tool(entry)
        if isinstance(tool, str):
            left_out.append(f"{_named(entry, place)} ({tool})")
        else:
            tools.append(tool)
    return {**listed, "tools": tools}, left_out


def _tool(entry: object) -> dict[str, Any] | str:
    """The tool, or why it is none. Without a schema for its results: they are shown as they are."""
    match entry:
        case {"name": str(name), **rest} if name.strip():
            schema = rest.get("inputSchema")
        case {"name": _}:
            return "its name is no text"
        case dict():
            return "it has no name"
        case _:
            return "it is no description of a tool"
    if schema is not None and not isinstance(schema, dict):
        return "its schema is none"
    shaped = _schema(cast("dict[str, object]", schema or {}))
    try:
        length = len(msgspec.json.encode(shaped))
    except (ValueError, OverflowError, RecursionError):  # a number no one takes, a nest without end
        return "its schema cannot be passed on"
    if length > LONGEST_SCHEMA:
        return f"its schema is {size(length)} long"
    about = rest.get("description")
    return {"name": name, "description": about if isinstance(about, str) else "", "inputSchema": shaped}


def _schema(given: dict[str, object]) -> dict[str, object]:
    """An object's schema in any case, as providers want it: some servers leave the type out, or write nonsense."""
    properties, required = given.get("properties"), given.get("required")
    named = cast("dict[str, object]", properties) if isinstance(properties, dict) else {}
    shape = {
        "type": "object",
        "properties": {name: one if isinstance(one, dict | bool) else {} for name, one in named.items()},
    }
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    kept = {key: value for key, value in given.items() if key != "$schema" or isinstance(value, str)}
    return {**kept, **shape, **({"required": names} if "required" in given else {})}


def _named(entry: object, place: int) -> str:
    name = cast("dict[str, object]", entry).get("name") if isinstance(entry, dict) else None
    return clip_line(name, 60) if isinstance(name, str) and name.strip() else f"number {place}"
