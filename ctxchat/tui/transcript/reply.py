"""What the model says, arriving or whole: Markdown from its first word on."""

from __future__ import annotations

from textual.content import Content

from ctxchat.tui.reading.text import cut
from ctxchat.tui.transcript.block import INDENT, Block
from ctxchat.tui.transcript.lines import DrawnLine, hung, wrapped
from ctxchat.tui.transcript.markdown import GrowingMarkdown

WORDS = Content.styled("◌ interrupted, kept as it was", "$text-warning")
OFFER = WORDS.append("   ").append(Content.styled("/continue", "$text-accent")).append(" goes on from here")

LONGEST = 400_000
"""Characters of a stored reply that are drawn; of a longer one, which no model writes, a line says how much more there is."""


class ReplyBlock(Block):
    """One text by the model. One that was `interrupted` says so, and where it is `offered` how to go on."""

    above = below = 1

    def __init__(self, text: str = "", *, interrupted: bool = False) -> None:
        self._pieces = [text] if text else []
        self.interrupted, self._offered = interrupted, False
        self._growing: GrowingMarkdown | None = None

    @property
    def text(self) -> str:
        """What has arrived so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def feed(self, text: str) -> None:
        """More of it."""
        self._pieces.append(text)
        if self._growing:
            self._growing.feed(text)
        self.changed()

    def finish(self, interrupted: bool = False) -> None:
        """It is whole, or all there will be."""
        self.interrupted = interrupted
        if self._growing and self._growing.patched:
            self._growing = None
        self.changed()

    def offer(self, offered: bool) -> None:
        """It is the end of the conversation, and can be gone on with; or not any more."""
        if offered != self._offered:
            self._offered = offered
            self.changed()

    def draw(self, width: int) -> list[DrawnLine]:
        if self._growing is None or self._growing.width != width:
            self._growing = GrowingMarkdown(width, INDENT)
            self._growing.feed(cut(self.text, LONGEST))
        lines = self._growing.lines()
        if self.interrupted:
            lines += hung(wrapped(OFFER if self._offered else WORDS, max(1, width - 1)), INDENT)
        return lines
