"""What stands in the transcript, from top to bottom: items of the record and blocks that are in none, in lines of one width.

Lines are drawn for what is looked at; the height of what never was is guessed, and blocks far away are made again when they are
looked at again. Knows no widget and no screen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from textual.content import Content

from ctxchat.presentation.history import Shown
from ctxchat.tui.transcript.blocks import Block, CompactionMark, Fold, NoticeBlock, UserBlock
from ctxchat.tui.transcript.record_blocks import Tokens, blocks_for, set_block_tokens
from ctxchat.tui.widgets.lines import DrawnLine

CHUNK_ITEMS = 256


class Heights:
    """Lines of each thing, known or guessed. What is asked of a hundred thousand of them takes a few hundred steps."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._sums: list[int] = []
        self._add_up(0)

    def _add_up(self, chunk: int) -> None:
        found = self._heights
        self._sums[chunk:] = (
            sum(found[i : i + CHUNK_ITEMS]) for i in range(chunk * CHUNK_ITEMS, len(found), CHUNK_ITEMS)
        )

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """Lines of all of them."""
        return sum(self._sums)

    def set_height(self, index: int, height: int) -> int:
        """It is so high; by how much that is more than before."""
        more = height - self._heights[index]
        self._heights[index] = height
        self._sums[index // CHUNK_ITEMS] += more
        return more

    def splice(self, start: int, stop: int, heights: Iterable[int]) -> None:
        """These in place of those from `start` up to `stop`."""
        self._heights[start:stop] = heights
        self._add_up(start // CHUNK_ITEMS)

    def top(self, index: int) -> int:
        """The line it begins at; for one behind the last the line everything ends at."""
        chunk = index // CHUNK_ITEMS
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * CHUNK_ITEMS : index])

    def block_at(self, y: int) -> tuple[int, int]:
        """Which one stands at a line, and which of its lines that is; the nearest where there is none. Empty: (0, 0)."""
        if not self._heights or y < 0:
            return 0, 0
        left, chunk = y, 0
        while chunk < len(self._sums) and left >= self._sums[chunk]:
            left -= self._sums[chunk]
            chunk += 1
        if chunk == len(self._sums):
            return len(self._heights) - 1, max(0, self._heights[-1] - 1)
        index = chunk * CHUNK_ITEMS
        while left >= self._heights[index]:
            left -= self._heights[index]
            index += 1
        return index, left


GUESSED_LINES = 4
"""Lines of an item that was never seen."""

MAX_DRAWN_ITEMS = 400
"""Items that are kept drawn; of more the farther half is forgotten."""

NARROW_CELLS = 56
"""Cells below which there is less room between blocks."""

Kind = TypeVar("Kind", bound=Block)


class Stack:
    """Blocks that stand for one thing, with their lines where they are drawn; `ends` are the lines each of them ends before."""

    __slots__ = ("blocks", "ends", "lines")

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.lines: list[DrawnLine] | None = None
        self.ends: list[int] = []

    def block_at(self, line: int) -> Block | None:
        """Whose line it is."""
        place = bisect_right(self.ends, line)
        return self.blocks[place] if place < len(self.blocks) else None

    def span(self, block: Block) -> tuple[int, int]:
        """The lines of a block, from the first that is not empty up to the last; of one that is drawn."""
        place, lines = self.blocks.index(block), self.lines or []
        start, stop = self.ends[place - 1] if place else 0, self.ends[place]
        while start < stop - 1 and not lines[start].words and not lines[start].gutter:
            start += 1
        return start, stop


class EndMark(NamedTuple):
    """What stood at the end: the block, how many lines it had, and in which width, unfolded or not."""

    block: Block
    lines: int
    look: tuple[int, bool]


