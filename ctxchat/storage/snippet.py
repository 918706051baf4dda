"""A line of text around what was found, with marks. Pure; knows no database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_BEFORE, _LENGTH = 60, 200  # characters
_FOLDED = 50_000  # characters that are searched without regard to accents


def snippet(text: str, wanted: Sequence[str], marks: tuple[str, str]) -> str:
    """About 200 characters around the first term found, each term between marks; one line, without control characters."""
    pattern = re.compile("|".join(_loose(term) for term in sorted(wanted, key=len, reverse=True)), re.IGNORECASE)
    start = _first(text, pattern)
    begin = max(0, start - _BEFORE)
    if begin:  # on a word, where one begins near
        begin = next((i + 1 for i in range(begin, min(begin + 20, start)) if text[i].isspace()), begin)
    part = text[begin : begin + _LENGTH]
    marked = _mark(_one_line(part), pattern, marks)
    return f"{'…' if begin else ''}{marked}{'…' if begin + _LENGTH < len(text) else ''}"


def _loose(term: str) -> str:
    """The term as the index reads it: whatever stands between its words."""
    words = re.findall(r"\w+", _fold(term)) or [term]
    return r"[\W_]+".join(re.escape(word) for word in words)


def _first(text: str, pattern: re.Pattern[str]) -> int:
    found = pattern.search(text) or pattern.search(_fold(text[:_FOLDED]))
    return found.start() if found else 0


def _mark(line: str, pattern: re.Pattern[str], marks: tuple[str, str]) -> str:
    pieces: list[str] = []
    last = 0
    for found in pattern.finditer(_fold(line)):
        pieces += (line[last : found.start()], marks[0], line[found.start() : found.end()], marks[1])
        last = found.end()
    return "".join([*pieces, line[last:]])


def _one_line(text: str) -> str:
    return "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)


def _fold(text: str) -> str:
    """The text without accents, of the same length."""
    return text if text.isascii() else "".join(unicodedata.normalize("NFD", c)[0] for c in text)
