"""Cutting long text to a number of tokens: head and tail kept, a mark between them; at line ends where there are any near, never
inside a character."""

from __future__ import annotations

import re
import unicodedata

from ctxchat.core.tokens import Count

_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")

MAX_WORD_CHARS = 40
"""Characters that a cut gives up for a whole word, a value or a name: half of one would be a false one."""

_WORD_END = re.compile(r"\s\S+\Z")
_WORD_START = re.compile(r"\S*\s")


def clip(text: str, max_tokens: int, count: Count, mark: str = "\n[… {tokens} tokens left out …]\n") -> str:
    """The text itself where it fits, else two thirds head and one third tail around a mark that says how much is missing.

    The result is at most `max_tokens` by `count`, unless the mark alone is more. In the mark `{tokens}` is filled in, and
    `{lines}`, as `lines 124–165 (start_line=124), ` where whole lines are missing. Lines that bring their numbers, as
    files are read, go by those.
    """
    total = count(text)
    if total <= max_tokens:
        return text
    room = max_tokens - count(mark.replace("{tokens}", str(total)).replace("{lines}", _line_range(total, total)))
    keep = int(len(text) * max(0, room) / total)
    while True:
        start = _line_end(text, safe_cut(text, keep * 2 // 3))
        end = _line_start(text, safe_cut(text, len(text) - keep // 3))
        missing = count(text[start:end])
        told = mark.replace("{tokens}", str(missing)).replace("{lines}", _missing_lines(text, start, end))
        clipped = f"{text[:start]}{told}{text[end:]}"
        if keep <= 0 or count(clipped) <= max_tokens:
            return clipped
        keep = keep * 7 // 8


def clip_around(text: str, place: int, max_tokens: int, count: Count, mark: str) -> str:
    """As `clip`, but what stays is one piece with this place in it: a third before it, as far as there is so much."""
    total = count(text)
    if total <= max_tokens:
        return text
    room = max_tokens - 2 * count(mark.replace("{tokens}", str(total)).replace("{lines}", _line_range(total, total)))
    keep = int(len(text) * max(0, room) / total)
    while True:
        start = safe_cut(text, max(0, min(place - keep // 3, len(text) - keep)))
        start = max(start, text.find("\n", max(0, start - 1), place) + 1) if start else 0
        end = safe_cut(text, start + keep)
        line = text.rfind("\n", place, end + 1)
        end = line if (line - place) * 2 >= end - place and end < len(text) else end
        told = (
            _missing_mark(text, 0, start, count, mark),
            text[start:end],
            _missing_mark(text, end, len(text), count, mark),
        )
        clipped = "".join(told).strip("\n")
        if keep <= 0 or count(clipped) <= max_tokens:
            return clipped
        keep = keep * 7 // 8


def _missing_mark(text: str, start: int, end: int, count: Count, mark: str) -> str:
    """The mark for what is missing between two line ends; empty for nothing."""
    missing = text[start:end].strip("\n")
    if not missing:
        return ""
    first = text.count("\n", 0, start + text.startswith("\n", start)) + 1
    last = first + missing.count("\n")
    shown = _NUMBER.match(missing), _NUMBER.match(missing, missing.rfind("\n") + 1)
    if shown[0] and shown[1]:
        first, last = _by_their_numbers(first, last, int(shown[0][1]), int(shown[1][1]))
    return mark.replace("{tokens}", str(count(missing))).replace("{lines}", _line_range(first, last))


def _line_end(text: str, place: int) -> int:
    """The end of the last whole line before a place, where that gives up no more than half; else of the last whole word, if it is
    near."""
    line = text.rfind("\n", 0, place + 1)
    if line * 2 >= place > 0 or text[place : place + 1].isspace():
        return line if line * 2 >= place > 0 else place
    word = _WORD_END.search(text, max(0, place - MAX_WORD_CHARS), place)
    return word.start() if word else place


def _line_start(text: str, place: int) -> int:
    """The start of the first whole line behind a place, where that gives up no more than half; else of the first whole word,
    if it is near."""
    line = text.find("\n", max(0, place - 1)) + 1
    if 0 < line < len(text) and (len(text) - line) * 2 >= len(text) - place:
        return line
    if text[max(0, place - 1) : place].isspace():
        return place
    word = _WORD_START.match(text, place, place + MAX_WORD_CHARS)
    return word.end() if word else place


def _missing_lines(text: str, start: int, end: int) -> str:
    """The lines between two places by number; empty where a cut is inside a line."""
    if not (text.startswith("\n", start) and text.startswith("\n", end - 1) and start + 1 < end):
        return ""
    first, last = text.count("\n", 0, start + 1) + 1, text.count("\n", 0, end)
    shown = _number_at(text, start + 1), _number_at(text, text.rfind("\n", 0, end - 1) + 1)
    return _line_range(*_by_their_numbers(first, last, *shown))


def _by_their_numbers(first: int, last: int, first_number: int, last_number: int) -> tuple[int, int]:
    """The numbers in front of two lines where they rise by one a line, as those of a file do, else the places of the lines in
    the text: hits of a search are behind numbers as well, and so are sizes and counts."""
    return (first_number, last_number) if first_number and last_number - first_number == last - first else (first, last)


def _number_at(text: str, start: int) -> int:
    """The number of the line that begins there, by its own or that of one before it; 0 where none tells."""
    for further in range(NUMBERED_LINES):
        if found := _NUMBER.match(text, start):
            return int(found[1]) + further
        if not start or not text.startswith(("\t", "\n"), start):
            break
        start = text.rfind("\n", 0, start - 1) + 1
    return 0


def _line_range(first: int, last: int) -> str:
    return f"lines {first}–{last} (start_line={first}), "


NUMBERED_LINES = 5
"""Of a file that was read, one in so many lines begins with its number, the first one shown among them; the others with the tab
that stands behind it, empty ones empty. A number in each would be a fifth of all that is read."""

_NUMBER = re.compile(r" *(\d+)\t")
"""How a line of a file that was read begins, where it brings its number."""


def head(text: str, max_tokens: int, count: Count) -> str:
    """The beginning of a text in at most `max_tokens`, with an ellipsis where something is missing."""
    total = count(text)
    if total <= max_tokens:
        return text
    keep = int(len(text) * max(0, max_tokens) / total)
    while keep > 0 and count(text[:keep]) + 1 > max_tokens:
        keep = keep * 7 // 8
    return text[: safe_cut(text, keep)].rstrip() + "…" if keep > 0 else ""


def safe_cut(text: str, place: int) -> int:
    """The nearest place at or before this one that does not part a character from its accents or joiners."""
    place = min(max(0, place), len(text))
    for _ in range(32):
        if not 0 < place < len(text):
            break
        after = text[place]
        joined = (
            after in _JOINERS or text[place - 1] == "\u200d" or unicodedata.combining(after) or _is_skin_tone(after)
        )
        if not joined:
            break
        place -= 1
    return place


def _is_skin_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff"
