"""Unified diffs that stay quick on any two texts: what both have in common at either end is set aside first."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import takewhile

CONTEXT = 3
_COMPARED = 6000
"""Lines of the differing middle up to which they are matched one by one; beyond it the middle is shown as replaced."""

Span = tuple[str, int, int, int, int]


def unified(old: str, new: str, name: str, max_lines: int = 400) -> str:
    """A unified diff of two texts, empty when they are equal, cut after `max_lines` lines with a line that says so."""
    if old == new:
        return ""
    before, after = old.split("\n"), new.split("\n")
    lines = [f"--- {name}", f"+++ {name}", *_hunks(before, after)]
    if len(lines) > max_lines:
        lines[max_lines:] = [f"[… {len(lines) - max_lines:,} more lines of this diff …]"]
    return "\n".join(lines) + "\n"


def changed(diff: str) -> tuple[int, int]:
    """Lines added and removed in a diff of ours."""
    body = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    # A text that ends in a newline has an empty last piece; it is no line.
    ends = (bool(before[-1]), bool(after[-1]))
    before, after = before if ends[0] else before[:-1], after if ends[1] else after[:-1]
    for group in _grouped(_spans(before, after, ends), len(before)):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from _marked(" ", before, i, j, ends[0])
                continue
            yield from _marked("-", before, i, j, ends[0])
            yield from _marked("+", after, k, m, ends[1])


def _marked(sign: str, lines: list[str], start: int, end: int, open_end: bool) -> Iterator[str]:
    for at in range(start, end):
        yield sign + lines[at].removesuffix("\r")
    if open_end and start < end == len(lines):
        yield "\\ No newline at end of file"


def _spans(before: list[str], after: list[str], ends: tuple[bool, bool]) -> list[Span]:
    """Equal head, matched middle, equal tail. Last lines of which only one ends in a newline are never equal."""
    unlike = before[-1:] == after[-1:] and ends[0] != ends[1]
    a, b = (before[:-1], after[:-1]) if unlike else (before, after)
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    rest = zip(reversed(a[head:]), reversed(b[head:]), strict=False)
    tail = 0 if unlike else sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
    i, j, k, m = head, len(a) - tail, head, len(b) - tail
    spans: list[Span] = [("equal", 0, head, 0, head)] if head else []
    spans += _middle(a[i:j], b[k:m], head)
    if unlike:
        spans.append(("replace", len(a), len(before), len(b), len(after)))
    if tail:
        spans.append(("equal", j, len(a), m, len(b)))
    return spans


def _middle(a: list[str], b: list[str], offset: int) -> list[Span]:
    if not a and not b:
        return []
    if len(a) + len(b) > _COMPARED:
        return [("replace", offset, offset + len(a), offset, offset + len(b))]
    codes = SequenceMatcher(None, a, b).get_opcodes()
    return [(tag, i + offset, j + offset, k + offset, m + offset) for tag, i, j, k, m in codes]


def _grouped(spans: list[Span], length: int) -> Iterator[list[Span]]:
    """Spans in hunks: long equal stretches are cut down to their edges."""
    group: list[Span] = []
    for at, (tag, i, j, k, m) in enumerate(spans):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        keep_front = CONTEXT if group else 0
        keep_back = CONTEXT if at + 1 < len(spans) else 0
        if group and keep_back and j - i <= keep_front + keep_back:
            group.append((tag, i, j, k, m))
            continue
        if group:
            size = min(keep_front, j - i)
            yield [*group, (tag, i, i + size, k, k + size)]
            group = []
        size = min(keep_back, j - i)
        group = [(tag, j - size, j, m - size, m)] if size else []
    if any(tag != "equal" for tag, *_ in group):
        yield group


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1 if count else start},{count}" if count != 1 else f"{start + 1}"
