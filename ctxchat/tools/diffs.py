"""Unified diffs that stay quick on any two texts: what both have in common at either end is set aside first."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

import msgspec

from ctxchat.tools.text import clip_line

CONTEXT_LINES = 3
MAX_LINE = 2000
"""Characters of a line that are shown: the file may be a single one of many megabytes."""

_MAX_COMPARED_LINES = 6000
"""Lines of the differing middle up to which they are matched one by one; beyond it the middle is shown as replaced."""

Span = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


class _Matched(SequenceMatcher[str]):
    """A SequenceMatcher with given matches, used for its grouping into hunks."""

    def __init__(self, spans: list[Span]) -> None:
        super().__init__(None, "", "")
        self._spans = spans

    def get_opcodes(self) -> list[Span]:
        return self._spans


class Diff(msgspec.Struct, frozen=True):
    """A unified diff (empty when nothing differs) and the lines added and removed, those of a part cut off included."""

    text: str
    added: int = 0
    removed: int = 0


def difference(old: str, new: str, name: str, max_lines: int = 400) -> Diff:
    """The difference between two texts, cut after `max_lines` lines with a line that says so."""
    if old == new:
        return Diff("")
    lines = list(_hunks(_split_lines(old), _split_lines(new)))
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    if len(lines) > max_lines:
        lines[max_lines:] = [f"[… {len(lines) - max_lines:,} more lines of this diff …]"]
    return Diff("\n".join([f"--- {name}", f"+++ {name}", *lines]) + "\n", added, removed)


def _split_lines(text: str) -> list[str]:
    """Lines with their ends, so that a last line without one is not taken for the same with one."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    for group in _Matched(matched(before, after)).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from _marked(" ", before[i:j])
            else:
                yield from _marked("-", before[i:j])
                yield from _marked("+", after[k:m])


def _marked(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield sign + clip_line(line.removesuffix("\n").removesuffix("\r"), MAX_LINE)
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def matched(a: list[str], b: list[str]) -> list[Span]:
    """The operations that turn `a` into `b`, in the form of `SequenceMatcher.get_opcodes`; fast on any two texts."""
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    rest = zip(reversed(a[head:]), reversed(b[head:]), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
    spans: list[Span] = [("equal", 0, head, 0, head)] if head else []
    spans += _middle(a[head : len(a) - tail], b[head : len(b) - tail], head)
    return [*spans, ("equal", len(a) - tail, len(a), len(b) - tail, len(b))] if tail else spans


def _middle(a: list[str], b: list[str], offset: int) -> list[Span]:
    if not a and not b:
        return []
    if len(a) + len(b) > _MAX_COMPARED_LINES:
        return [("replace", offset, offset + len(a), offset, offset + len(b))]
    codes = SequenceMatcher(None, a, b).get_opcodes()
    return [(tag, i + offset, j + offset, k + offset, m + offset) for tag, i, j, k, m in codes]


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}" if count != 1 else f"{start + 1}"
