"""The conversation on screen: one widget over the record and the turn in progress, which draws the lines that are seen.

Follows the end while text arrives, unless the reader has scrolled away; then what is read stays where it is. A line that
changes is painted, and nothing around it laid out. Knows items and blocks, no session.
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
"""Seconds for which what was gone to has another ground: long enough to be found by an eye that was elsewhere."""

LEAST, TIMES = 0.04, 4
"""Next drawing = now + max(40 ms, 4 × what the last one cost): at most a fifth of the time goes into it."""

MAX_ITEMS_AHEAD = 100
"""Items that are looked through for the next block that takes keys."""

MAX_PAINTED_LINES = 256
"""Lines that are kept as they were painted: more than a screen. Textual's strips are heavy, with caches of their own."""

DRAW_INTERVAL_S = 1 / 8
"""Seconds between two drawings of what counts or spins."""

LINE_BITS = 20
"""Places of marked text are numbers: of the thing, and in this many bits of the line in it. So they outlive a height that was
guessed wrong further up."""


class Transcript(SidewaysView, can_focus=True):
    """The conversation as it is scrolled through: `show_record` draws a record, `add_block` what is in none yet."""

    COMPONENT_CLASSES = {"transcript--found", "transcript--focused", "transcript--hovered", "transcript--past"}

    virtual_size = Reactive(Size(0, 0))  # as Textual's, but a line more moves nothing around it

    class LinkClicked(Message):
        """A person wants to open a link."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    class PlaceClicked(Message):
        """A person wants to see a place in a file: `src/app.py:10`."""

        def __init__(self, place: str) -> None:
            super().__init__()
            self.place = place

    class KeysChanged(Message):
        """The block with the focus is another one, or its keys do something else."""

    class Unread(Message):
        """So many lines have come below what is being read, since the reader left the end; 0 at the end."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._read_to: EndMark | None = None  # what stood at the end when that was last in sight
        self._unread = 0  # lines that came since
        self._archive_key = ""
        self._column = TranscriptColumn(self._changed)
        self._look = 0  # how often the colours changed
        self._strips: LRUCache[tuple[DrawnLine, int, int, int], Strip] = LRUCache(
            MAX_PAINTED_LINES
        )  # lines in these colours and this width
        self._found: Stack | None = None
        self._focused: Block | None = None
        self._hovered: tuple[int, object] | None = None
        self._pressed: Offset | None = None
        self._offered: ReplyBlock | None = None
        self._stale: list[Stack] = []
        self._next, self._due = 0.0, None  # when to draw what has changed
        self._beating: Timer | None = None

    def on_mount(self) -> None:
        self.anchor()

    def use_keys(self, keys: Keys) -> None:
        """These from now on."""
        self._archive_key = next(map(shown_key, keys.get("archive", ())), "")
        self._column.set_archive_key(self._archive_key)
        self._look_around()
        self.refresh()

    # ── the record ──

    @property
    def items(self) -> Sequence[Shown]:
        """All of the record."""
        return self._column.items

    def show_record(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """All anew, at its end."""
        self._column = TranscriptColumn(self._changed, self._archive_key)
        self._set_record(items, tokens)
        self.to_end()

    def extend_record(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Block]]) -> None:
        """The record has grown: `places` says which blocks of the turn now stand for which item. In one that is another, what
        stays is not drawn anew, and is where it was read."""
        self._draw_stale()  # blocks that come to stand together do so as they are now, and what they say later is of the whole
        column = self._column
        if column.grows_to(items):
            column.extend_record(items, tokens, places)
        else:
            place, line = column.heights.block_at(round(self.scroll_y))
            reading = column.key(place)
            self._set_record(items, tokens)
            place = column.place(reading)
            self._jump_to_line(column.heights.top(place) + line if place is not None else 0)
        self._look_around()
        self.refresh()

    def set_tokens(self, tokens: Tokens) -> None:
        """What everything costs by now."""
        self._column.set_tokens(tokens)

    def _set_record(self, items: Sequence[Shown], tokens: Tokens) -> None:
        self._focused = self._hovered = self._offered = None
        if self.is_attached and self.text_selection:
            self.screen.clear_selection()
        self._column.set_width(self._pane.width)
        self._column.set_record(items, tokens)

    # ── the turn in progress ──

    def add_block(self, block: Block, *, before: Block | None = None) -> None:
        """A block of the turn in progress, or one that is in no record, at the very end or before one of those."""
        if not self.is_attached:
            return  # on the way out: nowhere to say it
        self._column.add_block(block, before)
        if block.moving and self._beating is None:
            self._beating = self.set_interval(DRAW_INTERVAL_S, self._beat)
        self._look_around()
        self.refresh()

    def add_above(self, block: Block) -> None:
        """A block that is in no record, before the person's newest message; what is read stays where it is."""
        if not self.is_attached:
            return
        place, heights = self._column.add_above(block), self._column.heights
        if not self._follows and heights.top(place) < self.scroll_y:
            self._jump_to_line(round(self.scroll_y) + heights[place])
        self._look_around()
        self.refresh()

    def get_ready(self) -> None:
        """Load what replies are drawn with, beside the screen: it is heavy, and the model takes its time."""
        self.run_worker(partial(asyncio.to_thread, parser), exit_on_error=False)

    def discard(self, block: Block) -> None:
        """A block that is in no record is to go."""
        self._column.discard(block)
        self._look_around()
        self.refresh()

    def _changed(self, stack: Stack) -> None:
        """Draw it anew, when that is due: at once after a while of rest."""
        if stack not in self._stale:
            self._stale.append(stack)
        wait = self._next - monotonic()
        if wait <= 0:
            self._draw_stale()
        elif self._due is None:
            self._due = self.set_timer(wait, self._draw_stale)

    def _draw_stale(self) -> None:
        if self._due:
            self._due.stop()
        began, self._due = perf_counter(), None
        stale, self._stale = self._stale, []
        for stack in stale:
            place = self._column.place_of(stack)
            if place is not None and stack.lines is not None:
                self._draw_anew(place)
        self._next = monotonic() + max(LEAST, TIMES * (perf_counter() - began))

    def _beat(self) -> None:
        """Whatever counts."""
        moving = [stack for stack in self._column.loose() if any(block.moving for block in stack.blocks)]
        if not moving and self._beating:
            self._beating.stop()
            self._beating = None
        self._stale += [stack for stack in moving if stack not in self._stale]
        self._draw_stale()

    def _draw_anew(self, place: int) -> None:
        """The lines that are others now are painted, and no others unless there are more or fewer."""
        column = self._column
        lines, other = column.draw_anew(place)
        more, top, seen = column.heights[place] - lines, column.heights.top(place), round(self.scroll_y)
        if not more:
            for n in other:
                self.refresh_line(top + n)
        elif top + lines <= seen and not self._follows:  # above what is seen
            self._jump_to_line(seen + more)
            self._look_around()
        else:
            first = top + min([*other, lines, lines + more])
            self._look_around()
            self.refresh_lines(first, max(1, round(self.scroll_y) + self._pane.height - first))

    # ── where one reads ──

    @property
    def _pane(self) -> Size:
        """The cells lines are drawn in."""
        return self.scrollable_content_region.size

    @property
    def _follows(self) -> bool:
        return self._anchored and not self._anchor_released

    def _look_around(self) -> None:
        """What is in sight and a page around it is drawn, so that its heights are true; what is read stays where it is."""
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
        wanted = (self._focused, self._offered, self._read_to and self._read_to.block)
        return stack is self._found or any(block in stack.blocks for block in wanted)

    def _jump_to_line(self, y: int) -> None:
        """Be at this line, where what is seen is the same: nothing is painted for it."""
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
        """At once: where an animation would end is another line by then, as heights on its way turn out."""
        return super()._scroll_to(x, y, **{**how, "animate": False})

    def to_end(self) -> None:
        """The reader is at the newest line from now on."""
        self._anchor_released = False
        self.anchor()
        self._look_around()
        self.refresh()

    def release_anchor(self) -> None:
        """Only where there is something to scroll to: short conversations stay by the composer."""
        if self.max_scroll_y > 0:
            super().release_anchor()

    def go_to(self, key: str) -> None:
        """Scroll to an item of the record, where it has it. Not before the chat is laid out: under the screen one came from it
        was not, and a question may have come meanwhile."""
        self.call_after_refresh(self._bring, key)

    def _bring(self, key: str) -> None:
        place = self._column.place(key)
        if place is None or not self._column.width:
            return
        self.release_anchor()
        self._focused = None
        self._found = stack = self._column.stack(place)
        self.set_timer(HIGHLIGHT_S, partial(self._lose, stack))
        gap = stack.span(stack.blocks[0])[0] if self._column.lines(place) else 0
        self._jump_to_line(self._column.heights.top(place) + gap)
        self._look_around()
        self._check_anchor()
        self.refresh()

    def _top(self, stack: Stack, block: Block) -> int:
        """The line a block begins at."""
        place = self._column.place_of(stack) or 0
        self._column.lines(place)
        return self._column.heights.top(place) + stack.span(block)[0]

    def _lose(self, stack: Stack) -> None:
        if stack is self._found:
            self._found = None
            self.refresh()

    # ── what it holds ──

    def drawn_blocks(self, kind: type[Kind]) -> Iterator[Kind]:
        """The blocks of a kind that were looked at, and those of the turn in progress, top to bottom."""
        return self._column.drawn_blocks(kind)

    def words(self, block: Block) -> str:
        """What a block says, as it is drawn."""
        lines = block.draw(self._column.width)
        return "\n".join((line.gutter + line.words).plain.rstrip() for line in lines)

    def toggle_details(self) -> None:
        """Unfold all that can be, or fold it."""
        self._column.unfold(not self._column.unfolded)
        self._look_around()
        self.refresh()

    def last_answer(self) -> str:
        """The words of the newest reply."""
        return next((b.text for b in self._column.upwards() if isinstance(b, ReplyBlock) and b.text.strip()), "")

    def offer_to_go_on(self, offered: bool) -> None:
        """The last reply is a half one that can be gone on with; or there is none such."""
        if self._offered:
            self._offered.offer(False)
        last = next((b for b in self._column.upwards() if isinstance(b, ReplyBlock)), None) if offered else None
        self._offered = last if last and last.interrupted else None
        if self._offered:
            self._offered.offer(True)

    # ── drawing ──

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look += 1

    def _block_at(self, y: int) -> tuple[int, int] | None:
        """The thing at a line of the screen, and which of its lines it is."""
        return self._column.block_at(y + round(self.scroll_y))

    def render_line(self, y: int) -> Strip:
        at = self._block_at(y)
        if at is None or not self._column.width:
            return Strip.blank(self._pane.width, self.visual_style.rich_style)
        (place, n), key = at, _key(at)
        lines, stack = self._column.lines(place), self._column.stack(place)
        line = lines[n] if n < len(lines) else DrawnLine(Content(""))
        strip = self._drawn_line(stack, n, line, key)
        return self._past(strip) if self._column.is_out_of_view(place) and _begins_blank(line) else strip

    def _drawn_line(self, stack: Stack, n: int, line: DrawnLine, key: int) -> Strip:
        base, words = self._ground(stack, n), line.words
        if self._hovered and self._hovered[0] == key:
            words = self._hover(words, self._hovered[1])
        if (selection := self.text_selection) and (span := selection.get_span(key)):
            chosen = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            words = words.stylize(chosen, max(0, span[0]), len(words) if span[1] == -1 else max(0, span[1]))
        left = self._left_of(stack, n, line)
        if base or words is not line.words:
            return self._strip(line, words, left, base or self.visual_style)
        known = (line, self._look, self._column.width, left)
        if (strip := self._strips.get(known)) is None:
            strip = self._strips[known] = self._strip(line, words, left, self.visual_style)
        return strip

    def _left_of(self, stack: Stack, n: int, line: DrawnLine) -> int:
        """Cells by which a line is moved: as its block is, but no further than to the end of the code it is in."""
        block = stack.block_at(n) if line.wide else None
        return min(block.left, furthest((line,), self._column.width)) if block else 0

    def _past(self, strip: Strip) -> Strip:
        """A line of what the model no longer sees as it was, marked at its beginning."""
        mark = Segment(PAST, (self.visual_style + self.get_visual_style("transcript--past", partial=True)).rich_style)
        return Strip.join([Strip([mark], 1), strip.crop(1)])

    def _ground(self, stack: Stack, n: int) -> Style | None:
        """What stands out at a line of this."""
        block = self._focused
        if self.has_focus and block and block in stack.blocks and n == stack.span(block)[0]:
            return self.get_visual_style("transcript--focused")
        return self.get_visual_style("transcript--found") if stack is self._found else None

    def _hover(self, words: Content, press: object) -> Content:
        style = self.get_visual_style("transcript--hovered", partial=True)
        spans = [s for s in words.spans if isinstance(s.style, Style) and s.style.meta.get("press") == press]
        return words.add_spans([Span(s.start, s.end, style) for s in spans])

    def _strip(self, line: DrawnLine, words: Content, left: int, base: Style) -> Strip:
        """Without the places that Textual puts into styles for marking, which `text_at` tells: each piece of text would have a
        style of its own, and Textual keeps sixteen thousand of them."""
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
        """On the first block in sight that takes keys, unless one was clicked."""
        if self._focused is None or not self._in_sight(self._focused):
            self._focus_on(next((block for block in self._seen() if block.keys), None))

        elif self._focused:
            self._focused.show_focus(True)

    def on_blur(self, event: Blur) -> None:
        if self._focused:
            self._focused.show_focus(False)
        self.refresh()

    def on_key(self, event: Key) -> None:
        """Tab goes to the next block that takes keys, and behind the last one elsewhere; keys of the block do what they say."""
        if event.key == "tab":
            if self._focus_on(self._next_block()):
                event.stop()
        elif (block := self._focused) and event.key in block.keys:
            event.stop()
            self._press(block, block.keys[event.key])

    def _press(self, block: Block, what: str) -> None:
        if message := block.press(what):
            self.post_message(message)
        self.post_message(self.KeysChanged())

    def _focus_on(self, block: Block | None) -> bool:
        if self._focused and self._focused is not block:
            self._focused.show_focus(False)
        self._focused = block
        if block:
            block.show_focus(True)
        if block and not self._in_sight(block):
            self.scroll_to(y=self._top(self._column.stack_of(block), block) - 1)
        self.post_message(self.KeysChanged())
        self.refresh()
        return block is not None

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        """What the keys of the block with the focus do; empty where none has it."""
        return self._focused.key_words if self.has_focus and self._focused else ()

    def _next_block(self) -> Block | None:
        """Below the one that has the focus, where that is in sight; else the first in sight."""
        block, seen = self._focused, list(self._seen())
        if block not in seen:
            return next((block for block in seen if block.keys), None)
        start, passed = self._column.place_of(self._column.stack_of(block)) or 0, False
        for place in range(start, min(start + MAX_ITEMS_AHEAD, len(self._column))):
            for each in self._column.blocks(place):
                if passed and each.keys:
                    return each
                passed = passed or each is block
        return None

    def _seen(self) -> Iterator[Block]:
        """The blocks in sight, top to bottom."""
        for y in range(self._pane.height):
            if (at := self._block_at(y)) and (block := self._column.stack(at[0]).block_at(at[1])):
                yield block

    def _in_sight(self, block: Block) -> bool:
        return any(seen is block for seen in self._seen())

    # ── sideways ──

    def seen_blocks(self) -> set[Block]:
        return set(self._seen())

    def block_under(self, event: MouseEvent) -> Block | None:
        at = self._under(event)
        return self._column.stack(at[0]).block_at(at[1]) if at else None

    def move_sideways(self, blocks: Iterable[Block], cells: int) -> None:
        for block in blocks:
            stack = self._column.stack_of(block)
            most = furthest((stack.lines or [])[slice(*stack.span(block))], self._column.width)
            block.left = max(0, min(block.left + cells, most))
        self.refresh()

    # ── the mouse ──

    def _under(self, event: MouseEvent) -> tuple[int, int] | None:
        place = event.get_content_offset(self)
        return self._block_at(place.y) if place else None

    def _hover_at(self, hovered: tuple[int, object] | None) -> None:
        if hovered != self._hovered:
            self._hovered = hovered
            self.refresh()

    def on_mouse_move(self, event: MouseMove) -> None:
        at, press = self._under(event), event.style.meta.get("press")
        self._hover_at((_key(at), press) if at and press else None)

    def on_leave(self, event: Leave) -> None:
        self._hover_at(None)

    def on_mouse_down(self, event: MouseDown) -> None:
        self._pressed = event.screen_offset
        self._focus_on(None)

    def on_click(self, event: Click) -> None:
        """On a target; twice marks the paragraph, three times the block."""
        at, block = self._under(event), self.block_under(event)
        if at is None or block is None or event.screen_offset != self._pressed:
            return  # the end of marking
        event.stop()
        self._focus_on(block if block.keys else None)
        if press := event.style.meta.get("press"):
            what, about = press
            if what == "link":
                self.post_message(self.LinkClicked(about))
            elif what == "place":
                self.post_message(self.PlaceClicked(about))
            else:
                self._press(block, what)
        elif event.chain > 1:
            self._mark(*at, block if event.chain > 2 else None)

    # ── marking and copying ──

    def text_select_all(self) -> None:
        """Not all of a conversation: clicks mark a part of it."""

    @property
    def select_container(self) -> Widget:
        return self

    def text_at(self, x: int, y: int) -> Offset | None:
        """The place in the text, as marks have it, of a cell of the pane; None below all text."""
        if (at := self._block_at(y)) is None:
            return None
        lines = self._column.lines(at[0])
        line = lines[at[1]] if at[1] < len(lines) else DrawnLine(Content(""))
        return Offset(character_at(line, x, self._left_of(self._column.stack(at[0]), at[1], line)), _key(at))

    def _mark(self, place: int, line: int, block: Block | None) -> None:
        """All of a block, else the paragraph a line is in."""
        first, last = self._column.paragraph(place, line)
        if block:
            first, stop = self._column.stack(place).span(block)
            last = stop - 1
        end = len(self._column.lines(place)[last].words)
        marked = Selection(Offset(0, _key((place, first))), Offset(end, _key((place, last))))
        self.screen.selections = {self: marked}

    def texts_in_sight(self) -> list[tuple[Offset, str]]:
        """What can be copied of what is seen, top to bottom: each block and each piece of code in it, with where it stands in the
        pane."""
        found: list[tuple[Offset, str]] = []
        seen: set[object] = set()
        for y in range(self._pane.height):
            if (at := self._block_at(y)) is None:
                break
            stack, lines = self._column.stack(at[0]), self._column.lines(at[0])
            block = stack.block_at(at[1])
            if block is None or not lines[at[1]].words.plain.strip():
                continue
            if block not in seen:
                seen.add(block)
                found.append((Offset(0, y), clean(block.source or self.words(block))))
            if (code := _code_at(lines, at[1])) and code not in seen:
                seen.add(code)
                found.append((Offset(code.gutter.cell_length, y), code.source))
        return found

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What was marked, without signs and indents; where the mouse has left the transcript, as far as it was in sight."""
        top, bottom = self._block_at(0), self._block_at(self._pane.height - 1) or (len(self._column), 0)
        if top is None:
            return None
        start, end = selection
        first, x = (_line_and_column(start), max(0, start.x)) if start else (top, 0)
        last, end_x = (_line_and_column(end), max(0, end.x)) if end else (bottom, None)
        return self._column.text_between(first, last, x, end_x), "\n"


def _begins_blank(line: DrawnLine) -> bool:
    return (line.gutter.plain + line.words.plain)[:1] in {"", " "}


def _code_at(lines: Sequence[DrawnLine], n: int) -> DrawnLine | None:
    """The line that the code begins with which another line is in."""
    while n and lines[n].fill and not lines[n].source:
        n -= 1
    return lines[n] if lines[n].source else None


def _key(at: tuple[int, int]) -> int:
    return (at[0] << LINE_BITS) + at[1]


def _line_and_column(offset: Offset) -> tuple[int, int]:
    return offset.y >> LINE_BITS, offset.y & ((1 << LINE_BITS) - 1)
