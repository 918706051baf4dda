"""Parses the front matter of a Markdown file: YAML between two lines of `---`, also where it is not quite valid. Values are
texts, booleans, lists of texts or tables of these only: other YAML types could become arbitrarily large.
"""

from __future__ import annotations

import re
from typing import Any

MAX_HEAD_CHARS = 20_000
"""The longest front matter; a longer one is taken for text."""

MAX_YAML_CHARS = 4_000
"""The longest front matter that is parsed as YAML, which takes about 4 ms for 1,000 characters. A longer one is read line by
line."""

MAX_BRACKETS = 200
"""Brackets beyond which it is read line by line as well: YAML's parser is recursive, and they may all be nested."""

_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.S)
_SIMPLE = re.compile(r"([A-Za-z][\w-]*):[ \t]+([^\s\[{>|&*!%@`\"'#][^#\n]*)")
_LISTED_NAME = re.compile(r"(?:[^,(]|\([^)]*\)?)+")
_FIELD = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")


def split_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """The fields of the front matter, and the text after it; no fields where there is none."""
    match = _HEAD.match(text)
    if match is None or len(match[1]) > MAX_HEAD_CHARS:
        return {}, text
    return _fields(match[1]), text[match.end() :].lstrip("\n")


def _fields(head: str) -> dict[str, Any]:
    """The fields of a front matter: line by line where it is simple, else by YAML, and line by line again where YAML refuses
    it."""
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    simple = [_SIMPLE.fullmatch(line) for line in lines]
    if all(simple):  # as most are: this avoids loading YAML, and accepts values with a colon, which YAML refuses
        return {m[1]: _scalar(m[2].strip()) for m in simple if m}
    if len(head) > MAX_YAML_CHARS or head.count("[") + head.count("{") > MAX_BRACKETS:
        return _by_lines(lines)
    import yaml

    try:  # the loader that reads every value as text and ignores tags
        tree = yaml.load(head, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError):
        return _by_lines(lines)
    return {key: _texts(value) for key, value in tree.items()} if isinstance(tree, dict) else {}


def _texts(value: Any) -> Any:
    """A value of YAML as a text, a boolean or a list of texts; None for others."""
    if isinstance(value, str):
        return _scalar(value)
    # Deeper values are left out: through references a few lines can hold the same list a billion times.
    if isinstance(value, dict):
        return {str(key): _scalar(inner) for key, inner in value.items() if isinstance(inner, str)}
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


def _by_lines(lines: list[str]) -> dict[str, Any]:
    """The fields of a front matter that is no valid YAML: each with the indented lines that follow it, as a list where these are
    its items."""
    fields: dict[str, str] = {}
    items: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match and not line[0].isspace():
            name = match[1]
            fields[name] = match[2].strip().strip("'\"").lstrip(">|-+ ")
        elif name:
            if not fields[name] and line.lstrip().startswith("- "):
                items.setdefault(name, []).append(line.strip()[2:].strip(" '\""))
            else:
                fields[name] = f"{fields[name]} {line.strip()}".strip()
    return {key: _scalar(value) if value or key not in items else items[key] for key, value in fields.items()}


def _scalar(text: str) -> str | bool | None:
    return {"true": True, "false": False, "null": None, "~": None, "": None}.get(text.lower(), text)


def text_of(fields: dict[str, Any], name: str) -> str:
    """The text of a field; empty where it is missing or no text."""
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""


def names_of(fields: dict[str, Any], name: str) -> tuple[str, ...] | None:
    """The names in a field, a YAML list (also as text, `["a", "b"]`) or separated by commas; None where the field is missing.
    Commas in brackets do not separate."""
    value = fields.get(name)
    if value is None or isinstance(value, dict):
        return None
    items = value if isinstance(value, list) else _LISTED_NAME.findall(str(value).strip().strip("[]"))
    return tuple(text for item in items if (text := item.strip(" \t\n'\"")))
