"""The conversation: a window over the record. Some two dozen items are widgets; older ones are made when scrolled to.

Stays at its end while text arrives, unless the reader has scrolled away. Knows the record's items and live widgets, no session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.tui.reading.history import Shown
from ctxchat.tui.widgets.blocks import CompactionMark
from ctxchat.tui.widgets.fold import Fold
from ctxchat.tui.widgets.record_blocks import Tokens, widgets_for
from ctxchat.tui.widgets.reply import ReplyBlock

MOST = 24
"""Items that are widgets at a time while the reader is at the end."""

STEP = 12
"""Items made at once on the way up or down."""


class More(Static, can_focus=True):
    """How many messages are above or below the window; press it for some of them."""

    BINDINGS = [("enter,space", "press", "Show")]

    class Pressed(Message):
        """Show more in this direction."""

        def __init__(self, older: bool) -> None:
            super().__init__()
            self.older = older

    def __init__(self, older: bool) -> None:
        super().__init__(classes="more", markup=False)
        self._older = older
        self.display = False

    def say(self, count: int) -> None:
        """None: nothing there."""
        self.display = count > 0
        arrow, word = ("▲", "earlier") if self._older else ("▼", "later")
        self.update(Content(f"{arrow} {count:,} {word} message{'' if count == 1 else 's'}"))

    def action_press(self) -> None:
        self.post_message(self.Pressed(self._older))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_press()


class Transcript(VerticalScroll):
    """`show` a record, `add` live widgets, `settle` what they became.

    Laid out by `vertical`, not by Textual's faster `stream`: that one keeps the old height of a child whose inside has
    grown when a later child changes in the same moment (8.2.8), which cuts answers off.
    """

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self.items: list[Shown] = []
        self._start = self._stop = 0
        self._blocks: dict[str, list[Widget]] = {}
        self._live: list[Widget] = []
        self._tokens: Tokens = {}
        self._moving = False
        self._unfolded = False
        self._placing = asyncio.Lock()  # the window is made anew by one at a time

    def compose(self) -> ComposeResult:
        yield More(older=True)
        yield More(older=False)

    def on_mount(self) -> None:
        self.anchor()

    @property
    def _older(self) -> Widget:
        return self.children[0]

    @property
    def _newer(self) -> Widget:
        return next(w for w in reversed(self.children) if isinstance(w, More))

    # ── the record ──

    async def show(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """All anew, at its end."""
        self.items, self._tokens = list(items), tokens
        self._live = []
        await self._window(max(0, len(self.items) - MOST), len(self.items))
        self.anchor()

    async def settle(self, items: Sequence[Shown], tokens: Tokens, places: dict[str, list[Widget]]) -> None:
        """The record has grown: `places` says which live widgets now stand for which item."""
        known = {shown.key for shown in self.items}
        at_end = self._stop == len(self.items)
        if [s.key for s in items[: len(self.items)]] != [s.key for s in self.items]:  # something came in between
            await self._redo(items, tokens, at_end)
            return
        self.items, self._tokens = list(items), tokens
        fresh = [s for s in items if s.key not in known]
        for shown in fresh:
            mine = places.get(shown.key, [])
            self._live = [w for w in self._live if w not in mine]
            if at_end and not mine:
                mine = widgets_for(shown, tokens)
                await self.mount(*mine, before=self._newer)
            elif at_end:  # what has settled stands before the line that ends the record, what is live behind it
                self.move_child(self._newer, after=mine[-1])
            if at_end:
                self._blocks[shown.key] = mine
            else:
                await self.remove_children(mine)
        if at_end:
            self._stop = len(self.items)
            await self._trim()
        self._say()

    async def weigh(self, tokens: Tokens) -> None:
        """Draw anew with what everything costs, where that was not known; what is being read stays where it is."""
        async with self._placing:
            if tokens and not self._tokens and self.items:
                await self._weigh(tokens)

    async def _weigh(self, tokens: Tokens) -> None:
        self._tokens = tokens
        reading, y = not self._at_end, self.scroll_y
        gone_to = next((key for key, ws in self._blocks.items() if any(w.has_class("-found") for w in ws)), "")
        await self._window(self._start, self._stop, keep_live=True)
        if gone_to:
            await self._go_to(gone_to)
        elif reading:
            self.scroll_to(y=y, animate=False)

    async def _redo(self, items: Sequence[Shown], tokens: Tokens, at_end: bool) -> None:
        y = self.scroll_y
        self.items, self._tokens = list(items), tokens
        stop = len(self.items) if at_end else min(self._stop, len(self.items))
        await self._window(max(0, min(self._start, stop - 1)), stop)
        if not self.is_vertical_scroll_end and not self._at_end:
            self.scroll_to(y=y, animate=False)

    # ── the turn in progress ──

    async def add(self, *widgets: Widget) -> None:
        """Widgets of the turn in progress, or notices that are in no record, at the very end."""
        self._live += widgets
        for widget in widgets:
            if self._unfolded and isinstance(widget, Fold):
                widget.unfolded = True
        await self.mount(*widgets)

    async def discard(self, *widgets: Widget) -> None:
        """Live widgets that are to go."""
        self._live = [w for w in self._live if w not in widgets]
        await self.remove_children([w for w in widgets if w.is_attached])

    async def to_end(self) -> None:
        """The reader is at the newest line from now on."""
        if self._stop < len(self.items):
            await self._window(max(0, len(self.items) - MOST), len(self.items), keep_live=True)
        self._anchor_released = False
        self.anchor()

    # ── the window ──

    async def go_to(self, key: str) -> None:
        """Scroll to an item of the record, made first where needed."""
        async with self._placing:
            await self._go_to(key)

    async def _go_to(self, key: str) -> None:
        index = next((i for i, s in enumerate(self.items) if s.key == key), None)
        if index is None:
            return
        if not self._start <= index < self._stop:
            start = max(0, index - STEP // 2)
            await self._window(start, min(len(self.items), start + MOST), keep_live=True)
        if widgets := self._blocks.get(key):
            self.release_anchor()
            widgets[0].scroll_visible(top=True, animate=False)
            for widget in widgets:
                widget.add_class("-found")
                self.set_timer(1.5, lambda w=widget: w.remove_class("-found"))

    async def _window(self, start: int, stop: int, keep_live: bool = False) -> None:
        stay = {id(w) for w in self._live} if keep_live else set()
        self._moving = True
        with self.app.batch_update():
            await self.remove_children([w for w in self.children if not isinstance(w, More) and id(w) not in stay])
            self._start, self._stop = start, stop
            self._blocks = {s.key: widgets_for(s, self._tokens) for s in self.items[start:stop]}
            await self.mount(*[w for ws in self._blocks.values() for w in ws], before=self._newer)
            self._unfold()
            self._say()
        self._moving = False

    def _say(self) -> None:
        older, newer = self._older, self._newer
        assert isinstance(older, More) and isinstance(newer, More)
        older.say(sum(s.messages for s in self.items[: self._start]))
        newer.say(sum(s.messages for s in self.items[self._stop :]))

    async def _trim(self) -> None:
        """At the end, the oldest go; while someone reads further up, nothing moves."""
        extra = self._stop - self._start - MOST
        if extra >= STEP and self._at_end:
            await self._forget(self._start, self._start + extra)
            self._start += extra

    async def _forget(self, start: int, stop: int) -> None:
        gone = [w for s in self.items[start:stop] for w in self._blocks.pop(s.key, [])]
        await self.remove_children(gone)

    @property
    def _at_end(self) -> bool:
        return not self._anchor_released or self.scroll_y >= self.max_scroll_y - 1

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving or old_value == new_value:
            return
        if new_value <= 1 and new_value < old_value and self._start > 0:
            self.call_next(self.show_older)
        elif new_value > old_value and self._at_end and self._stop < len(self.items):
            self.call_next(self.show_newer)

    def release_anchor(self) -> None:
        """Only where there is something to scroll to: short conversations stay by the composer."""
        if self.max_scroll_y > 0:
            super().release_anchor()

    async def show_older(self) -> None:
        """Some items before the window, without moving what is being read."""
        if self._start == 0 or self._moving:
            return
        self._moving = True
        start = max(0, self._start - STEP)
        self.release_anchor()
        height, y = self.virtual_size.height, self.scroll_y
        fresh = {s.key: widgets_for(s, self._tokens) for s in self.items[start : self._start]}
        with self.app.batch_update():
            await self.mount(*[w for ws in fresh.values() for w in ws], after=self._older)
            self._blocks = fresh | self._blocks
            self._start = start
            if self._stop - self._start > MOST + 2 * STEP:
                await self._forget(self._stop - STEP, self._stop)
                self._stop -= STEP
                height = -1
            self._unfold()
            self._say()
        anchor = next(iter(self.items[start + len(fresh) : start + len(fresh) + 1]), None)
        self.call_after_refresh(self._hold, anchor.key if anchor else "", height, y)

    def _hold(self, key: str, height: int, y: float) -> None:
        grown = self.virtual_size.height - height
        if height >= 0 and grown > 0:
            self.scroll_to(y=y + grown, animate=False, immediate=True)
        elif widgets := self._blocks.get(key):
            widgets[0].scroll_visible(top=True, animate=False, immediate=True)
        self._moving = False

    async def show_newer(self) -> None:
        """Some items behind the window."""
        if self._stop >= len(self.items) or self._moving:
            return
        self._moving = True
        stop = min(len(self.items), self._stop + STEP)
        fresh = {s.key: widgets_for(s, self._tokens) for s in self.items[self._stop : stop]}
        await self.mount(*[w for ws in fresh.values() for w in ws], before=self._newer)
        self._blocks |= fresh
        self._stop = stop
        self._unfold()
        self._say()
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
        if self._unfolded:
            self.toggle_details()
            self.toggle_details()

    def last_answer(self) -> str:
        """The words of the newest reply on screen."""
        replies = [r for r in self.query(ReplyBlock) if r.text.strip()]
        return replies[-1].text if replies else ""

    def marks(self) -> list[CompactionMark]:
        """The compactions in the window."""
        return list(self.query(CompactionMark))
