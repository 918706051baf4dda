"""Which items of the record are widgets: a window over it, mounted between two lines that say how much lies outside.

Some two dozen at a time; others are made when they are asked for. Knows nothing of scrolling, or of where one reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.widget import Widget

from ctxchat.tui.reading.history import Shown
from ctxchat.tui.widgets.more import More
from ctxchat.tui.widgets.record_blocks import Tokens, weigh, widgets_for

MOST = 24
"""Items that are widgets at a time while the reader is at the end."""

STEP = 12
"""Items made at once on the way up or down."""


class RecordWindow:
    """The items from `start` up to `stop`, as children of `pane`. What is `live` (in no record yet) stands behind them."""

    def __init__(self, pane: Widget) -> None:
        self._pane = pane
        self.above, self.below = More(older=True), More(older=False)
        self.items: list[Shown] = []
        self.tokens: Tokens = {}
        self.start = self.stop = 0
        self._blocks: dict[str, list[Widget]] = {}
        self._live: list[Widget] = []

    @property
    def at_end(self) -> bool:
        """The newest item is in it."""
        return self.stop == len(self.items)

    def widgets(self, key: str) -> list[Widget]:
        """What stands for an item; empty where it is not in the window."""
        return self._blocks.get(key, [])

    def key_where(self, css_class: str) -> str:
        """The first item whose widgets have this class, empty for none."""
        return next((key for key, ws in self._blocks.items() if any(w.has_class(css_class) for w in ws)), "")

    def around(self, key: str) -> tuple[int, int] | None:
        """The window in which an item is: this one where it has it. None for an item the record has not."""
        index = next((i for i, s in enumerate(self.items) if s.key == key), None)
        if index is None or self.start <= index < self.stop:
            return None if index is None else (self.start, self.stop)
        start = max(0, index - STEP // 2)
        return start, min(len(self.items), start + MOST)

    @property
    def newest(self) -> tuple[int, int]:
        """The window at the end of the record."""
        return max(0, len(self.items) - MOST), len(self.items)

    # ── all anew ──

    async def show(self, start: int, stop: int, *, keep_live: bool = False) -> None:
        """These items and no others."""
        if not keep_live:
            self._live = []
        stay = {id(w) for w in (self.above, self.below, *self._live)}
        await self._pane.remove_children([w for w in self._pane.children if id(w) not in stay])
        self.start, self.stop = start, stop
        self._blocks = self._made(start, stop)
        await self._pane.mount(*_flat(self._blocks), before=self.below)
        self._say()

    # ── the record grows ──

    def grows_to(self, items: Sequence[Shown]) -> bool:
        """These are the items there are, and perhaps more behind them; False where something came in between."""
        return [s.key for s in items[: len(self.items)]] == [s.key for s in self.items]

    async def grow(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Widget]]) -> None:
        """More items at the end: `places` says which live widgets now stand for which of them. A window that is elsewhere
        stays there."""
        at_end = self.at_end
        fresh = items[len(self.items) :]
        self.items, self.tokens = list(items), tokens
        for shown in fresh:
            mine = places.get(shown.key, [])
            self._live = [w for w in self._live if w not in mine]
            if not at_end:
                await self._pane.remove_children(mine)
                continue
            if mine:  # what has settled stands before the line that ends the record, what is live behind it
                self._pane.move_child(self.below, after=mine[-1])
            else:
                mine = widgets_for(shown, tokens)
                await self._pane.mount(*mine, before=self.below)
            self._blocks[shown.key] = mine
        if at_end:
            self.stop = len(self.items)
        for shown in self.items[self.start : self.stop]:
            weigh(shown, self.widgets(shown.key), tokens)
        self._say()

    async def trim(self) -> None:
        """The oldest go, once there are so many that it is worth it."""
        extra = self.stop - self.start - MOST
        if extra >= STEP:
            await self._forget(self.start, self.start + extra)
            self.start += extra
            self._say()

    # ── what is live ──

    async def add(self, *widgets: Widget) -> None:
        """At the very end."""
        self._live += widgets
        await self._pane.mount(*widgets)

    async def discard(self, *widgets: Widget) -> None:
        """They are to go."""
        self._live = [w for w in self._live if w not in widgets]
        await self._pane.remove_children([w for w in widgets if w.is_attached])

    # ── step by step ──

    async def step_up(self) -> bool:
        """Some older items. True where newer ones went for them."""
        start = max(0, self.start - STEP)
        fresh = self._made(start, self.start)
        await self._pane.mount(*_flat(fresh), after=self.above)
        self._blocks, self.start = fresh | self._blocks, start
        full = self.stop - self.start > MOST + 2 * STEP
        if full:
            await self._forget(self.stop - STEP, self.stop)
            self.stop -= STEP
        self._say()
        return full

    async def step_down(self) -> None:
        """Some newer items."""
        stop = min(len(self.items), self.stop + STEP)
        fresh = self._made(self.stop, stop)
        await self._pane.mount(*_flat(fresh), before=self.below)
        self._blocks |= fresh
        self.stop = stop
        self._say()

    def _made(self, start: int, stop: int) -> dict[str, list[Widget]]:
        return {s.key: widgets_for(s, self.tokens) for s in self.items[start:stop]}

    async def _forget(self, start: int, stop: int) -> None:
        gone = [w for s in self.items[start:stop] for w in self._blocks.pop(s.key, [])]
        await self._pane.remove_children(gone)

    def _say(self) -> None:
        self.above.say(sum(s.messages for s in self.items[: self.start]))
        self.below.say(sum(s.messages for s in self.items[self.stop :]))


def _flat(blocks: Mapping[str, list[Widget]]) -> list[Widget]:
    return [widget for widgets in blocks.values() for widget in widgets]
