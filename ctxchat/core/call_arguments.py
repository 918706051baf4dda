"""The arguments of a tool call, which a model wrote and which may be any text, as an object. Knows nothing of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

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
    return None if _too_deep(fields) else fields


def _too_deep(value: object) -> bool:
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
