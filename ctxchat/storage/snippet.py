"""What to show of a text in which something was found: a line with marks, or the passage around it. Pure; knows no database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ctxchat.core.sanitize import clean
from ctxchat.core.stems import apart, fold

_BEFORE, _LENGTH = 60, 200  # characters
_MAX_FOLDED_CHARS = 50_000  # characters that are searched without regard to accents
_LINE_END, _SENTENCE_END, _WORD_END = re.compile(r"\n"), re.compile(r"[.!?;。！？](?=\s|$)\s?"), re.compile(r"\s")
_SLACK_CHARS = 200  # characters within which a passage is cut at a bound
_CHARS_BEFORE, _PASSAGE_CHARS = 400, 1_200  # characters of a passage: before the place, and in all


def snippet(
    text: str, wanted: Sequence[str], marks: tuple[str, str], parts: Sequence[str] = (), near: int | None = None
) -> str:
    """About 200 characters around the first term found, each term between marks; one line, without control characters.

    Where no term is there in whole words, `parts` (beginnings of its words) are marked instead, and where these are not, terms
    inside longer words. `near`: where the best place is.
    """
    whole, inside = [_loose(term) for term in wanted], [_loose(term, whole=False) for term in wanted]
    for found in (whole, [_beginning(fold(part)) for part in parts], inside):
        pattern = re.compile("|".join(sorted(found, key=len, reverse=True)) or r"(?!)", re.IGNORECASE)
        if (start := _first(text, pattern, near or 0)) is not None:
            break
    place = start or 0
    begin = max(0, place - _BEFORE)
    if begin:  # on a word, where one begins near
        begin = next((i + 1 for i in range(begin, min(begin + 20, place)) if text[i].isspace()), begin)
    part = text[begin : begin + _LENGTH]
    marked = _mark(_one_line(clean(part)), pattern, marks)
    return f"{'…' if begin else ''}{marked}{'…' if begin + _LENGTH < len(text) else ''}"


def passage(text: str, place: int) -> tuple[str, bool]:
    """The lines around a place, about 1,200 characters, and whether that is all of the text."""
    if len(text) <= _PASSAGE_CHARS:
        return text, True
    begin = max(0, min(place - _CHARS_BEFORE, len(text) - _PASSAGE_CHARS))
    if begin:
        begin = _bound(text, max(0, begin - _SLACK_CHARS), begin + 1, first=False)
    end = min(len(text), begin + _PASSAGE_CHARS)
    if end < len(text):
        end = _bound(text, end, min(len(text), end + _SLACK_CHARS), first=True)
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}", False


def _bound(text: str, first_place: int, last: int, *, first: bool) -> int:
    """Where a line ends among these places, else a sentence, else a word: just behind it. The first such place, or the last."""
    for bound in (_LINE_END, _SENTENCE_END, _WORD_END):
        found = [match.end() for match in bound.finditer(text, first_place, last)]
        if found:
            return found[0] if first else found[-1]
    return first_place if first else last - 1


def _loose(term: str, *, whole: bool = True) -> str:
    """The term as the index reads it: whatever stands between its words; `whole`: no part of a longer word."""
    words = re.findall(r"\w+", fold(term)) or [term]
    found = r"[\W_]+".join(re.escape(word) for word in words)
    before, after = (r"(?<![^\W_])", r"(?![^\W_])") if whole else ("", "")
    return f"{before if _spaced(words[0][:1]) else ''}{found}{after if _spaced(words[-1][-1:]) else ''}"


def _beginning(part: str) -> str:
    """Where a word begins so; anywhere in scripts without spaces."""
    return rf"(?<![^\W_]){re.escape(part)}[^\W_]*" if _spaced(part) else re.escape(part)


def _spaced(text: str) -> bool:
    """In a script that has spaces between its words."""
    return apart(text) == text


def _first(text: str, pattern: re.Pattern[str], near: int) -> int | None:
    found = pattern.search(text, near) or pattern.search(text) or pattern.search(fold(text[:_MAX_FOLDED_CHARS]))
    return found.start() if found else None


def _mark(line: str, pattern: re.Pattern[str], marks: tuple[str, str]) -> str:
    pieces: list[str] = []
    last = 0
    for found in pattern.finditer(fold(line)):
        pieces += (line[last : found.start()], marks[0], line[found.start() : found.end()], marks[1])
        last = found.end()
    return "".join([*pieces, line[last:]])


def _one_line(text: str) -> str:
    return "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
