"""What a model writes in a tool call, which may be anything: its arguments as an object, its name as providers take it back.
Knows nothing of tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import msgspec

LONGEST_NAME = 64
"""Characters of a tool's name that every provider takes."""

_PLAIN_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_-]{{0,{LONGEST_NAME - 1}}}")

DEEPEST = 100
"""Levels of lists and objects. Beyond them no tool wants anything, and walking down could end the one who walks."""


def fields_of(arguments: str) -> dict[str, object] | None:
    """Call arguments as an object, None where the text is not one or is nested beyond all measure. No text is an empty object."""
    try:
        value: object = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    return None if is_too_deep(fields) else fields


def is_too_deep(value: object) -> bool:
    """It has more levels than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, object]", value).values())
    return cast("list[object]", value)


def plain_name(name: str) -> str:
    """The name in the form every provider takes (letters, digits, `_` and `-`, no digit or `-` in front, 64 at most): itself
    where it has it. A model makes names up, and one that is refused would have every later request of its session refused."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)
    if not any(map(str.isalnum, plain)):
        return "unknown"
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    return plain[:LONGEST_NAME]
