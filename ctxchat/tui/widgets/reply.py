"""What the model says and thinks. A reply in progress is drawn as plain lines by one cheap widget, and made Markdown once.

Appending to Markdown while it streams is quadratic in its last block; lines are not.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.events import Resize
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.tui.reading.text import clean, short
from ctxchat.tui.widgets.blocks import excerpt, spread
from ctxchat.tui.widgets.fold import Fold

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONG_LINES, LONG_CHARS = 200, 16_000
"""From here on a finished reply is drawn once as a picture of its Markdown instead of a tree of widgets."""

PIECE = 4_000
"""Characters of a reply in progress from which its finished lines are left alone."""

LEAST, TIMES = 0.033, 4
"""Next drawing = now + max(33 ms, 4 × what the last one cost): at most a fifth of the time goes into it."""


class ReplyBlock(Widget):
    """One text by the model, arriving or whole."""

    def __init__(self, text: str = "", *, streaming: bool = False, interrupted: bool = False) -> None:
        super().__init__(classes="reply")
        self._text = text
        self._streaming = streaming
        self._interrupted = interrupted
        self._from = 0
        self._timer: Timer | None = None
        self._cost = 0.0

    @property
    def text(self) -> str:
        """What has arrived so far."""
        return self._text

    def compose(self) -> ComposeResult:
        if self._streaming:
            yield Static(Content(clean(self._text)), markup=False, classes="tail")
        else:
            yield self._finished()
            if self._interrupted:
                yield Interrupted()

    def feed(self, text: str) -> None:
        """More of it. Drawn when due."""
        self._text += text
        if self._timer is None:
            self._timer = self.set_timer(max(LEAST, TIMES * self._cost), self._draw)

    async def _draw(self) -> None:
        self._timer = None
        if not self._streaming or not self.is_mounted:
            return
        began = perf_counter()
        tail = self.query_one(".tail", Static)
        if len(self._text) - self._from > PIECE and (cut := self._text.rfind("\n", self._from) + 1) > self._from:
            done, self._from = self._text[self._from : cut], cut
            await self.mount(Static(Content(clean(done.rstrip("\n"))), markup=False), before=tail)
        shown = Content(clean(self._text[self._from :]))
        same_height = shown.get_height({}, max(1, tail.size.width)) == tail.size.height
        tail.update(shown, layout=not same_height)  # most drawings fill a line, and move nothing
        self._cost = perf_counter() - began

    async def finish(self, interrupted: bool = False) -> None:
        """It is whole, or all there will be."""
        if not self._streaming:
            return
        self._streaming = False
        if self._timer:
            self._timer.stop()
        if not self.is_mounted:
            return
        with self.app.batch_update():
            lines = list(self.children)
            await self.mount(self._finished())
            if interrupted:
                await self.mount(Interrupted())
            await self.remove_children(lines)

    def _finished(self) -> Widget:
        text = clean(self._text)
        if len(text) > LONG_CHARS or text.count("\n") > LONG_LINES:
            return FrozenMarkdown(text)
        from textual.widgets import Markdown  # heavy, and not needed for the first frame

        return Markdown(text, parser_factory=parser, open_links=False)


def parser() -> MarkdownIt:
    """As Textual's own, but only what says `http` is a link: `README.md` is a file and not a site in Moldova."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("gfm-like")
    if made.linkify is not None:
        made.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    return made


class Interrupted(Static):
    """Marks a reply that was cut off, and where it is the last says how to go on."""

    WORDS = Content("◌ interrupted, kept as it was")
    OFFER = WORDS.append("   ").append(Content.styled("/continue", "$text-accent")).append(" goes on from here")

    def __init__(self) -> None:
        super().__init__(self.WORDS, markup=False, classes="interrupted")

    def offer(self, last: bool) -> None:
        """It is the end of the conversation, or not any more."""
        self.update(self.OFFER if last else self.WORDS)


class FrozenMarkdown(Static):
    """Long Markdown as one widget: drawn for its width, selectable, drawn again when that changes."""

    def __init__(self, text: str) -> None:
        super().__init__(Content(excerpt(text, 400, 100)), markup=False)
        self._source, self._width = text, 0

    def on_resize(self, event: Resize) -> None:
        if event.size.width != self._width and event.size.width > 10:
            self._width = event.size.width
            self.update(drawn_markdown(self._source, self._width))


def drawn_markdown(text: str, width: int) -> Content:
    """Markdown as lines of this width. Links show their text only; nothing in it is live."""
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.text import Text

    console = Console(width=width, force_terminal=True, color_system="truecolor", legacy_windows=False, emoji=False)
    with console.capture() as capture:
        console.print(Markdown(text, hyperlinks=False, code_theme="ansi_dark"), end="")
    return Content.from_rich_text(Text.from_ansi(capture.get().rstrip("\n")))


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
        super().__init__(classes="thinking")
        self._words = words
        self._text, self._streaming = text, streaming
        self._timer: Timer | None = None
        self.set_reactive(Fold.unfolded, unfolded)

    def on_mount(self) -> None:
        if self.unfolded:
            self.mount(Static(self.body(), markup=False, classes="body"))

    def feed(self, text: str) -> None:
        """More of it."""
        self._text += text
        if self._timer is None:
            self._timer = self.set_timer(0.1, self._draw)

    def _draw(self) -> None:
        self._timer = None
        self.redraw()
        self.redraw_body()

    def finish(self) -> None:
        """It is whole."""
        self._streaming = False
        self._draw()

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
