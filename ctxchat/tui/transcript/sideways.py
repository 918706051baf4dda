"""Scrolls long lines of code sideways: which part of a line is visible, and how far its block can be moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.events import MouseEvent, MouseScrollDown, MouseScrollLeft, MouseScrollRight, MouseScrollUp
from textual.scroll_view import ScrollView

from ctxchat.tui.transcript.blocks import Block
from ctxchat.tui.widgets.lines import DrawnLine

SIDEWAYS_CELLS = 8
"""Cells by which long lines of code move for one key or one step of the wheel."""

LESS, MORE = Content.styled("‹", "bold $text-accent"), Content.styled("›", "bold $text-accent")
"""The signs at the left and the right edge of a line that is cut there."""


def room_in(line: DrawnLine, width: int) -> int:
    """Cells for the text of a line of code if the screen has `width`, without the one that is kept for `MORE`."""
    return max(1, width - line.gutter.cell_length - 1)


def furthest(lines: Sequence[DrawnLine], width: int) -> int:
    """How many cells lines can be moved to the left until the end of the longest is visible; 0 if none is cut."""
    return max((line.wide - room_in(line, width) for line in lines if line.wide), default=0)


def index_at(text: str, cells: int) -> int:
    """The index of the character that covers a cell, counted from 0; behind the last character the length of the text."""
    if text.isascii():
        return min(cells, len(text))
    end, covered = 0, 0
    while end < len(text) and (covered := covered + cell_len(text[end])) <= cells:
        end += 1
    return end


def seen_part(line: DrawnLine, words: Content, left: int, width: int) -> tuple[Content, Content]:
    """The gutter, and the visible part of `words`, of a line that is moved to the left by `left` cells."""
    room, plain, gutter = room_in(line, width), words.plain, line.gutter
    first, end = index_at(plain, left), index_at(plain, left + room)
    seen = words[first:end]
    if left and plain and gutter.plain.endswith(" "):
        gutter = gutter[:-1].append(LESS.stylize_before(line.fill))
    if (
        0 < first < len(plain) and (hidden := cell_len(plain[:first])) < left
    ):  # half of a wide character is beyond the edge
        seen = Content(" " * (left - hidden)).append(words[first + 1 : end])
    if end < len(plain):
        blank = Content(" " * max(0, room - seen.cell_length)).stylize_before(line.fill)
        seen = seen.append(blank).append(MORE.stylize_before(line.fill))
    return gutter, seen


def character_at(line: DrawnLine, x: int, left: int) -> int:
    """The index in the text of a line, moved by `left` cells, of the character at cell `x` of the screen; negative in the
    gutter."""
    gutter = line.gutter.plain
    before = line.gutter.cell_length
    if x < before:
        return index_at(gutter, x) - len(gutter)
    return index_at(line.words.plain, x - before + left)


class SidewaysView(ScrollView):
    """A view of blocks that scrolls their long lines of code: all in sight by arrow keys, one by shift and the wheel over it."""

    def seen_blocks(self) -> Iterable[Block]:
        """The blocks in sight."""
        raise NotImplementedError

    def block_under(self, event: MouseEvent) -> Block | None:
        """The block under the mouse."""
        raise NotImplementedError

    def move_sideways(self, blocks: Iterable[Block], cells: int) -> None:
        """Move the long lines of code in these blocks by so many cells: to the left if positive, else back to the right."""
        raise NotImplementedError

    def action_scroll_left(self) -> None:
        self.move_sideways(self.seen_blocks(), -SIDEWAYS_CELLS)

    def action_scroll_right(self) -> None:
        self.move_sideways(self.seen_blocks(), SIDEWAYS_CELLS)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self._wheel_sideways(event, SIDEWAYS_CELLS if event.shift else 0)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self._wheel_sideways(event, -SIDEWAYS_CELLS if event.shift else 0)

    def on_mouse_scroll_right(self, event: MouseScrollRight) -> None:
        self._wheel_sideways(event, SIDEWAYS_CELLS)

    def on_mouse_scroll_left(self, event: MouseScrollLeft) -> None:
        self._wheel_sideways(event, -SIDEWAYS_CELLS)

    def _wheel_sideways(self, event: MouseEvent, cells: int) -> None:
        if cells and (block := self.block_under(event)):
            event.stop()
            event.prevent_default()
            self.move_sideways((block,), cells)
