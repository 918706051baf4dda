"""The line over the composer while the agent works: its to-do list, and how much came below what is being read."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Click
from textual.message import Message

from ctxchat.core.quantities import count
from ctxchat.tools.todo import TodoItem
from ctxchat.tui.style import MUTED
from ctxchat.tui.transcript.todo_lines import item_line
from ctxchat.tui.widgets.line import Line
from ctxchat.tui.widgets.lines import spread

MAX_ITEM_CHARS = 40


class WorkLine(Line):
    """`plan 1/3  ✓ find themes  ▸ write doc  ○ ask for the name      ↓ 34 new lines`; not there while there is nothing to say."""

    class Pressed(Message):
        """A person wants to see what is new."""

    def __init__(self) -> None:
        super().__init__(id="work")
        self._items: Sequence[TodoItem] = ()
        self._unread = 0

    def show_items(self, items: Sequence[TodoItem]) -> None:
        """The to-do list as it is now; none where all of it is done."""
        self._items = items if any(item.status != "done" for item in items) else ()
        self._redraw()

    def show_unread(self, lines: int) -> None:
        """Show how many lines were added below the reader's position; 0 for none."""
        if lines != self._unread:
            self._unread = lines
            self._redraw()

    def _redraw(self) -> None:
        self.set_class(bool(self._items or self._unread), "-some")
        self.refresh()

    def on_click(self, event: Click) -> None:
        event.stop()
        if self._unread:
            self.post_message(self.Pressed())

    def draw_line(self, width: int) -> Content:
        unread = Content.styled(f"↓ {count(self._unread, 'new line')}", "$text-accent") if self._unread else Content("")
        return spread(self._plan(width - unread.cell_length - 2), unread, width)

    def _plan(self, room: int) -> Content:
        """The step under way first of all; what is done and what comes next where there is room."""
        if not self._items:
            return Content("")
        done = sum(item.status == "done" for item in self._items)
        line = Content.styled(f"plan {done}/{len(self._items)}", MUTED)
        at = next((n for n, item in enumerate(self._items) if item.status == "in_progress"), done)
        first = max(0, at - 1)
        if (
            line.cell_length
            + sum(item_line(item, MAX_ITEM_CHARS).cell_length + 2 for item in self._items[first : at + 1])
            > room
        ):
            first = at
        for item in self._items[first:]:
            piece = Content("  ").append(item_line(item, MAX_ITEM_CHARS))
            if line.cell_length + piece.cell_length > room and item is not self._items[first]:
                break
            line = line.append(piece)
        return line
