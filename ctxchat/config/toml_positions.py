"""Finds the position of every key and value in a valid TOML text, and writes keys and values as TOML. Knows no option."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ctxchat.config.problems import BARE, KeyPath, display_value

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_PARTS = re.compile(_PART)
_BLANK = re.compile(r"(?:[ \t\r\n,]|\#[^\n]*)*")
_VALUE = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]*"
    r"|[^\s,\]}#\[{]+",
    re.DOTALL,
)
_LINE_END = re.compile(r"[^\n]*\n?")


class KeyPlace(msgspec.Struct, frozen=True):
    """Offsets into the text: where a key and its value begin, and where the value ends."""

    key: int
    value: int
    end: int


class TomlTable(msgspec.Struct, frozen=True):
    """A `[table]` with its path. `body` is the offset at which a further key can be inserted: the start of the line after its
    last key, or after its header."""

    path: KeyPath
    body: int


class Layout(msgspec.Struct, frozen=True):
    """The positions in a text: `places` of all keys, `sections` in order, first the root with an empty path, and the offsets
    `starts` at which lines begin."""

    places: dict[KeyPath, KeyPlace]
    sections: list[TomlTable]
    starts: list[int]

    def line_of(self, path: KeyPath) -> int:
        """The line of a key, from 1, or of the innermost table around it; 0 where neither is in the text."""
        for n in range(len(path), 0, -1):
            if place := self.places.get(path[:n]):
                return bisect_right(self.starts, place.key)
        return 0


def layout(text: str) -> Layout:
    """Find the positions in a text that is valid TOML. Never raises; for other texts the positions may be wrong."""
    scanner = _Scanner(text)
    # the positions found so far are kept; the syntax error has been reported already
    with suppress(RecursionError, ValueError, IndexError):
        scanner.document()
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    return Layout(scanner.places, scanner.sections, starts)


def parse_key(text: str) -> tuple[str, ...]:
    """Split a dotted key into its parts: `models."a.b".window` has three. Raises ValueError for an invalid key."""
    if not _KEY.fullmatch(text.strip()):
        raise ValueError(f"{display_value(text)} is no key")
    return tuple(_unquoted(part) for part in _PARTS.findall(text))


class _Scanner:
    """Goes through a text once; `at` is the current offset."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[KeyPath, KeyPlace] = {}
        self.sections: list[TomlTable] = [TomlTable((), 0)]
        self._counts: dict[KeyPath, int] = {}  # elements so far of each array of tables

    def document(self) -> None:
        """Go through the whole text."""
        table: KeyPath = ()
        while self._skip():
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self.sections[-1] = TomlTable(table, self._line_end())

    def _header(self) -> KeyPath:
        """Read a table's header, and return the path of the table."""
        start = self.at
        is_array = self.text.startswith("[[", start)
        self.at += 2 if is_array else 1
        self._skip()
        *front, last = self._key()
        path = self._resolve((), front)
        if is_array:
            path = (*path, last)
            self.places.setdefault(path, KeyPlace(start, start, start))
            self._counts[path] = self._counts.get(path, 0) + 1
            path = (*path, self._counts[path] - 1)
        else:
            path = self._resolve(path, [last])
        self._skip()
        self.at += 2 if is_array else 1
        self.places.setdefault(path, KeyPlace(start, start, self.at))
        self.sections.append(TomlTable(path, self.at))
        return path

    def _pair(self, table: KeyPath) -> None:
        """Read a key with its value, and record their positions."""
        start = self.at
        path: KeyPath = table
        for part in self._key():
            path = (*path, part)
            self.places.setdefault(path, KeyPlace(start, start, start))
        self._skip()
        self.at += 1  # the equals sign
        self._skip()
        value = self.at
        self._value(path)
        self.places[path] = KeyPlace(start, value, self.at)

    def _value(self, path: KeyPath) -> None:
        """Read a value and go to its end, recording the positions of keys inside of it."""
        opening = self.text[self.at]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self.at += 1
            while self._skip() and self.text[self.at] != "}":
                self._pair(path)
            self.at += 1
        elif found := _VALUE.match(self.text, self.at):
            self.at = found.end()
        else:
            raise ValueError("no value")

    def _array(self, path: KeyPath) -> None:
        """Read an array and go to its end, recording the position of each item."""
        self.at += 1
        n = 0
        while self._skip() and self.text[self.at] != "]":
            start = self.at
            self._value((*path, n))
            self.places[(*path, n)] = KeyPlace(start, start, self.at)
            n += 1
        self.at += 1

    def _key(self) -> list[str]:
        """Read a key, and return its parts without quotes."""
        found = _KEY.match(self.text, self.at)
        if not found:
            raise ValueError("no key")
        self.at = found.end()
        return [_unquoted(part) for part in _PARTS.findall(found[0])]

    def _resolve(self, path: KeyPath, parts: list[str]) -> KeyPath:
        """The path that a header means: the name of an array of tables means its last element."""
        for part in parts:
            path = (*path, part)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _skip(self) -> bool:
        """Skip blanks, commas and comments; whether text is left."""
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at < len(self.text)

    def _line_end(self) -> int:
        found = _LINE_END.match(self.text, self.at)
        return found.end() if found else self.at


def _unquoted(part: str) -> str:
    return str(tomllib.loads(f"k = {part}")["k"]) if part[0] in "\"'" else part


def literal(value: Any) -> str:
    """Write a string, number, boolean, list or table as one line of TOML. Raises TypeError for anything else."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(literal(v) for v in value)}]"
        case Mapping():
            pairs = ", ".join(f"{bare_key(str(k))} = {literal(v)}" for k, v in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a settings file")


def bare_key(part: str) -> str:
    """Write one part of a key, in quotes where it needs them."""
    return part if BARE.fullmatch(part) else literal(part)
