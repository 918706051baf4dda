"""The session's fill as a line of small bars, with a mark under every compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from ctxchat.tui.reading.fill import MARK, Point, bar, squeezed


class FillLine(Widget):
    """Bars on the scale of the limit; the second line holds the marks."""

    COMPONENT_CLASSES = {"fill--bar", "fill--high", "fill--mark"}

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._points: Sequence[Point] = ()
        self._limit, self._trigger = 1, 1

    def show(self, points: Sequence[Point], limit: int, trigger: int) -> None:
        """Draw these; bars from the trigger up stand out."""
        self._points, self._limit, self._trigger = points, limit, trigger
        compactions = sum(p.mark for p in points)
        self.tooltip = f"How full the window was, turn by turn; {MARK} marks a compaction ({compactions})."
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        points = squeezed(self._points, width)
        line = Strip(self._bars(points) if y == 0 else self._marks(points))
        return line.adjust_cell_length(width, self.rich_style)

    def _bars(self, points: Sequence[Point]) -> Iterator[Segment]:
        for high, run in groupby(points, lambda p: p.used >= self._trigger):
            style = self.get_component_rich_style("fill--high" if high else "fill--bar")
            yield Segment("".join(bar(p.used, self._limit) for p in run), style)

    def _marks(self, points: Sequence[Point]) -> Iterator[Segment]:
        yield Segment("".join(MARK if p.mark else " " for p in points), self.get_component_rich_style("fill--mark"))
