"""The conversation on screen: one widget over the record and the turn in progress, which draws the lines that are seen.

Heights of what was never seen are guessed; they become true a page before it comes into sight, and what is read stays in its place.
Follows the end while text arrives, unless the reader has scrolled away. Knows items and blocks, no session.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import monotonic, perf_counter
from typing import Any, TypeVar

from rich.segment import Segment
from textual.content import Content, Span
from textual.events import Blur, Click, Focus, Key, Leave, MouseDown, MouseMove
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from ctxchat.tui.reading.history import Shown
from ctxchat.tui.transcript.block import Block
from ctxchat.tui.transcript.fold import Fold
from ctxchat.tui.transcript.heights import Heights
from ctxchat.tui.transcript.lines import DrawnLine
from ctxchat.tui.transcript.record import Tokens, blocks_for, weigh
from ctxchat.tui.transcript.reply import ReplyBlock

STANDS_OUT = 5.0
"""Seconds for which what was gone to has another ground: long enough to be found by an eye that was elsewhere."""

GUESS = 4
"""Lines of an item that was never seen."""

MOST = 400
"""Items that are kept drawn; of more the farther half is forgotten and drawn anew when it is seen again."""

LEAST, TIMES = 0.033, 4
"""Next drawing = now + max(33 ms, 4 × what the last one cost): at most a fifth of the time goes into it."""

BEAT = 1 / 8
"""Seconds between two drawings of what counts or spins."""

NARROW = 56
"""Cells below which only blocks that ask for room above them stand apart."""

LINE_BITS = 20
"""Places for text selection are numbers: of the item, and in this many bits of the line in it. So they outlive a height that was
guessed wrong further up."""

Kind = TypeVar("Kind", bound=Block)


class Stack:
    """Blocks that stand for one item, with their lines as far as they are drawn. `ends` are the lines each of them ends before."""

    __slots__ = ("blocks", "ends", "lines")

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.lines: list[DrawnLine] | None = None
        self.ends: list[int] = []

    def block_at(self, line: int) -> Block | None:
        """Whose line it is."""
        place = bisect_right(self.ends, line)
        return self.blocks[place] if place < len(self.blocks) else None

    def begins(self, block: Block) -> int:
        """The first line of a block, its gap left out."""
        place = self.blocks.index(block)
        start = self.ends[place - 1] if place else 0
        lines = self.lines or []
        while start < self.ends[place] - 1 and not lines[start].words and not lines[start].gutter:
            start += 1
        return start


class Transcript(ScrollView, can_focus=True):
    """`show` a record, `add` what is in none yet, `settle` what became of it."""

    COMPONENT_CLASSES = {"transcript--found", "transcript--focused", "transcript--hovered"}

    virtual_size = Reactive(Size(0, 0))  # as Textual's, but a line more moves nothing around it

    class LinkClicked(Message):
        """A person wants to open a link."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self.items: Sequence[Shown] = ()
        self._tokens: Tokens = {}
        self._things: list[Shown | None] = []  # None: in no record, or not yet
        self._stacks: list[Stack | None] = []  # of each thing, where it was looked at
        self._heights = Heights()
        self._settled = 0  # what is behind this one is in no record yet
        self._apart: list[tuple[Shown, list[Block]]] = []  # items with words of ours between their blocks
        self._drawn = 0
        self._width = 0
        self._look = 0  # how often the colours changed
        self._unfolded = False
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

    @property
    def _pane(self) -> Size:
        """The cells lines are drawn in."""
        return self.scrollable_content_region.size

    # ── the record ──

    def show(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """All anew, at its end."""
        self._take(items, tokens, [None] * len(items))
        self.to_end()

    def settle(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Block]]) -> None:
        """The record has grown: `places` says which blocks of the turn now stand for which item."""
        known = self.items
        if len(items) < len(known) or any(not _same(old, new) for old, new in zip(known, items, strict=False)):
            self._redo(items, tokens)
            return
        self.items = items
        for shown in items[len(known) :]:
            self._settle_one(shown, places.get(shown.key, []))
        self.weigh(tokens)
        self._look_around()
        self.refresh()

    def _settle_one(self, shown: Shown, blocks: list[Block]) -> None:
        stacks = self._stacks
        places = [i for i in range(self._settled, len(stacks)) if (s := stacks[i]) and s.blocks[0] in blocks]
        if not places:
            self._splice(self._settled, self._settled, [shown], [None])
            self._settled += 1
            return
        first, last = places[0], places[-1] + 1
        self._settled = last
        if last - first != len(places):
            self._apart.append((shown, blocks))
            return
        stack = Stack([])
        for place in places:
            part = stacks[place]
            if part and part.lines is not None and (stack.lines is not None or place == first):
                stack.lines = [*(stack.lines or ()), *part.lines]
                stack.ends.append(len(stack.lines))
            else:
                stack.lines = None
            stack.blocks += part.blocks if part else ()
        self._bind(stack)
        self._splice(first, last, [shown], [stack], sum(self._heights[i] for i in places))
        self._settled = first + 1

    def weigh(self, tokens: Tokens) -> None:
        """What everything costs by now."""
        self._tokens = tokens
        for shown, stack in zip(self._things, self._stacks, strict=True):
            if shown and stack:
                weigh(shown, stack.blocks, tokens)
        for shown, blocks in self._apart:
            weigh(shown, blocks, tokens)

    def _redo(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """The record is another one; what stays in it stays as it is, and in its place where it is being read."""
        known = {s.key: (s, stack) for s, stack in zip(self._things, self._stacks, strict=True) if s and stack}
        index, line = self._heights.at(round(self.scroll_y))
        reading = next((s.key for s in reversed(self._things[: index + 1]) if s), "")
        stacks = [found[1] if (found := known.get(shown.key)) and _same(found[0], shown) else None for shown in items]
        follows, self._tokens = self._follows, tokens
        self._take(items, tokens, stacks)
        if not follows:
            place = self._place(reading)
            self._put(self._heights.top(place) + line if place is not None else 0)
        self.weigh(tokens)
        self._look_around()
        self.refresh()

    def _take(self, items: Sequence[Shown], tokens: Tokens, stacks: list[Stack | None]) -> None:
        self.items, self._tokens = items, tokens
        self._things, self._stacks, self._settled = [*items], stacks, len(items)
        self._heights = Heights(len(s.lines) if s and s.lines is not None else GUESS for s in stacks)
        self._apart, self._stale, self._offered = [], [], None
        self._focused = self._hovered = None
        if self.is_attached and self.text_selection:
            self.screen.clear_selection()

    def _splice(
        self, start: int, stop: int, things: list[Shown | None], stacks: list[Stack | None], height: int = GUESS
    ) -> None:
        self._things[start:stop] = things
        self._stacks[start:stop] = stacks
        self._heights.splice(start, stop, [height] * len(things))
        behind = start + len(things)
        if behind < len(self._stacks) and stop - start != len(things) and (stack := self._stacks[behind]):
            stack.lines = None  # the gap above it may be another one

    # ── the turn in progress ──

    def add(self, block: Block, *, before: Block | None = None) -> None:
        """A block of the turn in progress, or one that is in no record, at the very end or before one of those."""
        if not self.is_attached:
            return  # on the way out: nowhere to say it
        if self._unfolded and isinstance(block, Fold):
            block.unfolded = True
        stack = self._bind(Stack([block]))
        place = self._live_place(before) if before else None
        place = len(self._things) if place is None else place
        self._splice(place, place, [None], [stack])
        if self._width:
            self._lines(place)
        if block.moving and self._beating is None:
            self._beating = self.set_interval(BEAT, self._beat)
        self._look_around()
        self.refresh()

    def discard(self, block: Block) -> None:
        """A block that is in no record is to go."""
        place = self._live_place(block)
        if place is not None:
            self._splice(place, place + 1, [], [])
            self._settled -= place < self._settled
            self._look_around()
            self.refresh()

    def _live_place(self, block: Block) -> int | None:
        places = range(len(self._stacks) - 1, -1, -1)
        return next((i for i in places if self._things[i] is None and block in self._blocks(i)), None)

    def _bind(self, stack: Stack) -> Stack:
        for block in stack.blocks:
            block.changed = partial(self._changed, stack)
        return stack

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
            place = self._stack_place(stack)
            if place is not None and stack.lines is not None:
                self._draw_anew(place, stack)
        self._next = monotonic() + max(LEAST, TIMES * (perf_counter() - began))

    def _beat(self) -> None:
        """Whatever counts."""
        moving = [s for s in self._stacks[self._settled :] if s and any(b.moving for b in s.blocks)]
        if not moving and self._beating:
            self._beating.stop()
            self._beating = None
        self._stale += [s for s in moving if s not in self._stale]
        self._draw_stale()

    def _draw_anew(self, place: int, stack: Stack) -> None:
        """The lines that are others now are painted, and no others unless there are more or fewer."""
        before, stack.lines = stack.lines or [], None
        lines = self._lines(place)
        other: list[int] = []
        for n, (old, new) in enumerate(zip(before, lines, strict=False)):
            if old is new:
                continue
            if old.like(new):
                lines[n] = old
            else:
                other.append(n)
        top, seen = self._heights.top(place), round(self.scroll_y)
        if len(lines) == len(before):
            for n in other:
                self.refresh_line(top + n)
        elif top + len(before) <= seen:  # above what is seen
            self._put(seen + len(lines) - len(before))
            self._look_around()
        else:
            first = other[0] if other else min(len(lines), len(before))
            self._look_around()
            self.refresh_lines(top + first, max(1, round(self.scroll_y) + self._pane.height - top - first))

    # ── lines ──

    def _blocks(self, place: int) -> list[Block]:
        """The blocks of a thing, made where it was never looked at."""
        stack = self._stacks[place]
        if stack is None:
            shown = self._things[place]
            stack = self._stacks[place] = self._bind(Stack(blocks_for(shown, self._tokens) if shown else []))
            for block in stack.blocks:
                if isinstance(block, Fold):
                    block.unfolded = block.unfolded or self._unfolded
        return stack.blocks

    def _lines(self, place: int) -> list[DrawnLine]:
        """The lines of a thing, drawn where they are not; from then on its height is true."""
        blocks = self._blocks(place)
        stack = self._stacks[place]
        assert stack
        if stack.lines is None:
            lines: list[DrawnLine] = []
            below, stack.ends = self._below(place - 1), []
            for block in blocks:
                lines += (DrawnLine(Content("")) for _ in range(max(below, block.above)))
                lines += block.draw(self._width)
                stack.ends.append(len(lines))
                below = block.below if self._width >= NARROW else 0
            stack.lines = lines
            self._heights.put(place, len(lines))
            self._drawn += 1
        return stack.lines

    def _below(self, place: int) -> int:
        """The empty lines that the nearest thing above wants behind it."""
        while place >= 0:
            if blocks := self._blocks(place):
                return blocks[-1].below if self._width >= NARROW else 0
            place -= 1
        return 0

    def _look_around(self) -> None:
        """What is in sight and a page around it is drawn, so that its heights are true; what is read stays where it is."""
        height, count = self._pane.height, len(self._things)
        if not self._width or not height:
            return
        before = round(self.scroll_y)
        if self._follows:
            above = 0
            place = count
            while place > 0 and above < 2 * height:
                place -= 1
                above += len(self._lines(place))
            y = self._heights.total - height
        elif count:
            place, line = self._heights.at(before)
            line = max(0, min(line, len(self._lines(place)) - 1))
            below, behind = -line, place
            while behind < count and below < 2 * height:
                below += len(self._lines(behind))
                behind += 1
            above, first = line, place
            while first > 0 and above < height:
                first -= 1
                above += len(self._lines(first))
            y = self._heights.top(place) + line
        else:
            y = 0
        total = self._heights.total
        y = max(0, min(y, total - height))
        self.virtual_size = Size(self._width, total)
        self._put(y)
        self._scroll_update(self.virtual_size)
        if y != before:
            self.refresh()
        if self._drawn > MOST and count:
            self._forget(self._heights.at(y)[0])

    def _forget(self, reading: int) -> None:
        """What is far from what is read is drawn again when it is seen again; what a person unfolded stays so."""
        self._drawn = 0
        for place, stack in enumerate(self._stacks):
            if stack is None:
                continue
            if abs(place - reading) <= MOST // 4:
                self._drawn += stack.lines is not None
                continue
            stack.lines = None
            kept = any(
                b is self._offered or (isinstance(b, Fold) and b.unfolded != self._unfolded) for b in stack.blocks
            )
            if self._things[place] and not kept and stack is not self._found and self._focused not in stack.blocks:
                self._stacks[place] = None

    def _put(self, y: int) -> None:
        """Be at this line, where what is seen is the same: nothing is painted for it."""
        self.set_reactive(Widget.scroll_y, float(y))
        self.set_reactive(Widget.scroll_target_y, float(y))
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = y

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if self._pane.width != self._width:
            self._width = self._pane.width
            for stack in self._stacks:
                if stack:
                    stack.lines = None
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

    # ── where one reads ──

    @property
    def _follows(self) -> bool:
        return self._anchored and not self._anchor_released

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
        """Scroll to an item of the record."""
        if self._place(key) is not None:
            # Not before the chat is laid out: under the screen one came from it was not, and a question may have come meanwhile.
            self.call_after_refresh(self._bring, key)

    def _bring(self, key: str) -> None:
        place = self._place(key)
        if place is None or not self._width:
            return
        self.release_anchor()
        self._blocks(place)
        stack = self._stacks[place]
        gap = stack.begins(stack.blocks[0]) if self._lines(place) and stack else 0
        self._put(self._heights.top(place) + gap)
        self._found = stack
        self.set_timer(STANDS_OUT, partial(self._lose, stack))
        self._look_around()
        self._check_anchor()
        self.refresh()

    def _lose(self, stack: Stack | None) -> None:
        if stack is self._found:
            self._found = None
            self.refresh()

    @property
    def gone_to(self) -> bool:
        """Something was gone to a moment ago, and stands out."""
        return self._found is not None

    def _place(self, key: str) -> int | None:
        found = next((place for place, shown in enumerate(self._things) if shown and shown.key == key), None)
        blocks = next((blocks for shown, blocks in self._apart if shown.key == key), None)
        return self._live_place(blocks[0]) if found is None and blocks else found

    def _stack_place(self, stack: Stack) -> int | None:
        """Where it stands; most that change are among the last."""
        for place in range(len(self._stacks) - 1, max(-1, len(self._stacks) - 64), -1):
            if self._stacks[place] is stack:
                return place
        return self._stacks.index(stack) if stack in self._stacks else None

    # ── what it holds ──

    def made(self, kind: type[Kind]) -> Iterator[Kind]:
        """The blocks of a kind that were looked at, and those of the turn in progress, top to bottom."""
        return (block for stack in self._stacks if stack for block in stack.blocks if isinstance(block, kind))

    def words(self, block: Block) -> str:
        """What a block says, as it is drawn."""
        return "\n".join((line.gutter + line.words).plain.rstrip() for line in block.draw(self._width or 80))

    def toggle_details(self) -> None:
        """Unfold all that can be, or fold it."""
        self._unfolded = not self._unfolded
        for stack in self._stacks:
            folds = [block for block in stack.blocks if isinstance(block, Fold)] if stack else []
            for fold in folds:
                fold.unfolded = self._unfolded
            if stack and folds:
                stack.lines = None
        self._look_around()
        self.refresh()

    def last_answer(self) -> str:
        """The words of the newest reply."""
        for place in range(len(self._things) - 1, -1, -1):
            for block in reversed(self._blocks(place)):
                if isinstance(block, ReplyBlock) and block.text.strip():
                    return block.text
        return ""

    def offer_to_go_on(self, offered: bool) -> None:
        """The last reply is a half one that can be gone on with; or there is none such."""
        if self._offered:
            self._offered.offer(False)
            self._offered = None
        for place in range(len(self._things) - 1, -1, -1) if offered else ():
            for block in reversed(self._blocks(place)):
                if isinstance(block, ReplyBlock):
                    if block.interrupted:
                        self._offered = block
                        block.offer(True)
                    return

    # ── drawing ──

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look += 1

    def _at(self, y: int) -> tuple[int, int] | None:
        """The thing, and the line in it, at a line of the screen."""
        y += round(self.scroll_y)
        return self._heights.at(y) if 0 <= y < self._heights.total else None

    def render_line(self, y: int) -> Strip:
        at = self._at(y)
        if at is None or not self._width:
            return Strip.blank(self._pane.width, self.visual_style.rich_style)
        place, n = at
        line = self._lines(place)[n] if n < len(self._lines(place)) else DrawnLine(Content(""))
        stack, key = self._stacks[place], (place << LINE_BITS) + n
        assert stack
        base, words, plain = self.visual_style, line.words, True
        block = stack.block_at(n)
        if stack is self._found:
            base, plain = self.get_visual_style("transcript--found"), False
        if self.has_focus and block and block is self._focused and n == stack.begins(block):
            base, plain = self.get_visual_style("transcript--focused"), False
        if self._hovered and self._hovered[0] == key:
            words, plain = self._hover(words, self._hovered[1]), False
        if (selection := self.text_selection) and (span := selection.get_span(key)):
            start, end = max(0, span[0]), len(words) if span[1] == -1 else max(0, span[1])
            chosen = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            words, plain = words.stylize(chosen, start, end), False
        if plain and line.strip and line.at == (key, self._look) and line.strip.cell_length == self._width:
            return line.strip
        strip = self._strip(line, words, base, key)
        if plain:
            line.strip, line.at = strip, (key, self._look)
        return strip

    def _hover(self, words: Content, press: object) -> Content:
        style = self.get_visual_style("transcript--hovered", partial=True)
        spans = [s for s in words.spans if isinstance(s.style, Style) and s.style.meta.get("press") == press]
        return words.add_spans([Span(s.start, s.end, style) for s in spans])

    def _strip(self, line: DrawnLine, words: Content, base: Style, key: int) -> Strip:
        segments: list[Segment] = []
        for content, x in ((line.gutter, -len(line.gutter)), (words, 0)):
            for text, style in content.render(base, end="", parse_style=self._get_style):
                segments.append(Segment(text, (base + style).rich_style_with_offset(x, key)))
                x += len(text)
        fill = base + self._get_style(line.fill) if line.fill else base
        rest = self._width - sum(segment.cell_length for segment in segments)
        if rest > 0:
            segments.append(Segment(" " * rest, fill.rich_style_with_offset(len(words), key)))
        return Strip(segments).adjust_cell_length(self._width, fill.rich_style)

    # ── keys ──

    def on_focus(self, event: Focus) -> None:
        """On the first block in sight that takes keys, unless one was clicked."""
        if self._focused is None or not self._in_sight(self._focused):
            self._focus_on(next((block for block in self._seen() if block.keys), None))

    def on_blur(self, event: Blur) -> None:
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

    def focus_block(self, block: Block) -> None:
        """Its keys work from now on."""
        self.focus()
        self._focus_on(block)

    def _focus_on(self, block: Block | None) -> bool:
        self._focused = block
        if block and not self._in_sight(block):
            place = self._stack_place(self._stack_of(block))
            if place is not None:
                self._lines(place)
                self.scroll_to(y=self._heights.top(place) + self._stack_of(block).begins(block) - 1)
        self.refresh()
        return block is not None

    def _next_block(self) -> Block | None:
        start, passed = 0, self._focused is None
        if self._focused:
            start = self._stack_place(self._stack_of(self._focused)) or 0
        elif at := self._at(0):
            start = at[0]
        for place in range(start, len(self._things)):
            for block in self._blocks(place):
                if passed and block.keys:
                    return block
                passed = passed or block is self._focused
        return None

    def _stack_of(self, block: Block) -> Stack:
        return next(stack for stack in reversed(self._stacks) if stack and block in stack.blocks)

    def _seen(self) -> Iterator[Block]:
        """The blocks in sight, top to bottom."""
        for y in range(self._pane.height):
            if (at := self._at(y)) and (stack := self._stacks[at[0]]) and (block := stack.block_at(at[1])):
                yield block

    def _in_sight(self, block: Block) -> bool:
        return any(seen is block for seen in self._seen())

    # ── the mouse ──

    def _under(self, event: MouseDown | MouseMove | Click) -> tuple[int, int] | None:
        place = event.get_content_offset(self)
        return self._at(place.y) if place else None

    def _hover_at(self, hovered: tuple[int, object] | None) -> None:
        if hovered != self._hovered:
            self._hovered = hovered
            self.refresh()

    def on_mouse_move(self, event: MouseMove) -> None:
        at, press = self._under(event), event.style.meta.get("press")
        self._hover_at(((at[0] << LINE_BITS) + at[1], press) if at and press else None)

    def on_leave(self, event: Leave) -> None:
        self._hover_at(None)

    def on_mouse_down(self, event: MouseDown) -> None:
        self._pressed = event.screen_offset

    def on_click(self, event: Click) -> None:
        """On a target; twice marks the paragraph, three times the block."""
        at = self._under(event)
        stack = self._stacks[at[0]] if at else None
        block = stack.block_at(at[1]) if at and stack else None
        if at is None or stack is None or block is None or event.screen_offset != self._pressed:
            return  # the end of marking
        event.stop()
        self._focus_on(block if block.keys else None)
        if press := event.style.meta.get("press"):
            what, about = press
            if what == "link":
                self.post_message(self.LinkClicked(about))
            else:
                self._press(block, what)
        elif event.chain > 1:
            self._mark(at[0], at[1], stack, block if event.chain > 2 else None)

    def text_select_all(self) -> None:
        """Not all of a conversation: clicks mark a part of it."""

    @property
    def select_container(self) -> Widget:
        return self

    # ── marking ──

    def _mark(self, place: int, n: int, stack: Stack, block: Block | None) -> None:
        """All of a block, else the paragraph a line is in."""
        lines = self._lines(place)
        if block:
            first, last = stack.begins(block), stack.ends[stack.blocks.index(block)] - 1
        else:
            first = last = n
            while first > 0 and lines[first - 1].glue != "\n":
                first -= 1
            while last < len(lines) - 1 and lines[last].glue != "\n":
                last += 1
        start, end = ((place << LINE_BITS) + line for line in (first, last))
        self.screen.selections = {self: Selection(Offset(0, start), Offset(len(lines[last].words), end))}

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What was marked, without signs and indents, and with the line ends of the text and not of the screen. Where the mouse has
        left the transcript it is what was in sight."""
        if not self._things:
            return None
        start, end = selection
        bottom = self._heights.at(round(self.scroll_y) + self._pane.height - 1)
        (first, line), x = (_place_of(start), start.x) if start else (self._heights.at(round(self.scroll_y)), 0)
        (last, last_line), end_x = (_place_of(end), end.x) if end else (bottom, None)
        said: list[str] = []
        for place in range(first, min(last, len(self._things) - 1) + 1):
            lines = self._lines(place)
            stop = last_line + 1 if place == last else len(lines)
            for n in range(line if place == first else 0, min(stop, len(lines))):
                cut = max(0, end_x) if end_x is not None and (place, n) == (last, last_line) else None
                words = lines[n].words.plain[max(0, x) if (place, n) == (first, line) else 0 : cut]
                said.append((words.rstrip() if lines[n].glue == "\n" else words) + lines[n].glue)
        return "".join(said).removesuffix("\n"), "\n"


def _place_of(offset: Offset) -> tuple[int, int]:
    return offset.y >> LINE_BITS, offset.y & ((1 << LINE_BITS) - 1)


def _same(one: Shown, other: Shown) -> bool:
    return one.group is other.group and one.change is other.change and one.facts_back == other.facts_back
