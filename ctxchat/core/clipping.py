"""Cutting a long text down to its head and its tail, with a mark in between that says what is missing and where it is."""

from __future__ import annotations

from ctxchat.core.tokens import Count


def clip(text: str, max_tokens: int, count: Count, mark: str) -> str:
    """Head (two thirds) and tail (one third) of `text` in at most `max_tokens`, the mark included where it fits at all.

    `mark` may hold `{left}`: the characters left out. Cuts fall between characters, at line ends where one is near. A
    text that fits comes back as it is.
    """
    total = count(text)
    if total <= max_tokens:
        return text
    room = max(1, max_tokens - count(mark) - 4)
    keep = max(1, len(text) * room // total)
    while True:
        head, tail = _ends(text, keep)
        left = len(text) - len(head) - len(tail)
        shown = f"{head}\n{mark.replace('{left}', f'{left:,}')}\n{tail}"
        if keep <= 1 or count(shown) <= max_tokens:
            return shown
        keep = keep * 9 // 10


def _ends(text: str, keep: int) -> tuple[str, str]:
    head = text[: keep * 2 // 3]
    tail = text[len(text) - keep // 3 :] if keep >= 3 else ""
    line_end = head.rfind("\n")
    if line_end > len(head) * 3 // 4:
        head = head[:line_end]
    line_start = tail.find("\n")
    if 0 <= line_start < len(tail) // 4:
        tail = tail[line_start + 1 :]
    return head, tail
