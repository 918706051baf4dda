"""The conversation: where one reads in it. Which of its items are widgets is the `record_window`'s.

Stays at its end while text arrives, unless the reader has scrolled away. Knows the record's items and live widgets, no session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget

from ctxchat.tui.reading.history import Shown
from ctxchat.tui.widgets.compaction_mark import CompactionMark
from ctxchat.tui.widgets.fold import Fold
from ctxchat.tui.widgets.more import More
from ctxchat.tui.widgets.record_blocks import Tokens
from ctxchat.tui.widgets.record_window import RecordWindow
from ctxchat.tui.widgets.reply import ReplyBlock

STANDS_OUT = 5.0
"""Seconds for which what was gone to has another ground: long enough to be found by an eye that was elsewhere."""


class Transcript(VerticalScroll):
    """`show` a record, `add` live widgets, `settle` what they became.

    Laid out by `vertical`, not by Textual's faster `stream`: that one keeps the old height of a child whose inside has
    grown when a later child changes in the same moment (8.2.8), which cuts answers off.
    """

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self.window = RecordWindow(self)
        self._moving = False
        self._unfolded = False
        self._placing = asyncio.Lock()  # the window is made anew by one at a time

    def compose(self) -> ComposeResult:
        yield self.window.above
        yield self.window.below

    def on_mount(self) -> None:
        self.anchor()

    @property
    def items(self) -> Sequence[Shown]:
        """All of the record, in the window or not."""
        return self.window.items

    @property
    def moving(self) -> bool:
        """Items are being made or put away."""
        return self._moving

    # ── the record ──

    async def show(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """All anew, at its end."""
        self.window.items, self.window.tokens = list(items), tokens
        await self._show(*self.window.newest)
        self.anchor()

    async def settle(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Widget]]) -> None:
        """The record has grown: `places` says which live widgets now stand for which item."""
        window = self.window
        if not window.grows_to(items):
            await self._redo(items, tokens)
            return
        await window.grow(items, tokens, places)
        if window.at_end and self._at_end:  # while someone reads further up, nothing moves
            await window.trim()

    async def weigh(self, tokens: Tokens) -> None:
        """Draw anew with what everything costs, where that was not known; what is being read stays where it is."""
        async with self._placing:
            if tokens and not self.window.tokens and self.items:
                await self._weigh(tokens)

    async def _weigh(self, tokens: Tokens) -> None:
        window = self.window
        window.tokens = tokens
        reading, y = not self._at_end, self.scroll_y
        gone_to = window.key_where("-found")
        await self._show(window.start, window.stop, keep_live=True)
        if gone_to:
            await self._go_to(gone_to)
        elif reading:
            self.scroll_to(y=y, animate=False)

    async def _redo(self, items: Sequence[Shown], tokens: Tokens) -> None:
        window, y = self.window, self.scroll_y
        stop = len(items) if window.at_end else min(window.stop, len(items))
        window.items, window.tokens = list(items), tokens
        await self._show(max(0, min(window.start, stop - 1)), stop)
        if not self.is_vertical_scroll_end and not self._at_end:
            self.scroll_to(y=y, animate=False)

    async def _show(self, start: int, stop: int, *, keep_live: bool = False) -> None:
        self._moving = True
        with self.app.batch_update():
            await self.window.show(start, stop, keep_live=keep_live)
            self._unfold()
        self._moving = False

    # ── the turn in progress ──

    async def add(self, *widgets: Widget) -> None:
        """Widgets of the turn in progress, or notices that are in no record, at the very end."""
        if not self.is_attached:
            return  # on the way out: nowhere to say it
        for widget in widgets:
            if self._unfolded and isinstance(widget, Fold):
                widget.unfolded = True
        await self.window.add(*widgets)

    async def discard(self, *widgets: Widget) -> None:
        """Live widgets that are to go."""
        await self.window.discard(*widgets)

    # ── where one reads ──

    async def to_end(self) -> None:
        """The reader is at the newest line from now on."""
        if not self.window.at_end:
            await self._show(*self.window.newest, keep_live=True)
        self._anchor_released = False
        self.anchor()

    async def go_to(self, key: str) -> None:
        """Scroll to an item of the record, made first where needed."""
        async with self._placing:
            await self._go_to(key)

    async def _go_to(self, key: str) -> None:
        window = self.window
        where = window.around(key)
        if where is None:
            return
        if where != (window.start, window.stop):
            await self._show(*where, keep_live=True)
        if widgets := window.widgets(key):
            self.release_anchor()
            # Not before the chat is laid out: under the screen one came from it was not, and a question may have come meanwhile.
            self.call_after_refresh(self._bring, widgets[0])
            for widget in widgets:
                widget.add_class("-found")
                self.set_timer(STANDS_OUT, lambda w=widget: w.remove_class("-found"))

    def _bring(self, widget: Widget) -> None:
        """Scroll to a widget; who comes to the end by it stays there when a question below takes room."""
        widget.scroll_visible(top=True, animate=False, immediate=True)
        if self.window.at_end and self._at_end:
            self.anchor()

    @property
    def _at_end(self) -> bool:
        return not self._anchor_released or self.scroll_y >= self.max_scroll_y - 1

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving or old_value == new_value:
            return
        if new_value <= 1 and new_value < old_value and self.window.start > 0:
            self.call_next(self.show_older)
        elif new_value > old_value and self._at_end and not self.window.at_end:
            self.call_next(self.show_newer)

    def release_anchor(self) -> None:
        """Only where there is something to scroll to: short conversations stay by the composer."""
        if self.max_scroll_y > 0:
            super().release_anchor()

    async def show_older(self) -> None:
        """Some items before the window, without moving what is being read."""
        window = self.window
        if window.start == 0 or self._moving:
            return
        self._moving = True
        self.release_anchor()
        first = window.items[window.start].key if window.start < len(window.items) else ""
        height, y = self.virtual_size.height, self.scroll_y
        with self.app.batch_update():
            if await window.step_up():
                height = -1
            self._unfold()
        self.call_after_refresh(self._hold, first, height, y)

    def _hold(self, key: str, height: int, y: float) -> None:
        """Back to what was being read: by as much as the transcript has grown, else (no `height`) by the item."""
        grown = self.virtual_size.height - height
        if height >= 0 and grown > 0:
            self.scroll_to(y=y + grown, animate=False, immediate=True)
        elif widgets := self.window.widgets(key):
            widgets[0].scroll_visible(top=True, animate=False, immediate=True)
        self._moving = False

    async def show_newer(self) -> None:
        """Some items behind the window."""
        if self.window.at_end or self._moving:
            return
        self._moving = True
        await self.window.step_down()
        self._unfold()
        self._moving = False

    async def on_more_pressed(self, event: More.Pressed) -> None:
        event.stop()
        await (self.show_older() if event.older else self.show_newer())

    # ── details ──

    def toggle_details(self) -> None:
        """Unfold all that can be, or fold it."""
        self._unfolded = not self._unfolded
        for fold in self.query(Fold):
            fold.unfolded = self._unfolded

    def _unfold(self) -> None:
        """What was made since details were asked for."""
        if self._unfolded:
            for fold in self.query(Fold):
                fold.unfolded = True

    def last_answer(self) -> str:
        """The words of the newest reply on screen."""
        replies = [r for r in self.query(ReplyBlock) if r.text.strip()]
        return replies[-1].text if replies else ""

    def marks(self) -> list[CompactionMark]:
        """The compactions in the window."""
        return list(self.query(CompactionMark))
