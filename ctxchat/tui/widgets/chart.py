"""Widgets that draw how full the window was over a session: `FillLine`, small bars in two lines, and `FillChart`, which has a
scale as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ctxchat.presentation.fill import MARK, REFUSED, FlightPoint, Point, bar, column, fitting, squeezed
from ctxchat.presentation.text import short

AXIS_CELLS = 7
"""Cells at the left for the scale."""

MIN_WIDTH_WITH_AXIS = 40
"""Cells; a narrower chart has no scale."""

TRIGGER_LINE = "╌"
"""Drawn between the bars at the height where compaction sets in."""

MAX_BAR_CELLS = 5
"""Cells of a bar where there are few bars; from three on the last cell is a gap."""


class FillChart(Widget):
    """A bar for each reading of the gauge; below them a line of signs of compactions, to be clicked, and one of turn numbers."""

    COMPONENT_CLASSES = {"chart--bar", "chart--high", "chart--axis", "chart--done", "chart--refused", "chart--chosen"}

    class Clicked(Message):
        """A column with a compaction was clicked."""

        def __init__(self, compaction_id: str) -> None:
            super().__init__()
            self.compaction_id = compaction_id

    def __init__(self) -> None:
        super().__init__()
        self._flight: Sequence[FlightPoint] = ()
        self._limit, self._trigger, self._chosen = 1, 0, ""

    def show_flight(self, flight: Sequence[FlightPoint], limit: int, trigger: int) -> None:
        """Draw these readings; `limit` and `trigger` in tokens."""
        self._flight, self._limit, self._trigger = flight, limit, trigger
        self.refresh()

    def choose(self, compaction_id: str) -> None:
        """Highlight the column of this compaction; none for an empty id."""
        self._chosen = compaction_id
        self.refresh()

    @property
    def _axis(self) -> int:
        return AXIS_CELLS if self.size.width >= MIN_WIDTH_WITH_AXIS else 0

    @property
    def _fitting_points(self) -> tuple[FlightPoint, ...]:
        return fitting(self._flight, self.size.width - self._axis)

    @property
    def _bar_cells(self) -> int:
        """Width of one bar with its gap."""
        return max(1, min(MAX_BAR_CELLS, (self.size.width - self._axis) // max(1, len(self._flight))))

    @property
    def _height(self) -> int:
        return max(1, self.size.height - 2)

    @property
    def _top(self) -> int:
        return max([self._limit, *(p.used for p in self._flight)])

    def render_line(self, y: int) -> Strip:
        shown, height, plain = self._fitting_points, self._height, self.rich_style
        if y < height:
            segments = self._bars(shown, height - 1 - y)
        elif y == height:
            segments = [Segment(" " * self._axis, plain), *(self._sign(p) for p in shown)]
        else:
            segments = [Segment(" " * self._axis + self._turn_numbers(shown), self._part_style("axis"))]
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def _bars(self, shown: Sequence[FlightPoint], level: int) -> list[Segment]:
        top, height, cells = self._top, self._height, self._bar_cells
        at_trigger = level == self._trigger * height // top
        segments = [Segment(self._scale(level, at_trigger), self._part_style("axis"))]
        for point in shown:
            char = column(point.used, top, height)[level]
            filled = cells - (cells > 2) if char != " " else 0
            high = point.used >= self._trigger > 0
            segments.append(Segment(char * filled, self._style_of(point, "high" if high else "bar")))
            segments.append(Segment((TRIGGER_LINE if at_trigger else " ") * (cells - filled), self._part_style("axis")))
        rest = self.size.width - self._axis - len(shown) * cells
        return [*segments, Segment((TRIGGER_LINE if at_trigger else " ") * max(0, rest), self._part_style("axis"))]

    def _scale(self, level: int, at_trigger: bool) -> str:
        if not self._axis:
            return ""
        if level == self._height - 1:
            words = short(self._top)
        else:
            words = short(self._trigger) if at_trigger else "0" if level == 0 else ""
        return f"{words:>{AXIS_CELLS - 1}} "

    def _sign(self, point: FlightPoint) -> Segment:
        return Segment(
            (point.sign or " ").ljust(self._bar_cells),
            self._style_of(point, "refused" if point.sign == REFUSED else "done"),
        )

    def _turn_numbers(self, shown: Sequence[FlightPoint]) -> str:
        """The numbers of the first turn and the last, each under its column."""
        cells = self._bar_cells
        places = [place * cells for place, point in enumerate(shown) if point.turn]
        turns = [point.turn for point in self._flight if point.turn]
        if not places:
            return ""
        words = f"{' ' * places[0]}turn {turns[0]}"
        last = str(turns[-1])
        end = places[-1] + (0 if cells > 1 else 1 - len(last))  # a bar's first cell, or its only one
        return words + f"{last:>{end - len(words) + len(last)}}" if end > len(words) else words

    def _style_of(self, point: FlightPoint, part: str) -> Style:
        return self._part_style("chosen" if self._chosen and self._chosen in point.compactions else part)

    def _part_style(self, name: str) -> Style:
        return self.get_component_rich_style(f"chart--{name}")

    def on_click(self, event: events.Click) -> None:
        place = (event.x - self._axis) // self._bar_cells
        shown = self._fitting_points
        if 0 <= place < len(shown) and shown[place].compactions:
            self.post_message(self.Clicked(shown[place].compactions[-1]))


class FillLine(Widget):
    """A line of bars, full at the window's limit, and below it a line with marks for compactions."""

    COMPONENT_CLASSES = {"fill--bar", "fill--high", "fill--mark"}

    def __init__(self) -> None:
        super().__init__()
        self._points: Sequence[Point] = ()
        self._limit, self._trigger = 1, 1

    def show_points(self, points: Sequence[Point], limit: int, trigger: int) -> None:
        """Draw these; bars at or over the trigger are highlighted. `limit` and `trigger` in tokens."""
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
