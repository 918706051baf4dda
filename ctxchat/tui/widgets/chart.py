"""The fill of a session drawn: as a line of small bars, and as a chart with a scale, turns and a sign under every compaction."""

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
"""Cells at the left for the scale; none where it is narrow."""

LINE = "╌"

MAX_BAR_CELLS = 5
"""Cells a bar may take where there are few; from three on the last is a gap."""


class FillChart(Widget):
    """Bars as high as the widget less two lines: signs of compactions, and turns. A click on a sign says which compaction."""

    COMPONENT_CLASSES = {"chart--bar", "chart--high", "chart--axis", "chart--done", "chart--refused", "chart--chosen"}

    class Clicked(Message):
        """A column with a compaction was clicked."""

        def __init__(self, pass_id: str) -> None:
            super().__init__()
            self.pass_id = pass_id

    def __init__(self) -> None:
        super().__init__()
        self._flight: Sequence[FlightPoint] = ()
        self._limit, self._trigger, self._chosen = 1, 0, ""

    def show_flight(self, flight: Sequence[FlightPoint], limit: int, trigger: int) -> None:
        """Draw these; tokens."""
        self._flight, self._limit, self._trigger = flight, limit, trigger
        self.refresh()

    def choose(self, pass_id: str) -> None:
        """Make this compaction stand out."""
        self._chosen = pass_id
        self.refresh()

    @property
    def _axis(self) -> int:
        return AXIS_CELLS if self.size.width >= 40 else 0

    @property
    def _fitting_points(self) -> tuple[FlightPoint, ...]:
        return fitting(self._flight, self.size.width - self._axis)

    @property
    def _wide(self) -> int:
        """Cells of one bar with its gap."""
        return max(1, min(MAX_BAR_CELLS, (self.size.width - self._axis) // max(1, len(self._flight))))

    @property
    def _height(self) -> int:
        return max(1, self.size.height - 2)

    @property
    def _top(self) -> int:
        return max([self._limit, *(m.used for m in self._flight)])

    def render_line(self, y: int) -> Strip:
        shown, height, plain = self._fitting_points, self._height, self.rich_style
        if y < height:
            segments = self._bars(shown, height - 1 - y)
        elif y == height:
            segments = [Segment(" " * self._axis, plain), *(self._sign(m) for m in shown)]
        else:
            segments = [Segment(" " * self._axis + _turns(shown, self._wide), self._part_style("axis"))]
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def _bars(self, shown: Sequence[FlightPoint], level: int) -> list[Segment]:
        top, height, wide = self._top, self._height, self._wide
        at_trigger = level == self._trigger * height // top
        segments = [Segment(self._scale(level, at_trigger), self._part_style("axis"))]
        for moment in shown:
            char = column(moment.used, top, height)[level]
            bar = wide - (wide > 2) if char != " " else 0
            high = moment.used >= self._trigger > 0
            segments.append(Segment(char * bar, self._style_of(moment, "high" if high else "bar")))
            segments.append(Segment((LINE if at_trigger else " ") * (wide - bar), self._part_style("axis")))
        rest = self.size.width - self._axis - len(shown) * wide
        return [*segments, Segment((LINE if at_trigger else " ") * max(0, rest), self._part_style("axis"))]

    def _scale(self, level: int, at_trigger: bool) -> str:
        if not self._axis:
            return ""
        if level == self._height - 1:
            words = short(self._top)
        else:
            words = short(self._trigger) if at_trigger else "0" if level == 0 else ""
        return f"{words:>{AXIS_CELLS - 1}} "

    def _sign(self, moment: FlightPoint) -> Segment:
        return Segment(
            (moment.sign or " ").ljust(self._wide),
            self._style_of(moment, "refused" if moment.sign == REFUSED else "done"),
        )

    def _style_of(self, moment: FlightPoint, part: str) -> Style:
        return self._part_style("chosen" if self._chosen and self._chosen in moment.compactions else part)

    def _part_style(self, name: str) -> Style:
        return self.get_component_rich_style(f"chart--{name}")

    def on_click(self, event: events.Click) -> None:
        place = (event.x - self._axis) // self._wide
        shown = self._fitting_points
        if 0 <= place < len(shown) and shown[place].compactions:
            self.post_message(self.Clicked(shown[place].compactions[-1]))


def _turns(shown: Sequence[FlightPoint], wide: int) -> str:
    """The first turn and the last, under their columns."""
    known = [(place * wide, m.turn) for place, m in enumerate(shown) if m.turn]
    if not known:
        return ""
    (start, first), (end, last) = known[0], known[-1]
    words = f"{' ' * start}turn {first}"
    end += 0 if wide > 1 else 1 - len(str(last))  # a bar's first cell, or its only one
    return words + f"{last:>{end - len(words) + len(str(last))}}" if end > len(words) else words


class FillLine(Widget):
    """Bars on the scale of the limit; the second line holds the marks."""

    COMPONENT_CLASSES = {"fill--bar", "fill--high", "fill--mark"}

    def __init__(self) -> None:
        super().__init__()
        self._points: Sequence[Point] = ()
        self._limit, self._trigger = 1, 1

    def show_points(self, points: Sequence[Point], limit: int, trigger: int) -> None:
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