class TranscriptColumn:
    """All blocks of the conversation, top to bottom, with their heights: `set_record` gives it a record, `extend_record` what
    became of blocks that were added. `changed` is called when the blocks of a stack say something else; `archive_key` is named
    where something was compacted."""

    def __init__(self, changed: Callable[[Stack], None], archive_key: str = "") -> None:
        self.items: Sequence[Shown] = ()
        self.heights = Heights()
        self.unfolded = False
        self.width = 0
        self._archive_key = archive_key
        self._changed = changed
        self._tokens: Tokens = {}
        self._newest_seen = 0  # the number of the newest message in the view
        self._things: list[Shown | None] = []  # None: in no record, or not yet
        self._stacks: list[Stack | None] = []  # of each thing, where it was looked at
        self._settled = 0  # what is behind this one is in no record yet
        self._apart: list[tuple[Shown, list[Block]]] = []  # items with words of ours between their blocks
        self._drawn = 0

    def __len__(self) -> int:
        return len(self._things)

    # ── what stands in it ──

    def set_record(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """This record and nothing else. What was there already stays as it is drawn."""
        known = {s.key: (s, stack) for s, stack in zip(self._things, self._stacks, strict=True) if s and stack}
        found = [known.get(shown.key) for shown in items] if known else [None] * len(items)
        self._stacks = [
            was[1] if was and _is_same(was[0], now) else None for was, now in zip(found, items, strict=True)
        ]
        self.items, self._settled, self._apart = items, len(items), []
        self._things = list[Shown | None](items)
        self.heights = Heights(len(s.lines) if s and s.lines is not None else GUESSED_LINES for s in self._stacks)
        self.set_tokens(tokens)

    def grows_to(self, items: Sequence[Shown]) -> bool:
        """These are the items there are, and perhaps more behind them."""
        known = self.items
        return len(items) >= len(known) and all(map(_is_same, known, items))

    def extend_record(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Block]]) -> None:
        """More items: `places` says which blocks stand for which of them already."""
        fresh, self.items = items[len(self.items) :], items
        for shown in fresh:
            self._place_blocks(shown, places.get(shown.key, []))
        self.set_tokens(tokens)

    def _place_blocks(self, shown: Shown, blocks: list[Block]) -> None:
        stacks = {i: s for i in range(self._settled, len(self)) if (s := self._stacks[i]) and s.blocks[0] in blocks}
        first, last = min(stacks, default=self._settled), max(stacks, default=self._settled - 1) + 1
        self._settled = last if last - first > len(stacks) else first + 1
        if last - first > len(stacks):
            self._apart.append((shown, blocks))
        elif not stacks:
            place = self._behind_words()
            self._splice(place, place, [shown], [None])
            self._settled = place + 1
        else:
            height = sum(self.heights[place] for place in stacks)
            self._splice(first, last, [shown], [self._bind(_joined_stack(list(stacks.values())))], height)

    def _behind_words(self) -> int:
        """Where something nobody saw growing comes to stand: behind the words of ours that were said before it."""
        place = self._settled
        while place < len(self) and self._things[place] is None and isinstance(self.blocks(place)[0], NoticeBlock):
            place += 1
        return place

    def set_tokens(self, tokens: Tokens) -> None:
        """What everything costs by now."""
        self._tokens, self._newest_seen = tokens, max((key for key in tokens if isinstance(key, int)), default=0)
        for shown, stack in zip(self._things, self._stacks, strict=True):
            if shown and stack:
                set_block_tokens(shown, stack.blocks, tokens)
        for shown, blocks in self._apart:
            set_block_tokens(shown, blocks, tokens)

    def is_out_of_view(self, place: int) -> bool:
        """What was said there is no longer before the model as it was: it stands in a summary, or in the archive alone."""
        shown = self._things[place]
        messages = shown.group.messages if shown and shown.group else ()
        return bool(messages) and all(m.seq < self._newest_seen and m.seq not in self._tokens for m in messages)

    def add_block(self, block: Block, before: Block | None = None) -> None:
        """A block that is in no record, at the very end or before one of those."""
        if isinstance(block, Fold):
            block.unfolded = block.unfolded or self.unfolded
        found = self._loose(before) if before else None
        place = len(self) if found is None else found
        self._splice(place, place, [None], [self._bind(Stack([block]))])
        if self.width:
            self.lines(place)

    def add_above(self, block: Block) -> int:
        """A block that is in no record, before the person's newest message: where it is."""
        asked = (i for i in range(len(self) - 1, -1, -1) if any(isinstance(b, UserBlock) for b in self.blocks(i)))
        place = next(asked, len(self))
        self._splice(place, place, [None], [self._bind(Stack([block]))])
        self._settled += place < self._settled
        if self.width:
            self.lines(place)
        return place

    def discard(self, block: Block) -> None:
        """A block that is in no record is to go."""
        if (place := self._loose(block)) is not None:
            self._splice(place, place + 1, [], [])
            self._settled -= place < self._settled

    def _loose(self, block: Block) -> int | None:
        places = (i for i in range(len(self) - 1, -1, -1) if self._things[i] is None)
        return next((place for place in places if block in self.blocks(place)), None)

    def _bind(self, stack: Stack) -> Stack:
        for block in stack.blocks:
            block.changed = partial(self._changed, stack)
            if isinstance(block, CompactionMark):
                block.archive_key = self._archive_key
        return stack

    def _splice(
        self, start: int, stop: int, things: list[Shown | None], stacks: list[Stack | None], height: int = GUESSED_LINES
    ) -> None:
        self._things[start:stop] = things
        self._stacks[start:stop] = stacks
        self.heights.splice(start, stop, [height] * len(things))
        behind = start + len(things)
        if behind < len(self) and stop - start != len(things) and (stack := self._stacks[behind]):
            stack.lines = None  # the gap above it may be another one

    # ── lines ──

    def set_archive_key(self, key: str) -> None:
        """What is pressed to see compactions, from now on."""
        self._archive_key = key
        for stack in filter(None, self._stacks):
            for block in stack.blocks:
                if isinstance(block, CompactionMark):
                    block.archive_key, stack.lines = key, None

    def set_width(self, width: int) -> None:
        """Lines are so wide from now on."""
        if width != self.width:
            self.width = width
            for stack in filter(None, self._stacks):
                stack.lines = None

    def unfold(self, unfolded: bool) -> None:
        """All that can be, or fold it."""
        self.unfolded = unfolded
        for stack in filter(None, self._stacks):
            for block in stack.blocks:
                if isinstance(block, Fold):
                    block.unfolded, stack.lines = unfolded, None

    def blocks(self, place: int) -> list[Block]:
        """The blocks of a thing, made where it was never looked at."""
        return self.stack(place).blocks

    def stack(self, place: int) -> Stack:
        """The blocks of a thing with their lines, where they are drawn."""
        if stack := self._stacks[place]:
            return stack
        shown = self._things[place]
        stack = self._stacks[place] = self._bind(Stack(blocks_for(shown, self._tokens) if shown else []))
        for block in stack.blocks:
            if isinstance(block, Fold):
                block.unfolded = self.unfolded
        return stack

    def lines(self, place: int) -> list[DrawnLine]:
        """The lines of a thing, drawn where they are not; from then on its height is true."""
        stack = self.stack(place)
        if stack.lines is None:
            lines: list[DrawnLine] = []
            below, stack.ends = self._below(place - 1), []
            for block in stack.blocks:
                lines += (DrawnLine(Content("")) for _ in range(max(below, block.above)))
                lines += block.draw(self.width)
                stack.ends.append(len(lines))
                below = self._gap_below(block)
            stack.lines = lines
            self.heights.set_height(place, len(lines))
            self._drawn += 1
        return stack.lines

    def _below(self, place: int) -> int:
        """The empty lines that the nearest thing above wants behind it."""
        while place >= 0 and not self.blocks(place):
            place -= 1
        return self._gap_below(self.blocks(place)[-1]) if place >= 0 else 0

    def _gap_below(self, block: Block) -> int:
        return 0 if block.yields and self.width < NARROW_CELLS else block.below

    def draw_anew(self, place: int) -> tuple[int, Sequence[int]]:
        """Draw what has changed: how many lines there were, and which of those look different now."""
        stack = self.stack(place)
        before, stack.lines = stack.lines or [], None
        lines, other = self.lines(place), []
        for n, (old, new) in enumerate(zip(before, lines, strict=False)):
            if old is not new and old.like(new):
                lines[n] = old  # with the strip that was made of it
            elif old is not new:
                other.append(n)
        return len(before), other

    def draw_from(self, y: int, up: int, down: int) -> int:
        """Draw what is at a line, and so many lines above and below it. Where what was at that line is now."""
        place, line = self.heights.block_at(y)
        line = max(0, min(line, len(self.lines(place)) - 1))
        self._draw(range(place, len(self)), down + line)
        self._draw(range(place - 1, -1, -1), up - line)
        return self.heights.top(place) + line

    def draw_end(self, up: int) -> None:
        """Draw the last lines."""
        self._draw(range(len(self) - 1, -1, -1), up)

    def _draw(self, places: range, wanted: int) -> None:
        for place in places:
            if wanted <= 0:
                return
            wanted -= len(self.lines(place))

    def forget(self, y: int, keep: Callable[[Stack], bool]) -> None:
        """Where many were drawn, those far from this line go; what a person unfolded stays so."""
        if self._drawn <= MAX_DRAWN_ITEMS:
            return
        reading, self._drawn = self.heights.block_at(y)[0], 0
        for place, stack in enumerate(self._stacks):
            if stack and abs(place - reading) <= MAX_DRAWN_ITEMS // 4:
                self._drawn += stack.lines is not None
            elif stack:
                stack.lines = None
                by_hand = any(isinstance(block, Fold) and block.unfolded != self.unfolded for block in stack.blocks)
                if self._things[place] and not by_hand and not keep(stack):
                    self._stacks[place] = None

    # ── where things are ──

    def end_mark(self) -> EndMark | None:
        """What stands at the very end now; None while nothing does."""
        block = next(self.upwards(), None)
        if block is None:
            return None
        stack = self.stack_of(block)
        if not stack.ends and (place := self.place_of(stack)) is not None:
            self.lines(place)
        return EndMark(block, _lines_of(stack, block), self._look)

    def lines_behind(self, mark: EndMark) -> int | None:
        """How many lines there are below what was the end, None where that is gone; by the heights as they were last drawn. What
        looks different in another width, or unfolded, has not grown."""
        stack = next((s for s in reversed(self._stacks) if s and mark.block in s.blocks), None)
        place = self.place_of(stack) if stack else None
        if stack is None or place is None or not stack.ends:
            return None
        grown = _lines_of(stack, mark.block) - mark.lines if mark.look == self._look else 0
        end = self.heights.top(place) + stack.ends[stack.blocks.index(mark.block)]
        return max(0, self.heights.total - end + grown)

    @property
    def _look(self) -> tuple[int, bool]:
        return self.width, self.unfolded

    def block_at(self, y: int) -> tuple[int, int] | None:
        """The thing at a line, and which of its lines it is."""
        return self.heights.block_at(y) if 0 <= y < self.heights.total else None

    def place(self, key: str) -> int | None:
        """Where an item of the record begins."""
        changed = key.startswith("change:")
        for place, shown in enumerate(self._things):
            if shown and (shown.key if changed else shown.group and shown.group.id) == key:
                return place
        blocks = next((blocks for shown, blocks in self._apart if shown.key == key), None)
        return self._loose(blocks[0]) if blocks else None

    def key(self, place: int) -> str:
        """The item of the record that a thing is, or that it stands behind."""
        return next((shown.key for shown in reversed(self._things[: place + 1]) if shown), "")

    def place_of(self, stack: Stack) -> int | None:
        """Where it stands; most that change are among the last."""
        last = len(self) - 1
        near = next((place for place in range(last, max(-1, last - 64), -1) if self._stacks[place] is stack), None)
        if near is not None:
            return near
        return next((place for place, each in enumerate(self._stacks) if each is stack), None)

    def stack_of(self, block: Block) -> Stack:
        """The stack a block is in."""
        return next(stack for stack in reversed(self._stacks) if stack and block in stack.blocks)

    def drawn_blocks(self, kind: type[Kind]) -> Iterator[Kind]:
        """The blocks of a kind that were looked at, and those in no record, top to bottom."""
        return (block for stack in self._stacks if stack for block in stack.blocks if isinstance(block, kind))

    def upwards(self) -> Iterator[Block]:
        """All blocks from the last one on, made where they never were."""
        return (block for place in range(len(self) - 1, -1, -1) for block in reversed(self.blocks(place)))

    def loose(self) -> Iterator[Stack]:
        """The stacks of the turn in progress, and what was said beside it."""
        return filter(None, self._stacks[self._settled :])

    # ── words ──

    def paragraph(self, place: int, line: int) -> tuple[int, int]:
        """The first and the last line of the text that a line is part of."""
        lines, first, last = self.lines(place), line, line
        while first > 0 and lines[first - 1].glue != "\n":
            first -= 1
        while last < len(lines) - 1 and lines[last].glue != "\n":
            last += 1
        return first, last

    def text_between(
        self, start: tuple[int, int], end: tuple[int, int], first: int = 0, last: int | None = None
    ) -> str:
        """The words from one thing and line, and character in it, to another, with the line ends of the text and not of the
        screen."""
        said: list[str] = []
        for place in range(start[0], min(end[0], len(self) - 1) + 1):
            lines = self.lines(place)
            for n in range(start[1] if place == start[0] else 0, len(lines)):
                if (place, n) > end:
                    break
                begin = first if (place, n) == start else 0
                words = lines[n].words.plain[begin : last if (place, n) == end else None]
                words = words if begin else lines[n].sign + words
                said.append((words.rstrip() if lines[n].glue == "\n" else words) + lines[n].glue)
        return "".join(said).removesuffix("\n")


def _lines_of(stack: Stack, block: Block) -> int:
    """How high a block was when it was last drawn, with the gap above it."""
    place = stack.blocks.index(block)
    return stack.ends[place] - (stack.ends[place - 1] if place else 0)


def _joined_stack(stacks: Sequence[Stack]) -> Stack:
    """One of several that stand under one another, drawn where they are."""
    joined = Stack([block for stack in stacks for block in stack.blocks])
    if all(stack.lines is not None for stack in stacks):
        joined.lines = []
        for stack in stacks:
            joined.ends += (len(joined.lines) + end for end in stack.ends)
            joined.lines += stack.lines or ()
    return joined


def _is_same(one: Shown, other: Shown) -> bool:
    return one.group is other.group and one.change is other.change and one.facts_back == other.facts_back
