"""Holds all that the transcript shows, top to bottom, as a list of entries, and draws those that are looked at.

An entry is one item of the record (`Shown`: a group of messages, a compaction or a rewind), or one block that is in no record: a
notice, or a part of the turn in progress. Every `index` counts entries. An entry's blocks, which draw themselves as lines, are
its `Stack`. Heights of entries that were never drawn are guessed; entries far from the reader are forgotten and made again when
needed. Knows no widget and no screen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from textual.content import Content

from ctxchat.presentation.history import Shown
from ctxchat.tui.transcript.blocks import Block, CompactionMark, Fold, NoticeBlock, UserBlock
from ctxchat.tui.transcript.heights import Heights
from ctxchat.tui.transcript.record_blocks import Tokens, blocks_for, set_block_tokens
from ctxchat.tui.widgets.lines import DrawnLine

GUESSED_LINES = 4
"""Height assumed for an item that was never drawn."""

MAX_DRAWN_ITEMS = 400
"""Entries that are kept drawn; beyond that, those far from the reader are forgotten."""

NARROW_CELLS = 56
"""Width below which blocks that `yield` get no empty line behind them."""

Kind = TypeVar("Kind", bound=Block)


class Stack:
    """The blocks of one entry, with their lines (None until drawn); `ends` holds for each block the line it ends before."""

    __slots__ = ("blocks", "ends", "lines")

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.lines: list[DrawnLine] | None = None
        self.ends: list[int] = []

    def block_at(self, line: int) -> Block | None:
        """The block that a line belongs to."""
        index = bisect_right(self.ends, line)
        return self.blocks[index] if index < len(self.blocks) else None

    def span(self, block: Block) -> tuple[int, int]:
        """The range of lines of a drawn block, `start` up to `stop`, without the empty lines above it."""
        index, lines = self.blocks.index(block), self.lines or []
        start, stop = self.ends[index - 1] if index else 0, self.ends[index]
        while start < stop - 1 and not lines[start].words and not lines[start].gutter:
            start += 1
        return start, stop


class EndMark(NamedTuple):
    """The last block at some moment: how many lines it had, and the `look` (width, and whether all was unfolded) they were drawn
    in."""

    block: Block
    lines: int
    look: tuple[int, bool]


class TranscriptColumn:
    """All entries of a conversation, with their heights.

    `set_record` replaces the record. During a turn `add_block` adds blocks at the end; when the turn's messages are in the
    record, `extend_record` adds those as items, and the blocks that show them already become theirs. `changed` is called when a
    block of a stack has to be drawn anew; `archive_key` is shown in the marks of compactions.
    """

    def __init__(self, changed: Callable[[Stack], None], archive_key: str = "") -> None:
        self.items: Sequence[Shown] = ()
        self.heights = Heights()
        self.unfolded = False
        self.width = 0
        self._archive_key = archive_key
        self._changed = changed
        self._tokens: Tokens = {}
        self._newest_in_view = 0  # the `seq` of the newest message in the view
        self._entries: list[Shown | None] = []  # one for each entry; None: in no record, or not yet
        self._stacks: list[Stack | None] = []  # one for each entry; None: not looked at, or forgotten
        self._settled = 0  # from this index on, entries wait for `extend_record`: none of them is in the record yet
        # items whose blocks have a notice between them: no single stack can hold them, so their entries stay as they are
        self._apart: list[tuple[Shown, list[Block]]] = []
        self._drawn = 0  # how many entries are drawn; may count one twice, and is counted anew by `forget`

    def __len__(self) -> int:
        return len(self._entries)

    # ── entries ──

    def set_record(self, items: Sequence[Shown], tokens: Tokens) -> None:
        """Show this record and nothing else. Items that were shown before keep their blocks as they are drawn."""
        by_key = {s.key: (s, stack) for s, stack in zip(self._entries, self._stacks, strict=True) if s and stack}
        above = {id(stack): self._stacks[n - 1] if n else None for n, stack in enumerate(self._stacks) if stack}
        before = [by_key.get(shown.key) for shown in items] if by_key else [None] * len(items)
        self._stacks = [
            was[1] if was and _is_same(was[0], now) else None for was, now in zip(before, items, strict=True)
        ]
        for n, stack in enumerate(self._stacks):
            if stack and (self._stacks[n - 1] if n else None) is not above[id(stack)]:
                stack.lines = None  # the gap above it depends on what stands before it
        self.items, self._settled, self._apart = items, len(items), []
        self._entries = list[Shown | None](items)
        self.heights = Heights(len(s.lines) if s and s.lines is not None else GUESSED_LINES for s in self._stacks)
        self.set_tokens(tokens)

    def grows_to(self, items: Sequence[Shown]) -> bool:
        """Whether these are the present items, perhaps with more behind them: then `extend_record` can add those, else
        `set_record` is needed."""
        present = self.items
        return len(items) >= len(present) and all(map(_is_same, present, items))

    def extend_record(self, items: Sequence[Shown], tokens: Tokens, places: Mapping[str, list[Block]]) -> None:
        """Add the items behind the present ones; `places` maps the key of an item to the blocks that show it already."""
        fresh, self.items = items[len(self.items) :], items
        for shown in fresh:
            self._place_blocks(shown, places.get(shown.key, []))
        self.set_tokens(tokens)

    def _place_blocks(self, shown: Shown, blocks: list[Block]) -> None:
        """Add an item. Where `blocks` show it already, their entries become one entry, the item's; with another entry between
        them they stay apart."""
        stacks = {i: s for i in range(self._settled, len(self)) if (s := self._stacks[i]) and s.blocks[0] in blocks}
        first, last = min(stacks, default=self._settled), max(stacks, default=self._settled - 1) + 1
        if last - first > len(stacks):  # a notice between them
            self._settled = last
            self._apart.append((shown, blocks))
        elif not stacks:  # nothing shows it yet
            index = self._index_behind_notices()
            self._splice(index, index, [shown], [None])
            self._settled = index + 1
        else:
            self._settled = first + 1
            height = sum(self.heights[index] for index in stacks)
            self._splice(first, last, [shown], [self._bind(_joined_stack(list(stacks.values())))], height)

    def _index_behind_notices(self) -> int:
        """The index for an item that has no blocks yet: behind the notices that were shown before it."""
        index = self._settled
        while index < len(self) and self._entries[index] is None and isinstance(self.blocks(index)[0], NoticeBlock):
            index += 1
        return index

    def set_tokens(self, tokens: Tokens) -> None:
        """Set how many tokens each message (by `seq`) and part takes now."""
        self._tokens, self._newest_in_view = tokens, max((key for key in tokens if isinstance(key, int)), default=0)
        for shown, stack in zip(self._entries, self._stacks, strict=True):
            if shown and stack:
                set_block_tokens(shown, stack.blocks, tokens)
        for shown, blocks in self._apart:
            set_block_tokens(shown, blocks, tokens)

    def is_out_of_view(self, index: int) -> bool:
        """Whether the model no longer sees this entry's messages as they were, but in a summary, or not at all."""
        shown = self._entries[index]
        messages = shown.group.messages if shown and shown.group else ()
        return bool(messages) and all(m.seq < self._newest_in_view and m.seq not in self._tokens for m in messages)

    def add_block(self, block: Block, before: Block | None = None) -> None:
        """Add a block that is in no record, at the very end or before another such block."""
        if isinstance(block, Fold):
            block.unfolded = block.unfolded or self.unfolded
        index = self._loose_index(before) if before else None
        index = len(self) if index is None else index
        self._splice(index, index, [None], [self._bind(Stack([block]))])
        if self.width:
            self.lines(index)

    def add_above(self, block: Block) -> int:
        """Add a block that is in no record before the person's newest message; return its index."""
        from_person = (i for i in range(len(self) - 1, -1, -1) if any(isinstance(b, UserBlock) for b in self.blocks(i)))
        index = next(from_person, len(self))
        self._splice(index, index, [None], [self._bind(Stack([block]))])
        self._settled += index < self._settled
        if self.width:
            self.lines(index)
        return index

    def discard(self, block: Block) -> None:
        """Remove a block that is in no record."""
        if (index := self._loose_index(block)) is not None:
            self._splice(index, index + 1, [], [])
            self._settled -= index < self._settled

    def _loose_index(self, block: Block) -> int | None:
        """The index of a block that is in no record."""
        indexes = (i for i in range(len(self) - 1, -1, -1) if self._entries[i] is None)
        return next((index for index in indexes if block in self.blocks(index)), None)

    def _bind(self, stack: Stack) -> Stack:
        """Connect the blocks of a stack to this column."""
        for block in stack.blocks:
            block.changed = partial(self._changed, stack)
            if isinstance(block, CompactionMark):
                block.archive_key = self._archive_key
        return stack

    def _splice(
        self,
        start: int,
        stop: int,
        entries: list[Shown | None],
        stacks: list[Stack | None],
        height: int = GUESSED_LINES,
    ) -> None:
        self._entries[start:stop] = entries
        self._stacks[start:stop] = stacks
        self.heights.splice(start, stop, [height] * len(entries))
        following = start + len(entries)
        if following < len(self) and stop - start != len(entries) and (stack := self._stacks[following]):
            stack.lines = None  # the gap above it depends on what stands before it

    # ── lines ──

    def set_archive_key(self, key: str) -> None:
        """Set the key that compaction marks name for the archive."""
        self._archive_key = key
        for stack in filter(None, self._stacks):
            for block in stack.blocks:
                if isinstance(block, CompactionMark):
                    block.archive_key, stack.lines = key, None

    def set_width(self, width: int) -> None:
        """Set the width of lines in cells; what was drawn in another width is drawn anew when needed."""
        if width != self.width:
            self.width = width
            for stack in filter(None, self._stacks):
                stack.lines = None

    def unfold(self, unfolded: bool) -> None:
        """Unfold every block that can be, or fold it."""
        self.unfolded = unfolded
        for stack in filter(None, self._stacks):
            for block in stack.blocks:
                if isinstance(block, Fold):
                    block.unfolded, stack.lines = unfolded, None

    def blocks(self, index: int) -> list[Block]:
        """The blocks of an entry, made if they are not there yet."""
        return self.stack(index).blocks

    def stack(self, index: int) -> Stack:
        """The stack of an entry, made if it is not there yet; its lines may not be drawn."""
        if stack := self._stacks[index]:
            return stack
        shown = self._entries[index]
        stack = self._stacks[index] = self._bind(Stack(blocks_for(shown, self._tokens) if shown else []))
        for block in stack.blocks:
            if isinstance(block, Fold):
                block.unfolded = self.unfolded
        return stack

    def lines(self, index: int) -> list[DrawnLine]:
        """The lines of an entry, drawn if they are not yet; from then on its height is exact."""
        stack = self.stack(index)
        if stack.lines is None:
            lines: list[DrawnLine] = []
            gap, stack.ends = self._wanted_gap_above(index), []
            for block in stack.blocks:
                lines += (DrawnLine(Content("")) for _ in range(max(gap, block.above)))
                lines += block.draw(self.width)
                stack.ends.append(len(lines))
                gap = self._gap_below(block)
            stack.lines = lines
            self.heights.set_height(index, len(lines))
            self._drawn += 1
        return stack.lines

    def _wanted_gap_above(self, index: int) -> int:
        """How many empty lines the nearest block above an entry wants behind it."""
        index -= 1
        while index >= 0 and not self.blocks(index):
            index -= 1
        return self._gap_below(self.blocks(index)[-1]) if index >= 0 else 0

    def _gap_below(self, block: Block) -> int:
        return 0 if block.yields and self.width < NARROW_CELLS else block.below

    def draw_anew(self, index: int) -> tuple[int, Sequence[int]]:
        """Draw a changed entry; return how many lines it had, and which of them look different now."""
        stack = self.stack(index)
        before, stack.lines = stack.lines or [], None
        lines, different = self.lines(index), []
        for n, (old, new) in enumerate(zip(before, lines, strict=False)):
            if old is not new and old.like(new):
                lines[n] = old  # the strip that was painted for it is found by this object
            elif old is not new:
                different.append(n)
        return len(before), different

    def draw_from(self, y: int, up: int, down: int) -> int:
        """Draw the entry at line `y`, and `up` lines above and `down` lines below it; return the line where the content of `y` is
        then, as heights that were guessed become exact."""
        index, line = self.heights.entry_at(y)
        line = max(0, min(line, len(self.lines(index)) - 1))
        self._draw_lines(range(index, len(self)), down + line)
        self._draw_lines(range(index - 1, -1, -1), up - line)
        return self.heights.top(index) + line

    def draw_end(self, up: int) -> None:
        """Draw the last `up` lines."""
        self._draw_lines(range(len(self) - 1, -1, -1), up)

    def _draw_lines(self, indexes: range, wanted: int) -> None:
        """Draw entries in this order until there are as many lines as `wanted`."""
        for index in indexes:
            if wanted <= 0:
                return
            wanted -= len(self.lines(index))

    def forget(self, y: int, keep: Callable[[Stack], bool]) -> None:
        """Once more than `MAX_DRAWN_ITEMS` entries are drawn, forget those far from line `y`, but for blocks in no record, those
        that a person folded or unfolded, and stacks to `keep`."""
        if self._drawn <= MAX_DRAWN_ITEMS:
            return
        reading, self._drawn = self.heights.entry_at(y)[0], 0
        for index, stack in enumerate(self._stacks):
            if stack and abs(index - reading) <= MAX_DRAWN_ITEMS // 4:
                self._drawn += stack.lines is not None
            elif stack:
                stack.lines = None
                by_hand = any(isinstance(block, Fold) and block.unfolded != self.unfolded for block in stack.blocks)
                if self._entries[index] and not by_hand and not keep(stack):
                    self._stacks[index] = None

    # ── positions ──

    def end_mark(self) -> EndMark | None:
        """The last block as it is now; None while there are no blocks."""
        block = next(self.upwards(), None)
        if block is None:
            return None
        stack = self.stack_of(block)
        if not stack.ends and (index := self.index_of_stack(stack)) is not None:
            self.lines(index)
        return EndMark(block, _lines_of(stack, block), self._look)

    def lines_behind(self, mark: EndMark) -> int | None:
        """How many lines were added since a mark was set, by the heights last drawn; None if its block is gone. Lines that the
        marked block gained because the width changed, or because it was unfolded, do not count."""
        stack = next((s for s in reversed(self._stacks) if s and mark.block in s.blocks), None)
        index = self.index_of_stack(stack) if stack else None
        if stack is None or index is None or not stack.ends:
            return None
        grown = _lines_of(stack, mark.block) - mark.lines if mark.look == self._look else 0
        end = self.heights.top(index) + stack.ends[stack.blocks.index(mark.block)]
        return max(0, self.heights.total - end + grown)

    @property
    def _look(self) -> tuple[int, bool]:
        return self.width, self.unfolded

    def entry_at(self, y: int) -> tuple[int, int] | None:
        """The index of the entry at line `y`, and the line within it; None above the first line and below the last."""
        return self.heights.entry_at(y) if 0 <= y < self.heights.total else None

    def index_of_item(self, key: str) -> int | None:
        """The index of an item, by its group's id or its `change:…` key; None if it is not shown."""
        changed = key.startswith("change:")
        for index, shown in enumerate(self._entries):
            if shown and (shown.key if changed else shown.group and shown.group.id) == key:
                return index
        blocks = next((blocks for shown, blocks in self._apart if shown.key == key), None)
        return self._loose_index(blocks[0]) if blocks else None

    def key(self, index: int) -> str:
        """The key of the item that an entry shows or, for one in no record, of the nearest item above; empty if there is none."""
        return next((shown.key for shown in reversed(self._entries[: index + 1]) if shown), "")

    def index_of_stack(self, stack: Stack) -> int | None:
        """The index of a stack; None if it is gone."""
        last = len(self) - 1  # the last entries are searched first: most that change are there
        near = next((index for index in range(last, max(-1, last - 64), -1) if self._stacks[index] is stack), None)
        if near is not None:
            return near
        return next((index for index, each in enumerate(self._stacks) if each is stack), None)

    def stack_of(self, block: Block) -> Stack:
        """The stack a block is in."""
        return next(stack for stack in reversed(self._stacks) if stack and block in stack.blocks)

    def drawn_blocks(self, kind: type[Kind]) -> Iterator[Kind]:
        """The blocks of one kind, top to bottom: of all entries whose blocks are made, whether in the record or not."""
        return (block for stack in self._stacks if stack for block in stack.blocks if isinstance(block, kind))

    def upwards(self) -> Iterator[Block]:
        """All blocks from the last to the first, made if they are not there yet."""
        return (block for index in range(len(self) - 1, -1, -1) for block in reversed(self.blocks(index)))

    def loose(self) -> Iterator[Stack]:
        """The stacks behind the record: those of the turn in progress, and notices beside it."""
        return filter(None, self._stacks[self._settled :])

    # ── text ──

    def paragraph(self, index: int, line: int) -> tuple[int, int]:
        """The first and the last line of the paragraph, within an entry, that a line is part of."""
        lines, first, last = self.lines(index), line, line
        while first > 0 and lines[first - 1].glue != "\n":
            first -= 1
        while last < len(lines) - 1 and lines[last].glue != "\n":
            last += 1
        return first, last

    def text_between(
        self, start: tuple[int, int], end: tuple[int, int], first: int = 0, last: int | None = None
    ) -> str:
        """The text between two positions, each the index of an entry and a line in it, from character `first` of the first line
        to `last` of the last line (None: all of it). Line ends are those of the text, not of the screen."""
        pieces: list[str] = []
        for index in range(start[0], min(end[0], len(self) - 1) + 1):
            lines = self.lines(index)
            for n in range(start[1] if index == start[0] else 0, len(lines)):
                if (index, n) > end:
                    break
                begin = first if (index, n) == start else 0
                words = lines[n].words.plain[begin : last if (index, n) == end else None]
                words = words if begin else lines[n].sign + words
                pieces.append((words.rstrip() if lines[n].glue == "\n" else words) + lines[n].glue)
        return "".join(pieces).removesuffix("\n")


def _lines_of(stack: Stack, block: Block) -> int:
    """The height of a block when it was last drawn, with the gap above it."""
    index = stack.blocks.index(block)
    return stack.ends[index] - (stack.ends[index - 1] if index else 0)


def _joined_stack(stacks: Sequence[Stack]) -> Stack:
    """One stack made of several that stand under one another; drawn if all of them are."""
    joined = Stack([block for stack in stacks for block in stack.blocks])
    if all(stack.lines is not None for stack in stacks):
        joined.lines = []
        for stack in stacks:
            joined.ends += (len(joined.lines) + end for end in stack.ends)
            joined.lines += stack.lines or ()
    return joined


def _is_same(one: Shown, other: Shown) -> bool:
    return one.group is other.group and one.change is other.change and one.facts_back == other.facts_back
