"""What the terminal shows already, so that only cells that differ are written: a line of a reply that gains a word, a number of
the gauge. Textual (seen with 8.2) writes whole lines of every widget that was refreshed, whether they look different or not: over
SSH and in a browser all of it travels.
"""

from __future__ import annotations

from itertools import takewhile

from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._cells import cell_len
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

FIRST_WIDE = "\u2e80"
"""The first character of those that are often drawn in two cells, or join with their neighbours (but for a few, which `cell_len`
knows)."""


class PaintedCells:
    """The strips last written to the terminal: for each line, by the column they begin in, with the column they end before."""

    def __init__(self) -> None:
        self._lines: list[dict[int, tuple[int, Strip]]] = []

    def write_whole(self, update: LayoutUpdate, console: Console) -> str:
        """The control sequences that draw a whole screen, whatever the terminal shows."""
        self._lines = []
        for strips in update.strips:
            line, x = {}, 0
            for strip in strips:
                line[x] = (x + strip.cell_length, strip)
                x += strip.cell_length
            self._lines.append(line)
        return update.render_segments(console)

    def write_changed(self, update: ChopsUpdate, console: Console) -> str:
        """The control sequences that draw what differs within the spans of an update; none where nothing does."""
        if len(self._lines) != len(update.chops):
            self._lines = [{} for _ in update.chops]
        sequences: list[str] = []
        for y, x1, x2 in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x >= x2 or end <= x1:
                    continue
                before = self._lines[y].get(x)
                if before and before[0] == end and before[1] == strip:
                    continue
                skipped, changed = changed_part(before[1], strip) if before and before[0] == end else (0, strip)
                sequences += (Control.move_to(x + skipped, y).segment.text, changed.render(console))
                line = {a: each for a, each in self._lines[y].items() if each[0] <= x or a >= end}
                self._lines[y] = {**line, x: (end, strip)}
        return "".join(sequences)


class WriteChangedCells(CompositorUpdate):
    """An update as it is written to a terminal that shows these cells."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, painted: PaintedCells) -> None:
        self._update, self._painted = update, painted

    def render_segments(self, console: Console) -> str:
        if isinstance(self._update, LayoutUpdate):
            return self._painted.write_whole(self._update, console)
        return self._painted.write_changed(self._update, console)


def changed_part(old: Strip, new: Strip) -> tuple[int, Strip]:
    """How many cells of a strip look as they did, and what comes behind them up to the last that does not. Only where each
    character takes one cell: of others a terminal may think otherwise, and they are drawn from their strip's beginning."""
    if old.cell_length != new.cell_length or not (_is_narrow(old) and _is_narrow(new)):
        return 0, new
    cells = list(zip(_cells(old), _cells(new), strict=True))
    same = sum(1 for _ in takewhile(_is_same, cells))
    same_behind = sum(1 for _ in takewhile(_is_same, reversed(cells[same:])))
    return same, new.crop(same, len(cells) - same_behind)


def _is_same(cells: tuple[object, object]) -> bool:
    return cells[0] == cells[1]


def _is_narrow(strip: Strip) -> bool:
    text = strip.text
    return text.isascii() or (max(text) < FIRST_WIDE and cell_len(text) == len(text))


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    segments: list[Segment] = list(strip)
    return [(character, style) for text, style, _ in segments for character in text]
