"""Long lines of code, cut at the edge and moved sideways: what of a line is seen, and how far its block can be moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.events import MouseEvent, MouseScrollDown, MouseScrollLeft, MouseScrollRight, MouseScrollUp
from textual.scroll_view import ScrollView

from ctxchat.tui.transcript.blocks import Block
from ctxchat.tui.widgets.lines import DrawnLine

SIDEWAYS_CELLS = 8
"""Cells by which long lines of code move at a key or a step of the wheel."""

LESS, MORE = Content.styled("‹", "bold $text-accent"), Content.styled("›", "bold $text-accent")
"""At the edge behind which a line goes on."""


def room_in(line: DrawnLine, width: int) -> int:
    """Cells for the words of a line of code where the screen has `width`; one more is the sign's."""
    return max(1, width - line.gutter.cell_length - 1)


def furthest(lines: Sequence[DrawnLine], width: int) -> int:
    """Cells by which lines can be moved until the end of the longest is seen; 0 where nothing is cut."""
    return max((line.wide - room_in(line, width) for line in lines if line.wide), default=0)


def index_at(text: str, cells: int) -> int:
    """The place of the character that covers this cell, from 0; behind the last one the length."""
    if text.isascii():
        return min(cells, len(text))
    end, covered = 0, 0
    while end < len(text) and (covered := covered + cell_len(text[end])) <= cells:
        end += 1
    return end


def seen_part(line: DrawnLine, words: Content, left: int, width: int) -> tuple[Content, Content]:
    """What stands before the words and what is seen of them where they are moved by `left` cells."""
    room, plain, gutter = room_in(line, width), words.plain, line.gutter
    first, end = index_at(plain, left), index_at(plain, left + room)
    seen = words[first:end]
    if left and plain and gutter.plain.endswith(" "):
        gutter = gutter[:-1].append(LESS.stylize_before(line.fill))
    if (
        0 < first < len(plain) and (hidden := cell_len(plain[:first])) < left
    ):  # half of a wide letter is before the edge
        seen = Content(" " * (left - hidden)).append(words[first + 1 : end])
    if end < len(plain):
        blank = Content(" " * max(0, room - seen.cell_length)).stylize_before(line.fill)
        seen = seen.append(blank).append(MORE.stylize_before(line.fill))
    return gutter, seen


def character_at(line: DrawnLine, x: int, left: int) -> int:
    """The place in the words of a line, moved by `left` cells, of a cell of the screen; less than 0 in its gutter."""
    gutter = line.gutter.plain
    before = line.gutter.cell_length
    if x < before:
        return index_at(gutter, x) - len(gutter)
    return index_at(line.words.plain, x - before + left)


class SidewaysView(ScrollView):
    """What shows blocks, and moves their long lines of code by the arrows, or by shift and the wheel over one of them."""

    def seen_blocks(self) -> Iterable[Block]:
        """The blocks in sight."""
        raise NotImplementedError

    def block_under(self, event: MouseEvent) -> Block | None:
        """The block at which the mouse is."""
        raise NotImplementedError

    def move_sideways(self, blocks: Iterable[Block], cells: int) -> None:
        """Move the long lines of code in these: to the left, so that what is behind the right edge is seen, or back."""
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
