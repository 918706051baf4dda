"""The front matter of a Markdown file: YAML between two lines of `---`, read as leniently as others write it."""

from __future__ import annotations

import re
from typing import Any

MAX_HEAD_CHARS = 20_000
"""Characters of a front matter; what is longer is none."""

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.S)
_SIMPLE = re.compile(r"([A-Za-z][\w-]*):[ \t]+([^\s\[{>|&*!%@`\"'#][^#\n]*)")
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
    import yaml

    try:
        found = yaml.load(head, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return _by_lines(lines)
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


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


def _scalar(text: str) -> str | bool:
    return {"true": True, "false": False}.get(text.lower(), text)


def text_of(fields: dict[str, Any], name: str) -> str:
    """A field as text; empty where it is none."""
    value = fields.get(name)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def names_of(fields: dict[str, Any], name: str) -> tuple[str, ...] | None:
    """A field that lists names, with commas or as a YAML list; None where it is left out. A comma in brackets parts nothing."""
    value = fields.get(name)
    if value is None:
        return None
    items = value if isinstance(value, list) else re.split(r",(?![^(]*\))", str(value))
    return tuple(text for item in items if (text := str(item).strip()))
