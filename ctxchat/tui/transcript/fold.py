"""Blocks that unfold: a line that stands for the whole, and what is in it. Reasoning is one."""

from __future__ import annotations

from textual.content import Content

from ctxchat.tui.reading.text import clean, short
from ctxchat.tui.transcript.block import INDENT, Block
from ctxchat.tui.transcript.lines import LEAST, NOTHING, DrawnLine, excerpt, hung, spread, target, wrapped


class Fold(Block):
    """Folded to one line until asked."""

    keys = {"enter": "fold", "space": "fold"}

    def __init__(self, *, unfolded: bool = False) -> None:
        self.unfolded = unfolded

    def head(self, width: int) -> Content:
        """The line in this many cells."""
        raise NotImplementedError

    def foot(self, width: int) -> Content:
        """A line below it that is there folded as well; empty for none."""
        return NOTHING

    def body(self) -> Content:
        """What unfolds."""
        raise NotImplementedError

    @property
    def sign(self) -> str:
        """▸ folded, ▾ unfolded."""
        return "▾" if self.unfolded else "▸"

    def press(self, what: str) -> None:
        if what == "fold":
            self.unfolded = not self.unfolded
            self.changed()

    def draw(self, width: int) -> list[DrawnLine]:
        room = max(1, width - 1)
        lines = [DrawnLine(target(self.head(room), "fold"), INDENT)]
        if foot := self.foot(room):
            lines.append(DrawnLine(foot, INDENT))
        if self.unfolded and (body := self.body()):
            bar = Content.assemble("   ", ("│", "$rule"), " ") if width >= LEAST else INDENT
            lines += hung(wrapped(body, max(1, width - bar.cell_length)), bar, bar)
            lines.append(DrawnLine(NOTHING))
        return lines


class ThinkingBlock(Fold):
    """Reasoning: folded to a line with its size."""

    def __init__(
        self,
        text: str = "",
        *,
        streaming: bool = False,
        unfolded: bool = False,
        words: tuple[str, str] = ("thinking", "thought"),
    ) -> None:
        super().__init__(unfolded=unfolded)
        self._words = words
        self._text, self._streaming = text, streaming

    def feed(self, text: str) -> None:
        """More of it."""
        self._text += text
        self.changed()

    def finish(self) -> None:
        """It is whole."""
        self._streaming = False
        self.changed()

    def head(self, width: int) -> Content:
        """`▸ thinking   ~1.2k`, and while folded its newest line."""
        word = self._words[0 if self._streaming else 1]
        left = Content.styled(f"{self.sign} {word}", "$text-muted")
        if not self.unfolded:
            newest = (
                clean(self._text[-400:]).rstrip().rsplit("\n", 1)[-1] if self._streaming else clean(self._text[:200])
            )
            left = left.append(Content.styled("  " + " ".join(newest.split()), "italic $text-disabled"))
        return spread(left, Content.styled(f"~{short(max(1, len(self._text) // 4))}", "$text-muted"), width)

    def body(self) -> Content:
        return Content.styled(excerpt(clean(self._text), 60, 60).strip(), "$text-muted")
