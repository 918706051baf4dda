"""Cuts long texts to a number of tokens, with a mark that tells how much is missing. Cuts at the end of a line or a word where
one is near, and never inside a character and its accents."""

from __future__ import annotations

import re
import unicodedata

from ctxchat.core.tokens import Count

_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")

MAX_WORD_CHARS = 40
"""The most characters given up in order to cut at the end of a word: half of a name or of a number would be a wrong one."""

_WORD_END = re.compile(r"\s\S+\Z")
_WORD_START = re.compile(r"\S*\s")


def clip(text: str, max_tokens: int, count: Count, mark: str = "\n[… {tokens} tokens left out …]\n") -> str:
    """The text itself where it fits; else its beginning (two thirds) and its end (one third) with `mark` between them.

    The result has at most `max_tokens` by `count`, unless the mark alone has more. In the mark, `{tokens}` becomes the number of
    missing tokens, and `{lines}` becomes `lines 124–165 (start_line=124), ` where whole lines are missing, else nothing. The
    lines have the numbers that stand in front of them, where the text is that of a file as `read_file` gives it.
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
        filled = mark.replace("{tokens}", str(missing)).replace("{lines}", _missing_lines(text, start, end))
        clipped = f"{text[:start]}{filled}{text[end:]}"
        if keep <= 0 or count(clipped) <= max_tokens:
            return clipped
        keep = keep * 7 // 8


def clip_around(text: str, place: int, max_tokens: int, count: Count, mark: str) -> str:
    """Like `clip`, but keeps one piece around the index `place`: a third of it before that, where there is so much."""
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
        before, after = (
            _missing_mark(text, 0, start, count, mark),
            _missing_mark(text, end, len(text), count, mark),
        )
        clipped = f"{before}{text[start:end]}{after}".strip("\n")
        if keep <= 0 or count(clipped) <= max_tokens:
            return clipped
        keep = keep * 7 // 8


def _missing_mark(text: str, start: int, end: int, count: Count, mark: str) -> str:
    """The mark for the text between two indexes, which is left out; empty where nothing is."""
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
    """Where to end the beginning of a text that is cut at `place`: at the end of the last whole line, where that keeps at least
    half of it, else at the end of the last whole word, where one is near."""
    line = text.rfind("\n", 0, place + 1)
    if line * 2 >= place > 0 or text[place : place + 1].isspace():
        return line if line * 2 >= place > 0 else place
    word = _WORD_END.search(text, max(0, place - MAX_WORD_CHARS), place)
    return word.start() if word else place


def _line_start(text: str, place: int) -> int:
    """Where to start the end of a text that is cut at `place`: at the next whole line, where that keeps at least half of it, else
    at the next whole word, where one is near."""
    line = text.find("\n", max(0, place - 1)) + 1
    if 0 < line < len(text) and (len(text) - line) * 2 >= len(text) - place:
        return line
    if text[max(0, place - 1) : place].isspace():
        return place
    word = _WORD_START.match(text, place, place + MAX_WORD_CHARS)
    return word.end() if word else place


def _missing_lines(text: str, start: int, end: int) -> str:
    """The `{lines}` of a mark for what is missing between two indexes; empty where one of these is inside a line."""
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
    """The number of the line that begins at an index, by the number in front of it or of one of the lines before; 0 where there
    is none."""
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
"""`read_file` numbers the first line it gives and then one in so many; the others begin with the tab alone, and empty lines are
empty. Numbers in front of all lines would be a fifth of the tokens that are read."""

_NUMBER = re.compile(r" *(\d+)\t")
"""Matches the number in front of a line as `read_file` gives it."""


def head(text: str, max_tokens: int, count: Count) -> str:
    """The beginning of a text, at most `max_tokens`, with an ellipsis where something is left out."""
    total = count(text)
    if total <= max_tokens:
        return text
    keep = int(len(text) * max(0, max_tokens) / total)
    while keep > 0 and count(text[:keep]) + 1 > max_tokens:
        keep = keep * 7 // 8
    return text[: safe_cut(text, keep)].rstrip() + "…" if keep > 0 else ""


def safe_cut(text: str, place: int) -> int:
    """The nearest index at or before `place` that does not separate a character from its accents or joiners."""
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
