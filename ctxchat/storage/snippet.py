"""Cuts out of a text what search shows of it: a line with the terms marked, or the passage around them. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ctxchat.core.sanitize import clean
from ctxchat.core.stems import apart, fold

_BEFORE, _LENGTH = 60, 200  # characters
_MAX_FOLDED_CHARS = 50_000  # characters that are searched ignoring accents
_LINE_END, _SENTENCE_END, _WORD_END = re.compile(r"\n"), re.compile(r"[.!?;。！？](?=\s|$)\s?"), re.compile(r"\s")
_SLACK_CHARS = 200  # characters by which a passage may be shorter or longer, to end at a line, sentence or word
_CHARS_BEFORE, _PASSAGE_CHARS = 400, 1_200  # characters of a passage: before the position, and in all


def snippet(
    text: str, wanted: Sequence[str], marks: tuple[str, str], parts: Sequence[str] = (), near: int | None = None
) -> str:
    """About 200 characters around the first term found, with each term between marks, on one line without control characters.

    Where no term is found as a whole word, `parts` (beginnings of words) are marked, and failing these, terms inside longer
    words. `near` is the offset from which to look first.
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


def passage(text: str, offset: int) -> tuple[str, bool]:
    """The lines around an offset, about 1,200 characters, and whether that is the whole text."""
    if len(text) <= _PASSAGE_CHARS:
        return text, True
    begin = max(0, min(offset - _CHARS_BEFORE, len(text) - _PASSAGE_CHARS))
    if begin:
        begin = _bound(text, max(0, begin - _SLACK_CHARS), begin + 1, first=False)
    end = min(len(text), begin + _PASSAGE_CHARS)
    if end < len(text):
        end = _bound(text, end, min(len(text), end + _SLACK_CHARS), first=True)
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}", False


def _bound(text: str, start: int, last: int, *, first: bool) -> int:
    """The offset after the end of a line between two offsets, else of a sentence, else of a word: the first such end, or the
    last."""
    for bound in (_LINE_END, _SENTENCE_END, _WORD_END):
        ends = [match.end() for match in bound.finditer(text, start, last)]
        if ends:
            return ends[0] if first else ends[-1]
    return start if first else last - 1


def _loose(term: str, *, whole: bool = True) -> str:
    """The regular expression for a term, with any punctuation between its words, as in the index. `whole` excludes parts of
    longer words."""
    words = re.findall(r"\w+", fold(term)) or [term]
    regex = r"[\W_]+".join(re.escape(word) for word in words)
    before, after = (r"(?<![^\W_])", r"(?![^\W_])") if whole else ("", "")
    return f"{before if _spaced(words[0][:1]) else ''}{regex}{after if _spaced(words[-1][-1:]) else ''}"


def _beginning(part: str) -> str:
    """The regular expression for words that begin with `part`; anywhere, in scripts without spaces."""
    return rf"(?<![^\W_]){re.escape(part)}[^\W_]*" if _spaced(part) else re.escape(part)


def _spaced(text: str) -> bool:
    """Whether the text's script separates words by spaces."""
    return apart(text) == text


def _first(text: str, pattern: re.Pattern[str], near: int) -> int | None:
    match = pattern.search(text, near) or pattern.search(text) or pattern.search(fold(text[:_MAX_FOLDED_CHARS]))
    return match.start() if match else None


def _mark(line: str, pattern: re.Pattern[str], marks: tuple[str, str]) -> str:
    """The line with `marks` around each match, regardless of accents."""
    pieces: list[str] = []
    last = 0
    for match in pattern.finditer(fold(line)):
        pieces += (line[last : match.start()], marks[0], line[match.start() : match.end()], marks[1])
        last = match.end()
    return "".join([*pieces, line[last:]])


def _one_line(text: str) -> str:
    return "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
