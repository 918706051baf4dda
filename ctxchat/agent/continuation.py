"""Where a reply that was cut off goes on: what the model says again of it is left out. Pure, piece by piece.

Some servers (llama.cpp, Mistral's) give a beginning they were handed back with the reply, and a model that is only told to go on
often begins its last sentence anew.
"""

from __future__ import annotations

LEAST = 24
"""Characters that must be the same before they are taken for said again: a word or two may well follow itself."""


class Continuation:
    """The seam between `before`, a text that was cut off, and what comes now."""

    def __init__(self, before: str) -> None:
        self._before = before
        self._held = ""
        self._open = bool(before)

    def take(self, text: str) -> str:
        """What is new in `text`; empty while it may still be something that was said before."""
        if not self._open:
            return text
        self._held += text
        return "" if self._held in self._before else self.end()

    def end(self) -> str:
        """What was held back and is new after all."""
        held, self._held, self._open = self._held, "", False
        rest = held[said_again(self._before, held) :]
        return rest.lstrip() if self._before[-1:].isspace() else rest


def said_again(before: str, after: str) -> int:
    """How many characters at the beginning of `after` repeat the end of `before`; 0 for fewer than `LEAST`, unless they are
    all of it. White space at the end of `before` may be missing: no provider is sent it."""
    trimmed = before.rstrip()
    least = max(1, min(LEAST, len(trimmed)))
    for length in range(min(len(before), len(after)), least - 1, -1):
        if before.endswith(after[:length]) or trimmed.endswith(after[:length]):
            return length
    return 0
