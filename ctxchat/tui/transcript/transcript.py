"""Shows the conversation: one scrolling widget over the record and the turn in progress, which draws only the lines in sight.

Follows the end while text arrives, unless the reader has scrolled away; then what is read stays where it is. When a line
changes, that line alone is painted, without a layout. Knows items and blocks, but no session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic, perf_counter
from typing import Any

from rich.segment import Segment
from textual.cache import LRUCache
from textual.content import Content, Span
from textual.events import Blur, Click, Focus, Key, Leave, MouseDown, MouseEvent, MouseMove
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from ctxchat.presentation.history import Shown
from ctxchat.presentation.text import clean
from ctxchat.tui.commands import Keys, shown_key
from ctxchat.tui.transcript.blocks import PAST, Block, ReplyBlock
from ctxchat.tui.transcript.column import EndMark, Kind, Stack, TranscriptColumn
from ctxchat.tui.transcript.markdown import parser
from ctxchat.tui.transcript.record_blocks import Tokens
from ctxchat.tui.transcript.sideways import SidewaysView, character_at, furthest, seen_part
from ctxchat.tui.widgets.lines import DrawnLine

HIGHLIGHT_S = 5.0
"""Seconds for which an item that was jumped to is highlighted: long enough to be seen by somebody who looked elsewhere."""

MIN_DRAW_PAUSE_S, DRAW_PAUSE_FACTOR = 0.04, 4
"""Pause after a drawing: at least 40 ms, or 4 × the time the drawing took, so that at most a fifth of the time goes into it."""

MAX_ITEMS_AHEAD = 100
"""Entries of the column that are searched for the next block that takes keys."""

MAX_PAINTED_LINES = 256
"""Painted lines that are cached: more than a screen. Not many more, as Textual's strips are heavy, with caches of their own."""

DRAW_INTERVAL_S = 1 / 8
"""Seconds between two drawings of blocks with a counter or a spinner."""

LINE_BITS = 20
"""Bits for the line in the y coordinate of selected text; the bits above them hold the index of the entry. Unlike screen lines,
such a coordinate stays right when the guessed height of an entry further up turns out wrong."""


