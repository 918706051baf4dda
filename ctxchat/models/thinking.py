"""Telling thoughts from the answer where a server sends both as one text, between `<think>` tags."""

from __future__ import annotations

from typing import Literal

from ctxchat.core.ports import ReasoningPiece, TextPiece

_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}

Pieces = list[TextPiece | ReasoningPiece]


class ThinkSplitter:
    """Feed it text as it comes; a tag may be cut anywhere. Only a tag the reply begins with counts: one that is written
    about later is part of the answer."""

    def __init__(self) -> None:
        self._held = ""
        self._end = ""
        self._place: Literal["start", "thought", "gap", "answer"] = "start"

    def feed(self, text: str) -> Pieces:
        """The pieces that are certain by now."""
        self._held += text
        if self._place == "start":
            self._begin()
        pieces: Pieces = []
        if self._place == "thought" and (thought := self._thought()):
            pieces.append(ReasoningPiece(thought))
        if self._place == "gap":
            self._held = self._held.lstrip("\n")
            self._place = "answer" if self._held else "gap"
        if self._place == "answer" and self._held:
            pieces.append(TextPiece(self._take(len(self._held))))
        return pieces

    def flush(self) -> Pieces:
        """What was held back, when the reply is over."""
        held = self._take(len(self._held))
        if not held.strip():
            return []
        return [ReasoningPiece(held) if self._place == "thought" else TextPiece(held)]

    def _begin(self) -> None:
        start = self._held.lstrip()
        for tag, end in _TAGS.items():
            if start.startswith(tag):
                self._held, self._end, self._place = start[len(tag) :], end, "thought"
                return
        if not any(tag.startswith(start) for tag in _TAGS):
            self._place = "answer"

    def _thought(self) -> str:
        at = self._held.find(self._end)
        if at < 0:
            return self._take(len(self._held) - _overlap(self._held, self._end))
        thought = self._take(at)
        self._take(len(self._end))
        self._place = "gap"
        return thought

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-n:])), 0)
