"""The front matter of a Markdown file: YAML between two lines of `---`, read as leniently as others write it. All of it is text,
yes or no, or a list of texts: what anybody may write is never made into anything else, which may be of any size.
"""

from __future__ import annotations

import re
from typing import Any

MAX_HEAD_CHARS = 20_000
"""Characters of a front matter; what is longer is none."""

MAX_YAML_CHARS = 4_000
"""Characters that are read as YAML, which takes some 4 ms for a thousand; of what is longer each field is a line."""

MAX_BRACKETS = 200
"""Likewise: each may be one within the other, and the reader goes down by itself."""

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.S)
_SIMPLE = re.compile(r"([A-Za-z][\w-]*):[ \t]+([^\s\[{>|&*!%@`\"'#][^#\n]*)")
_LISTED_NAME = re.compile(r"(?:[^,(]|\([^)]*\)?)+")
_FIELD = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")


def split_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """The fields, and the text behind them; no fields where there is no front matter."""
    match = _HEAD.match(text)
    if match is None or len(match[1]) > MAX_HEAD_CHARS:
        return {}, text
    return _fields(match[1]), text[match.end() :].lstrip("\n")


def _fields(head: str) -> dict[str, Any]:
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    simple = [_SIMPLE.fullmatch(line) for line in lines]
    if all(simple):  # most are, and YAML takes its time to load; a value with a colon in it is wrong to YAML only
        return {m[1]: _scalar(m[2].strip()) for m in simple if m}
    if len(head) > MAX_YAML_CHARS or head.count("[") + head.count("{") > MAX_BRACKETS:
        return _by_lines(lines)
    import yaml

    try:  # the loader that makes texts of everything and follows no tag
        found = yaml.load(head, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError):
        return _by_lines(lines)
    return {key: _texts(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        return _scalar(value)
    # What lies deeper may be the same list a billion times, in a few lines.
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


def _by_lines(lines: list[str]) -> dict[str, Any]:
    """What is not valid YAML: each field with all that follows it on lines that are set in."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match and not line[0].isspace():
            name = match[1]
            found[name] = match[2].strip().strip("'\"").lstrip(">|-+ ")
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return {key: _scalar(value) for key, value in found.items()}


def _scalar(text: str) -> str | bool | None:
    return {"true": True, "false": False, "null": None, "~": None, "": None}.get(text.lower(), text)


def text_of(fields: dict[str, Any], name: str) -> str:
    """A field as text; empty where it is none."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def names_of(fields: dict[str, Any], name: str) -> tuple[str, ...] | None:
    """A field that lists names, with commas or as a YAML list; None where it is left out. A comma in brackets parts nothing."""
    value = fields.get(name)
    if value is None:
        return None
    items = value if isinstance(value, list) else _LISTED_NAME.findall(str(value))
    return tuple(text for item in items if (text := item.strip()))