class Transcript(SidewaysView, can_focus=True):
    """The scrolling conversation: `show_record` shows a record, `add_block` a block that is in no record yet."""

    COMPONENT_CLASSES = {"transcript--found", "transcript--focused", "transcript--hovered", "transcript--past"}

    virtual_size = Reactive(Size(0, 0))  # as Textual's, but a change of it causes no layout

    class LinkClicked(Message):
        """A person wants to open a link."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    class PlaceClicked(Message):
        """A person wants to open a file at a line; `place` is like `src/app.py:10`."""

        def __init__(self, place: str) -> None:
            super().__init__()
            self.place = place

    class KeysChanged(Message):
        """Another block has the focus, or the keys of the focused block do something else."""

    class Unread(Message):
        """How many lines were added below since the reader left the end; 0 at the end."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._read_to: EndMark | None = None  # the last block when the end was last in sight
        self._unread = 0  # lines added since then
        self._archive_key = ""
        self._column = TranscriptColumn(self._changed)
        self._style_version = 0  # counts changes of the colours, as a key of the cache
        self._strips: LRUCache[tuple[DrawnLine, int, int, int], Strip] = LRUCache(
            MAX_PAINTED_LINES
        )  # lines in these colours and this width
        self._found: Stack | None = None  # jumped to a moment ago, highlighted
        self._highlight_timer: Timer | None = None  # ends that
        self._focused: Block | None = None
        self._hovered: tuple[int, object] | None = None  # y coordinate as of `_key`, and the target there
        self._pressed: Offset | None = None  # where the mouse button went down
        self._offered: ReplyBlock | None = None  # says that /continue goes on from it
        self._stale: list[Stack] = []  # changed, and not drawn since
        self._next_draw, self._draw_timer = 0.0, None  # the earliest time of the next drawing, and the timer for it
        self._moving_timer: Timer | None = None

    def on_mount(self) -> None:
        self.anchor()

    def use_keys(self, keys: Keys) -> None:
        """Show these keys from now on."""
        self._archive_key = next(map(shown_key, keys.get("archive", ())), "")
        self._column.set_archive_key(self._archive_key)
        self._look_around()
        self.refresh()

    # ── the record ──

    @property
    def items(self) -> Sequence[Shown]:
        """All items of the record, whether drawn or not."""
        return self._column.items

    def show_record(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """Replace everything with this record, and scroll to its end."""
        self._column = TranscriptColumn(self._changed, self._archive_key)
        self._set_record(items, tokens)
        self.to_end()

    def extend_record(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Block]]) -> None:
        """Show a record that has grown; `places` maps the key of an item to the blocks of the turn that show it already. If
        earlier items differ, those that stay are not drawn anew, and the reader's position is kept."""
        self._draw_stale()  # first, as changed blocks may be joined with others into one stack
        column = self._column
        if column.grows_to(items):
            column.extend_record(items, tokens, places)
        else:
            index, line = column.heights.entry_at(round(self.scroll_y))
            reading = column.key(index)
            self._set_record(items, tokens)
            index = column.index_of_item(reading)
            self._jump_to_line(column.heights.top(index) + line if index is not None else 0)
        self._look_around()
        self.refresh()

    def set_tokens(self, tokens: Tokens) -> None:
        """Set how many tokens each message (by `seq`) and part takes now."""
        self._column.set_tokens(tokens)

    def _set_record(self, items: Sequence[Shown], tokens: Tokens) -> None:
        self._focused = self._hovered = self._offered = None
        if self.is_attached and self.text_selection:
            self.screen.clear_selection()
        self._column.set_width(self._pane.width)
        self._column.set_record(items, tokens)

    # ── the turn in progress ──

    def add_block(self, block: Block, *, before: Block | None = None) -> None:
        """Add a block that is in no record, such as one of the turn in progress, at the very end or before another such block."""
        if not self.is_attached:
            return  # the screen is closing
        self._column.add_block(block, before)
        if block.moving and self._moving_timer is None:
            self._moving_timer = self.set_interval(DRAW_INTERVAL_S, self._draw_moving)
        self._look_around()
        self.refresh()

    def add_above(self, block: Block) -> None:
        """Add a block that is in no record before the person's newest message; what is read stays where it is."""
        if not self.is_attached:
            return
        index, heights = self._column.add_above(block), self._column.heights
        if not self._follows and heights.top(index) < self.scroll_y:
            self._jump_to_line(round(self.scroll_y) + heights[index])
        self._look_around()
        self.refresh()

    def get_ready(self) -> None:
        """Load the Markdown parser in a thread: that takes long, and a reply is on its way."""
        self.run_worker(partial(asyncio.to_thread, parser), exit_on_error=False)

    def discard(self, block: Block) -> None:
        """Remove a block that is in no record."""
        self._column.discard(block)
        self._look_around()
        self.refresh()

    def _changed(self, stack: Stack) -> None:
        """Draw a stack anew: at once if the last drawing was long enough ago, else as soon as it will be."""
        if stack not in self._stale:
            self._stale.append(stack)
        wait = self._next_draw - monotonic()
        if wait <= 0:
            self._draw_stale()
        elif self._draw_timer is None:
            self._draw_timer = self.set_timer(wait, self._draw_stale)

    def _draw_stale(self) -> None:
        if self._draw_timer:
            self._draw_timer.stop()
        began, self._draw_timer = perf_counter(), None
        stale, self._stale = self._stale, []
        for stack in stale:
            index = self._column.index_of_stack(stack)
            if index is not None and stack.lines is not None:
                self._draw_anew(index)
        self._next_draw = monotonic() + max(MIN_DRAW_PAUSE_S, DRAW_PAUSE_FACTOR * (perf_counter() - began))

    def _draw_moving(self) -> None:
        """Draw the blocks with a counter or a spinner; stop the timer when there are none."""
        moving = [stack for stack in self._column.loose() if any(block.moving for block in stack.blocks)]
        if not moving and self._moving_timer:
            self._moving_timer.stop()
            self._moving_timer = None
        self._stale += [stack for stack in moving if stack not in self._stale]
        self._draw_stale()

    def _draw_anew(self, index: int) -> None:
        """Draw an entry anew. Only lines that differ are painted, unless their number changed: then all below as well."""
        column = self._column
        height, different = column.draw_anew(index)
        more, top, scrolled = column.heights[index] - height, column.heights.top(index), round(self.scroll_y)
        if not more:
            for n in different:
                self.refresh_line(top + n)
        elif top + height <= scrolled and not self._follows:  # out of sight, above
            self._jump_to_line(scrolled + more)
            self._look_around()
        else:
            first = top + min([*different, height, height + more])
            self._look_around()
            self.refresh_lines(first, max(1, round(self.scroll_y) + self._pane.height - first))

    # ── the reader's position ──

    @property
    def _pane(self) -> Size:
        """The size in cells of the part that lines are drawn in."""
        return self.scrollable_content_region.size

    @property
    def _follows(self) -> bool:
        """Whether the newest line is kept in sight."""
        return self._anchored and not self._anchor_released

    def _look_around(self) -> None:
        """Draw what is in sight and a page around it, so that those heights are exact; what is read stays where it is. Then
        forget what is far away, and count unread lines."""
        column, height, before = self._column, self._pane.height, round(self.scroll_y)
        if not column.width or not height:
            return
        if self._follows:
            column.draw_end(2 * height)
            y = column.heights.total
        else:
            y = column.draw_from(before, height, 2 * height) if len(column) else 0
        total = column.heights.total
        y = max(0, min(y, total - height))
        self.virtual_size = Size(column.width, total)
        self._jump_to_line(y)
        self._scroll_update(self.virtual_size)
        if y != before:
            self.refresh()
        column.forget(y, self._is_kept)
        unread = column.lines_behind(self._read_to) if self._read_to and y < total - height else None
        if unread is None:
            self._read_to = column.end_mark()
        if (unread or 0) != self._unread:
            self._unread = unread or 0
            self.post_message(self.Unread(self._unread))

    def _is_kept(self, stack: Stack) -> bool:
        """Whether this widget still refers to a block of the stack, so that the column must not forget it."""
        wanted = (self._focused, self._offered, self._read_to and self._read_to.block)
        return stack is self._found or any(block in stack.blocks for block in wanted)

    def _jump_to_line(self, y: int) -> None:
        """Set the scroll position without painting: for when the same text is in sight, at another line number."""
        self.set_reactive(Widget.scroll_y, float(y))  # pyright: ignore[reportArgumentType]
        self.set_reactive(Widget.scroll_target_y, float(y))  # pyright: ignore[reportArgumentType]
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = y

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        self._column.set_width(self._pane.width)
        self._look_around()
        return changed

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._check_anchor()
            self._look_around()

    def _scroll_to(self, x: float | None = None, y: float | None = None, **how: Any) -> bool:
        """Scroll at once, never animated: guessed heights on the way become exact, so an animation would end at a wrong line."""
        return super()._scroll_to(x, y, **{**how, "animate": False})

    def to_end(self) -> None:
        """Scroll to the newest line, and follow it from now on."""
        self._anchor_released = False
        self.anchor()
        self._look_around()
        self.refresh()

    def release_anchor(self) -> None:
        """Stop following the end, but only where there is something to scroll to: short conversations stay by the composer."""
        if self.max_scroll_y > 0:
            super().release_anchor()

    def go_to(self, key: str) -> None:
        """Scroll to an item of the record and highlight it; nothing, if it is not shown. Waits for the layout: under another
        screen the chat was not laid out, and a question may have taken some of its room meanwhile."""
        self.call_after_refresh(self._scroll_to_item, key)

    def _scroll_to_item(self, key: str) -> None:
        index = self._column.index_of_item(key)
        if index is None or not self._column.width:
            return
        self.release_anchor()
        self._focus_on(None)
        self._found = stack = self._column.stack(index)
        if self._highlight_timer:
            self._highlight_timer.stop()
        self._highlight_timer = self.set_timer(HIGHLIGHT_S, self._end_highlight)
        gap = stack.span(stack.blocks[0])[0] if self._column.lines(index) else 0
        self._jump_to_line(self._column.heights.top(index) + gap)
        self._look_around()
        self._check_anchor()
        self.refresh()

    def _first_line_of(self, stack: Stack, block: Block) -> int:
        """The line of the whole conversation that a block begins at."""
        index = self._column.index_of_stack(stack) or 0
        self._column.lines(index)
        return self._column.heights.top(index) + stack.span(block)[0]

    def _end_highlight(self) -> None:
        self._found = self._highlight_timer = None
        self.refresh()

    # ── blocks ──

    def drawn_blocks(self, kind: type[Kind]) -> Iterator[Kind]:
        """The blocks of one kind, top to bottom: those that were looked at, and those of the turn in progress."""
        return self._column.drawn_blocks(kind)

    def words(self, block: Block) -> str:
        """The text of a block as it is drawn."""
        lines = block.draw(self._column.width)
        return "\n".join((line.gutter + line.words).plain.rstrip() for line in lines)

    def toggle_details(self) -> None:
        """Unfold every block that can be; if that was done before, fold them."""
        self._column.unfold(not self._column.unfolded)
        self._look_around()
        self.refresh()

    def last_answer(self) -> str:
        """The text of the newest reply; empty if there is none."""
        return next((b.text for b in self._column.upwards() if isinstance(b, ReplyBlock) and b.text.strip()), "")

    def offer_to_go_on(self, offered: bool) -> None:
        """Show (or no longer show) below the last reply, if it was interrupted, that /continue goes on from it."""
        if self._offered:
            self._offered.offer(False)
        last = next((b for b in self._column.upwards() if isinstance(b, ReplyBlock)), None) if offered else None
        self._offered = last if last and last.interrupted else None
        if self._offered:
            self._offered.offer(True)

    # ── drawing ──

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._style_version += 1

    def _entry_at(self, y: int) -> tuple[int, int] | None:
        """The index of the entry at line `y` of the pane, and the line within it; None where there is no text."""
        return self._column.entry_at(y + round(self.scroll_y))

    def render_line(self, y: int) -> Strip:
        at = self._entry_at(y)
        if at is None or not self._column.width:
            return Strip.blank(self._pane.width, self.visual_style.rich_style)
        (index, n), key = at, _key(at)
        lines, stack = self._column.lines(index), self._column.stack(index)
        line = lines[n] if n < len(lines) else DrawnLine(Content(""))
        strip = self._drawn_line(stack, n, line, key)
        return self._marked_as_past(strip) if self._column.is_out_of_view(index) and _begins_blank(line) else strip

    def _drawn_line(self, stack: Stack, n: int, line: DrawnLine, key: int) -> Strip:
        base, words = self._background(stack, n), line.words
        if self._hovered and self._hovered[0] == key:
            words = self._with_hover(words, self._hovered[1])
        if (selection := self.text_selection) and (span := selection.get_span(key)):
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            words = words.stylize(selected, max(0, span[0]), len(words) if span[1] == -1 else max(0, span[1]))
        left = self._shift_of(stack, n, line)
        if base or words is not line.words:
            return self._paint(line, words, left, base or self.visual_style)
        cache_key = (line, self._style_version, self._column.width, left)
        if (strip := self._strips.get(cache_key)) is None:
            strip = self._strips[cache_key] = self._paint(line, words, left, self.visual_style)
        return strip

    def _shift_of(self, stack: Stack, n: int, line: DrawnLine) -> int:
        """Cells by which a line of code is moved to the left: as many as its block, but not beyond the end of its own code."""
        block = stack.block_at(n) if line.wide else None
        return min(block.left, furthest((line,), self._column.width)) if block else 0

    def _marked_as_past(self, strip: Strip) -> Strip:
        """The strip with a sign at its beginning: the model no longer sees this as it was."""
        mark = Segment(PAST, (self.visual_style + self.get_visual_style("transcript--past", partial=True)).rich_style)
        return Strip.join([Strip([mark], 1), strip.crop(1)])

    def _background(self, stack: Stack, n: int) -> Style | None:
        """The style of a line of a stack that stands out, being focused or jumped to; else None."""
        block = self._focused
        if self.has_focus and block and block in stack.blocks and n == stack.span(block)[0]:
            return self.get_visual_style("transcript--focused")
        return self.get_visual_style("transcript--found") if stack is self._found else None

    def _with_hover(self, words: Content, press: object) -> Content:
        style = self.get_visual_style("transcript--hovered", partial=True)
        spans = [s for s in words.spans if isinstance(s.style, Style) and s.style.meta.get("press") == press]
        return words.add_spans([Span(s.start, s.end, style) for s in spans])

    def _paint(self, line: DrawnLine, words: Content, left: int, base: Style) -> Strip:
        """Paint one line. Leaves out the offsets that Textual puts into styles for selections (`text_at` gives those): with them
        each piece of text would have a style of its own, and Textual caches sixteen thousand of them."""
        parts = seen_part(line, words, left, self._column.width) if line.wide else (line.gutter, words)
        segments = [
            Segment(text, (base + style).rich_style)
            for content in parts
            for text, style in content.render(base, end="", parse_style=self._get_style)
        ]
        fill = base + self._get_style(line.fill) if line.fill else base
        return Strip(segments).adjust_cell_length(self._column.width, fill.rich_style)

    # ── keys ──

    def on_focus(self, event: Focus) -> None:
        """Focus the first block in sight that takes keys, unless the focused block is in sight."""
        if self._focused is None or not self._in_sight(self._focused):
            self._focus_on(next((block for block in self._seen() if block.keys), None))

        elif self._focused:
            self._focused.show_focus(True)

    def on_blur(self, event: Blur) -> None:
        if self._focused:
            self._focused.show_focus(False)
        self.refresh()

    def on_key(self, event: Key) -> None:
        """Tab focuses the next block that takes keys, and after the last one leaves the transcript; other keys go to the focused
        block."""
        if event.key == "tab":
            if self._focus_on(self._next_block()):
                event.stop()
        elif (block := self._focused) and event.key in block.keys:
            event.stop()
            self._press_block(block, block.keys[event.key])

    def _press_block(self, block: Block, what: str) -> None:
        if message := block.press(what):
            self.post_message(message)
        self.post_message(self.KeysChanged())

    def _focus_on(self, block: Block | None) -> bool:
        """Give a block the focus and bring it into sight; None takes the focus from all. Return whether a block has it."""
        if self._focused and self._focused is not block:
            self._focused.show_focus(False)
        self._focused = block
        if block:
            block.show_focus(True)
        if block and not self._head_in_sight(block):
            self.scroll_to(y=self._first_line_of(self._column.stack_of(block), block) - 1)
        self.post_message(self.KeysChanged())
        self.refresh()
        return block is not None

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        """The keys of the focused block and what each does; empty if none has the focus."""
        return self._focused.key_words if self.has_focus and self._focused else ()

    def _next_block(self) -> Block | None:
        """The next block that takes keys: below the focused one if that is in sight, else the first in sight."""
        block, in_sight = self._focused, list(self._seen())
        if block not in in_sight:
            return next((block for block in in_sight if block.keys), None)
        start, passed = self._column.index_of_stack(self._column.stack_of(block)) or 0, False
        for index in range(start, min(start + MAX_ITEMS_AHEAD, len(self._column))):
            for each in self._column.blocks(index):
                if passed and each.keys:
                    return each
                passed = passed or each is block
        return None

    def _seen(self) -> Iterator[Block]:
        """The blocks in sight, top to bottom."""
        for y in range(self._pane.height):
            if (at := self._entry_at(y)) and (block := self._column.stack(at[0]).block_at(at[1])):
                yield block

    def _in_sight(self, block: Block) -> bool:
        return any(seen is block for seen in self._seen())

    def _head_in_sight(self, block: Block) -> bool:
        """Whether the line that shows the focus is in sight; of a block that fills the pane, whether any line is."""
        stack = self._column.stack_of(block)
        start, stop = stack.span(block)
        if stop - start > self._pane.height // 2 and self._in_sight(block):
            return True
        return self.scroll_offset.y <= self._first_line_of(stack, block) < self.scroll_offset.y + self._pane.height

    # ── sideways ──

    def seen_blocks(self) -> set[Block]:
        return set(self._seen())

    def block_under(self, event: MouseEvent) -> Block | None:
        at = self._under(event)
        return self._column.stack(at[0]).block_at(at[1]) if at else None

    def move_sideways(self, blocks: Iterable[Block], cells: int) -> None:
        for block in blocks:
            stack = self._column.stack_of(block)
            limit = furthest((stack.lines or [])[slice(*stack.span(block))], self._column.width)
            block.left = max(0, min(block.left + cells, limit))
        self.refresh()

    # ── the mouse ──

    def _under(self, event: MouseEvent) -> tuple[int, int] | None:
        """The index of the entry under the mouse, and the line within it."""
        offset = event.get_content_offset(self)
        return self._entry_at(offset.y) if offset else None

    def _set_hovered(self, hovered: tuple[int, object] | None) -> None:
        if hovered != self._hovered:
            self._hovered = hovered
            self.refresh()

    def on_mouse_move(self, event: MouseMove) -> None:
        at, press = self._under(event), event.style.meta.get("press")
        self._set_hovered((_key(at), press) if at and press else None)

    def on_leave(self, event: Leave) -> None:
        self._set_hovered(None)

    def on_mouse_down(self, event: MouseDown) -> None:
        self._pressed = event.screen_offset
        self._focus_on(None)

    def on_click(self, event: Click) -> None:
        """Act on the target that was clicked; elsewhere, a double click selects the paragraph, a triple click the block."""
        at, block = self._under(event), self.block_under(event)
        if at is None or block is None or event.screen_offset != self._pressed:
            return  # the mouse was moved meanwhile: that was a selection
        event.stop()
        self._focus_on(block if block.keys else None)
        if press := event.style.meta.get("press"):
            what, about = press
            if what == "link":
                self.post_message(self.LinkClicked(about))
            elif what == "place":
                self.post_message(self.PlaceClicked(about))
            else:
                self._press_block(block, what)
        elif event.chain > 1:
            self._select(*at, block if event.chain > 2 else None)

    # ── selecting and copying ──

    def text_select_all(self) -> None:
        """Do nothing: all of a conversation is more than is wanted, and clicks select parts of it."""

    @property
    def select_container(self) -> Widget:
        return self

    def text_at(self, x: int, y: int) -> Offset | None:
        """The position in the text of a cell of the pane, with `y` as `_key` encodes it; None below all text."""
        if (at := self._entry_at(y)) is None:
            return None
        lines = self._column.lines(at[0])
        line = lines[at[1]] if at[1] < len(lines) else DrawnLine(Content(""))
        return Offset(character_at(line, x, self._shift_of(self._column.stack(at[0]), at[1], line)), _key(at))

    def _select(self, index: int, line: int, block: Block | None) -> None:
        """Select all of `block`; without one, the paragraph that a line is in."""
        first, last = self._column.paragraph(index, line)
        if block:
            first, stop = self._column.stack(index).span(block)
            last = stop - 1
        end = len(self._column.lines(index)[last].words)
        selection = Selection(Offset(0, _key((index, first))), Offset(end, _key((index, last))))
        self.screen.selections = {self: selection}

    def texts_in_sight(self) -> list[tuple[Offset, str]]:
        """The texts in sight that can be copied, top to bottom: each block, and each piece of code in it, with its offset in the
        pane."""
        texts: list[tuple[Offset, str]] = []
        seen: set[object] = set()
        for y in range(self._pane.height):
            if (at := self._entry_at(y)) is None:
                break
            stack, lines = self._column.stack(at[0]), self._column.lines(at[0])
            block = stack.block_at(at[1])
            if block is None or not lines[at[1]].words.plain.strip():
                continue
            if block not in seen:
                seen.add(block)
                texts.append((Offset(0, y), clean(block.source or self.words(block))))
            if (code := _code_at(lines, at[1])) and code not in seen:
                seen.add(code)
                texts.append((Offset(code.gutter.cell_length, y), code.source))
        return texts

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without decoration and indents. An end of the selection outside of the transcript counts as the
        first or last line in sight."""
        top, bottom = self._entry_at(0), self._entry_at(self._pane.height - 1) or (len(self._column), 0)
        if top is None:
            return None
        start, end = selection
        first, x = (_index_and_line(start), max(0, start.x)) if start else (top, 0)
        last, end_x = (_index_and_line(end), max(0, end.x)) if end else (bottom, None)
        return self._column.text_between(first, last, x, end_x), "\n"


def _begins_blank(line: DrawnLine) -> bool:
    """Whether the first cell is free for a sign."""
    return (line.gutter.plain + line.words.plain)[:1] in {"", " "}


def _code_at(lines: Sequence[DrawnLine], n: int) -> DrawnLine | None:
    """The first line of the code that line `n` is part of; None if it is not code."""
    while n and lines[n].fill and not lines[n].source:
        n -= 1
    return lines[n] if lines[n].source else None


def _key(at: tuple[int, int]) -> int:
    """The index of an entry and a line in it, as one y coordinate (see `LINE_BITS`)."""
    return (at[0] << LINE_BITS) + at[1]


def _index_and_line(offset: Offset) -> tuple[int, int]:
    """The index of an entry and a line in it, from a y coordinate that `_key` made."""
    return offset.y >> LINE_BITS, offset.y & ((1 << LINE_BITS) - 1)
