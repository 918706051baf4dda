"""Reads what a model writes in a tool call, which may be anything: parses the arguments as an object, tells what is wrong with
them, and fits the tool's name to what providers accept. Knows no tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

import msgspec

MAX_TOOL_NAME_CHARS = 64
"""The longest name of a tool that every provider accepts."""

_PLAIN_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_-]{{0,{MAX_TOOL_NAME_CHARS - 1}}}")

MAX_NESTING_LEVELS = 100
"""The deepest nesting of lists and objects that is accepted. No tool needs more, and recursive code could exhaust the stack."""


def fields_of(arguments: str) -> dict[str, object] | None:
    """Call arguments as an object; None where the text is not a JSON object or is nested too deeply. An empty text is an empty
    object."""
    try:
        value: object = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    return None if is_too_deep(fields) else fields


def plain_arguments(arguments: str) -> str:
    """Call arguments in a form to read: `path: a.py; all: true`, with texts of several lines below their names and nothing
    escaped. Arguments that are not an object are unchanged."""
    fields = fields_of(arguments)
    if fields is None:
        return arguments
    values = {n: v if isinstance(v, str) else msgspec.json.encode(v).decode() for n, v in fields.items()}
    short = "; ".join(f"{name}: {value}" for name, value in values.items() if "\n" not in value)
    long = [f"{name}:\n{value}" for name, value in values.items() if "\n" in value]
    return "\n".join([*([short] if short else []), *long])


_ESCAPED = re.compile(r'\\(["\\/nrtbf]|u[0-9a-fA-F]{4})')


def unescaped(part: str) -> str:
    """A piece cut out of JSON text, with its escapes resolved as far as they are whole."""
    characters = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
    return _ESCAPED.sub(
        lambda match: chr(int(match[1][1:], 16)) if match[1][0] == "u" else characters.get(match[1], match[1]), part
    )


def fault_of(arguments: str) -> str:
    """Why call arguments are not an object, in words that go on with a sentence (`they are a list`), with the position of the
    mistake; empty where they are one."""
    if fields_of(arguments) is not None:
        return ""
    try:
        value = json.loads(arguments)
    except json.JSONDecodeError as problem:
        if problem.pos >= len(arguments.rstrip()) or problem.msg.startswith("Unterminated"):
            return f"they end in the middle, after {arguments[-30:]!r}"
        near = arguments[max(0, problem.pos - 20) : problem.pos + 20]
        return f"{problem.msg} at character {problem.pos + 1}, near {near!r}"
    except (ValueError, RecursionError):
        return "they cannot be read"
    kinds = {
        list: "a list",
        str: "a text",
        int: "a number",
        float: "a number",
        bool: "true or false",
        type(None): "null",
    }
    return (
        f"they are {kinds[type(value)]}"
        if type(value) in kinds
        else f"they are nested deeper than {MAX_NESTING_LEVELS} levels"
    )


def is_too_deep(value: object) -> bool:
    """True for a value with more than `MAX_NESTING_LEVELS` levels of lists and objects. Goes level by level, without
    recursion."""
    level = [value]
    for _ in range(MAX_NESTING_LEVELS):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, object]", value).values())
    return cast("list[object]", value)


def plain_name(name: str) -> str:
    """A tool's name in the form that every provider accepts: letters, digits, `_` and `-`, no digit or `-` in front, at most 64
    characters. A name that has this form is unchanged.

    Models make names up, and since the call is part of all later requests, a name that a provider refuses would make each of them
    fail.
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)
    if not any(map(str.isalnum, plain)):
        return "unknown"
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    return plain[:MAX_TOOL_NAME_CHARS]
