"""A line that unfolds: the base of tool calls and reasoning. The body is made when it is first asked for."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.tui.widgets.blocks import Line


class FoldHead(Line):
    """The line itself; drawn by the fold it belongs to."""

    def __init__(self, fold: Fold) -> None:
        super().__init__(classes="fold-head")
        self._fold = fold

    def line(self, width: int) -> Content:
        return self._fold.head(width)

    def on_click(self, event: Click) -> None:
        event.stop()
        self._fold.toggle()


class Fold(Widget, can_focus=True):
    """Folded to one line until asked."""

    BINDINGS = [Binding("enter,space", "unfold", "Unfold", show=False)]
    unfolded: reactive[bool] = reactive(False, init=False)

    def compose(self) -> ComposeResult:
        yield FoldHead(self)

    def head(self, width: int) -> Content:
        """The line in this many cells."""
        raise NotImplementedError

    def body(self) -> Content:
        """What unfolds."""
        raise NotImplementedError

    @property
    def sign(self) -> str:
        """▸ folded, ▾ unfolded."""
        return "▾" if self.unfolded else "▸"

    def toggle(self) -> None:
        """Fold or unfold."""
        self.unfolded = not self.unfolded

    def action_unfold(self) -> None:
        self.toggle()

    async def watch_unfolded(self, unfolded: bool) -> None:
        await self.query(".body").remove()
        if unfolded:
            await self.mount(Static(self.body(), markup=False, classes="body"))
        self.redraw()

    def redraw(self) -> None:
        """After a change of what the line says."""
        for head in self.query(FoldHead):
            head.refresh()

    def redraw_body(self) -> None:
        """After a change of what is inside; nothing while folded."""
        for body in self.query(".body").results(Static):
            body.update(self.body())
