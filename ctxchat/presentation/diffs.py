"""Diffs as lines for people: what each line is, and which line of the file it is. Pure; knows no widget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Literal

import msgspec

LineKind = Literal["add", "remove", "same", "hunk", "note"]

CONTEXT_LINES = 3
"""Lines that are the same on both sides of an edit and are shown before and behind it."""

OLD, NEW = ("old", "old_string", "old_str"), ("new", "new_string", "new_str")
"""What tools call the two sides of an edit, ours first."""

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


class DiffLine(msgspec.Struct, frozen=True):
    """One line of a diff, with its sign. `number` is the line's number in the file (in the old one if it was removed), 0 if
    unknown."""

    kind: LineKind
    text: str
    number: int = 0


def lines_in(diff: str) -> Iterator[DiffLine]:
    """A unified diff line by line. A line of a hunk is one whatever it begins with; behind it, or without hunks, signs decide."""
    numbers, left = {"-": 0, "+": 0}, {"-": 0, "+": 0}
    for line in diff.removesuffix("\n").split("\n"):
        sign = line[:1] or " "
        if not any(left.values()) and (hunk := _HUNK.match(line)):
            old, olds, new, news = hunk.groups()
            numbers = {"-": int(old), "+": int(new)}
            left = {"-": int(olds or 1), "+": int(news or 1)}
            yield DiffLine("hunk", line)
            continue
        inside = any(left.values())
        if sign not in "-+ " or (not inside and line.startswith(("--- ", "+++ "))):
            yield DiffLine("note", line)
            continue
        kind: LineKind = {"+": "add", "-": "remove"}.get(sign, "same")  # pyright: ignore[reportAssignmentType]
        yield DiffLine(kind, line, (numbers["-" if sign == "-" else "+"]) if inside else 0)
        for side in (sign,) if sign in "-+" else "-+":
            numbers[side] += 1
            left[side] = max(0, left[side] - 1)


def edit_diff(arguments: Mapping[str, object] | str) -> str:
    """The diff, without line numbers, of a call that replaces one text by another; empty for other calls, and for one that
    replaces in several places."""
    if isinstance(arguments, str) or arguments.get("replace_all"):
        return ""
    old, new = (next((v for n in names if isinstance(v := arguments.get(n), str)), None) for names in (OLD, NEW))
    if old is None or new is None or old == new:
        return ""
    before, after = _lines_of(old), _lines_of(new)
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    signed = [
        *(f" {line}" for line in before[max(0, start - CONTEXT_LINES) : start]),
        *(f"-{line}" for line in before[start : len(before) - end]),
        *(f"+{line}" for line in after[start : len(after) - end]),
        *(f" {line}" for line in before[len(before) - end :][:CONTEXT_LINES]),
    ]
    return "\n".join(signed) + "\n"


def _lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _common(one: list[str], other: list[str]) -> int:
    """The number of equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
