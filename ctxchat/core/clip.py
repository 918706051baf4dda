"""Cutting long text to a number of tokens: head and tail kept, a mark between them, never inside a character."""

from __future__ import annotations

import unicodedata

from ctxchat.core.tokens import Count

_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")


def clip(text: str, max_tokens: int, count: Count, mark: str = "\n[… {tokens} tokens left out …]\n") -> str:
    """The text itself where it fits, else two thirds head and one third tail around a mark that says how much is missing.

    The result is at most `max_tokens` by `count`, unless the mark alone is more. `{tokens}` in the mark is filled in.
    """
    total = count(text)
    if total <= max_tokens:
        return text
    room = max_tokens - count(mark.replace("{tokens}", str(total)))
    keep = int(len(text) * max(0, room) / total)
    while True:
        head, tail = text[: safe_cut(text, keep * 2 // 3)], text[safe_cut(text, len(text) - keep // 3) :]
        missing = count(text[len(head) : len(text) - len(tail)])
        clipped = f"{head}{mark.replace('{tokens}', str(missing))}{tail}"
        if keep <= 0 or count(clipped) <= max_tokens:
            return clipped
        keep = keep * 7 // 8


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
