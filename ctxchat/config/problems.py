"""Defines the mistakes in settings that a person wrote: file, key, what is wrong, what is allowed, and the most similar valid
word."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

KeyPath = tuple[str | int, ...]
"""A path in a settings tree: names of tables and options, and indices of arrays, from 0."""

BARE = re.compile(r"[A-Za-z0-9_-]+")
"""Matches a part of a key that needs no quotes."""


class Problem(msgspec.Struct, frozen=True):
    """A mistake, for a person. `file` is a path, `environment` or `command line`; `line` counts from 1, 0 where there is none."""

    what: str
    key: str = ""
    allowed: str = ""
    nearest: str = ""
    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """`file:line: key: what, allowed, nearest` in one line, without what is empty."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        head = ": ".join(part for part in (place, self.key) if part)
        nearest = f"did you mean {self.nearest}?" if self.nearest else ""
        tail = ", ".join(part for part in (self.what, self.allowed, nearest) if part)
        return f"{head}: {tail}" if head else tail

    @property
    def brief(self) -> str:
        """The `text`, without the allowed values where a similar one is named."""
        return (msgspec.structs.replace(self, allowed="") if self.nearest else self).text


class ConfigFault(msgspec.Struct, frozen=True):
    """A mistake at one path of a tree. `against` is the other path of a contradiction."""

    path: KeyPath
    what: str
    allowed: str = ""
    nearest: str = ""
    against: KeyPath = ()


def key_text(path: KeyPath) -> str:
    """The dotted key as written in TOML; elements of arrays as `hooks[2]`, counted from 1 as people do."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += ("." if text else "") + (part if BARE.fullmatch(part) else _quoted(part))
    return text


def nearest(word: str, words: Collection[str]) -> str:
    """The only one of `words` that has `word` as a part (`trigger`: `compression_trigger`), else the most similar one; empty
    where none is similar."""
    import difflib

    if len(containing := [longer for longer in words if word in longer.split("_")]) == 1:
        return containing[0]
    found = difflib.get_close_matches(word[:80], list(words), n=1, cutoff=0.6)
    return found[0] if found else ""


def display_value(value: object, most: int = 60) -> str:
    """A value to be repeated in a sentence: one line of at most `most` characters, without control characters."""
    text = repr(value) if isinstance(value, str) else str(value)
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _quoted(part: str) -> str:
    return '"' + "".join(c if c.isprintable() else "�" for c in part).replace("\\", "\\\\").replace('"', '\\"') + '"'
