"""The context panel: what the window holds in figures, how it got there, what holds most, and the button that makes room."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Button

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.journal import SessionState
from ctxchat.core.sections import SECTIONS, Section
from ctxchat.core.view import View
from ctxchat.presentation.alarms import CHANGEABLE, alarms, cached_words, legend
from ctxchat.presentation.cache_text import cache_lines
from ctxchat.presentation.fill import fill_points
from ctxchat.presentation.inventory import Row, offenders
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import (
    PARTS,
    count,
    forecast_words,
    is_measured,
    money,
    off_by,
    percent,
    share,
    tilde,
    uncounted,
    window_words,
)
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.chart import FillLine
from ctxchat.tui.widgets.gauge import Gauge, component, signs_of
from ctxchat.tui.widgets.line import Line, Words
from ctxchat.tui.widgets.lines import spread, target

ALWAYS = frozenset({"user", "assistant", "tool_results", "draft", "reserved", "free"})
"""Parts that have a row even when they hold nothing."""

MAX_OFFENDERS = 4

CLOSE_GAPS, CLOSE_OFFENDERS = 3, 3
"""Free lines between the panel's parts and how many of the biggest are told, where it is set close for its legend to be in sight;
set closer, it has one free line."""

TICK_S = 20.0
"""Seconds after which what goes by the clock is said anew."""


class PartTable(Widget):
    """A line for each part of the window: letter, name, tokens, share of the limit. One over its own budget is told with `!`."""

    COMPONENT_CLASSES = {component(name) for name in SECTIONS} | {"parts--over", "parts--quiet"}

    def __init__(self) -> None:
        super().__init__()
        self._context_usage: ContextUsage | None = None
        self._rows: Sequence[Section] = ()

    def show_parts(self, context_usage: ContextUsage) -> None:
        """Draw these."""
        self._context_usage = context_usage
        rows = [] if uncounted(context_usage) else [s for s in context_usage.sections if s.tokens or s.name in ALWAYS]
        self.refresh(layout=len(rows) != len(self._rows))
        self._rows = rows

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        plain, width = self.rich_style, self.size.width
        if self._context_usage is None or y >= len(self._rows):
            return Strip.blank(width, plain)
        row = self._rows[y]
        style = self._style("parts--over" if row.over else "parts--quiet" if not row.tokens else "", plain)
        tokens = f"{'~' if row.estimated and row.tokens else ''}{short(row.tokens)}"
        shown = width >= 30 and is_measured(self._context_usage)
        of_limit = (
            ("" if row.name == "reserved" else share(row.tokens, self._context_usage.limit)).rjust(6) if shown else ""
        )
        context_usage = f"{tokens:>8}{of_limit}{'!' if row.over else ' '}"
        name = f" {PARTS[row.name].label}"
        room = max(0, width - 3 - len(context_usage))
        letter = Segment(f" {signs_of(self.app)[row.name]} ", self._style(component(row.name), plain))
        return Strip([letter, Segment(name[:room].ljust(room) + context_usage, style)]).adjust_cell_length(width, plain)

    def _style(self, name: str, plain: Style) -> Style:
        return self.get_component_rich_style(name) if name and not self.app.no_color else plain

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place and place.y < len(self._rows):
            self.post_message(Gauge.SegmentClicked(self._rows[place.y].name))


class HeadLine(Line):
    """Percent, used of limit; how far off that may be, the window and where it was learned."""

    DEFAULT_CSS = "HeadLine { height: 2; }"

    def __init__(self) -> None:
        super().__init__()
        self._context_usage: ContextUsage | None = None

    def show_usage(self, context_usage: ContextUsage) -> None:
        """Show this usage from now on."""
        self._context_usage = context_usage
        self.refresh()

    def draw_line(self, width: int) -> Content:
        context_usage = self._context_usage
        if context_usage is None:
            return Content("")
        sign = tilde(context_usage)
        head = f"{sign}{percent(context_usage.pressure)}" if is_measured(context_usage) else "? %"
        style = (
            "$text-error"
            if context_usage.used > context_usage.limit
            else "$text-warning"
            if _is_due(context_usage)
            else "$text-accent"
        )
        of = (
            f"{sign}{short(context_usage.used)} of {short(context_usage.limit)}"
            if is_measured(context_usage)
            else f"{sign}{short(context_usage.used)}"
        )
        band = f"±{off} %" if (off := off_by(context_usage)) else ""
        first = spread(Content.styled(head, f"bold {style}"), Content(of), width)
        if uncounted(context_usage):
            first = Content.styled("counting …", MUTED)
        second = spread(Content.styled(band, MUTED), Content.styled(window_words(context_usage), MUTED), width)
        return first.append("\n").append(second)


class Offenders(Line):
    """The largest things in the context, by name and tokens."""

    DEFAULT_CSS = "Offenders { height: auto; }"

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()

    def show_biggest(self, rows: Sequence[Row]) -> None:
        """The biggest first."""
        self.refresh(layout=len(rows) != len(self._rows))
        self._rows = rows
        self.display = bool(rows)

    @property
    def lines(self) -> int:
        """Lines of all that it holds."""
        return len(self._rows) + 1

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self.lines

    def draw_line(self, width: int) -> Content:
        lines = [Content.styled("biggest", MUTED)]
        for row in self._rows:
            what = Content(f"{signs_of(self.app)[row.section]} {row.source if row.section == 'memory' else row.what}")
            goes_to = ("group", row.group) if row.group else ("xray", row.section)
            lines.append(target(spread(what, Content(short(row.tokens)), width), *goes_to))
        return Content("\n").join(lines)


class FreeUpButton(Button):
    """Opens the preview."""

    key_words = (("enter", "free up"),)


class Breakdown(VerticalScroll):
    """Everything about the window in one column, 26 columns wide and up; scrolls where it is short."""

    class FreeUpPressed(Message):
        """The button was pressed."""

    def __init__(self) -> None:
        super().__init__(can_focus=False)
        self._view: View | None = None
        self._context_usage: ContextUsage | None = None

    def compose(self) -> ComposeResult:
        yield HeadLine()
        yield Words(classes="alarm")
        yield PartTable()
        yield FillLine()
        yield Words(classes="forecast")
        yield Offenders()
        yield Words(classes="cache")
        yield Words(classes="money")
        yield FreeUpButton(Content("Free up context  F8"), classes="free-up", compact=True)
        yield Words(classes="legend")

    def show_breakdown(
        self,
        context_usage: ContextUsage,
        view: View,
        state: SessionState,
    ) -> None:
        """Draw these. A view is only looked into when it is a new one, or something is amiss with it."""
        self.query_one(HeadLine).show_usage(context_usage)
        self.query_one(PartTable).show_parts(context_usage)
        points = fill_points(state)
        line = self.query_one(FillLine)
        line.display = len(points) > 1
        line.show_points(points, context_usage.limit, context_usage.trigger_tokens)
        self._show_words("forecast", forecast_words(context_usage))
        self._show_words("money", _money(context_usage, state))
        self._context_usage = context_usage
        self._say_cache()
        self._show_words("alarm", "\n".join(f"! {text}" for text in alarms(context_usage, view).values()))
        if self._view is not view:
            self.query_one(Offenders).show_biggest(offenders(view, context_usage, MAX_OFFENDERS, CHANGEABLE))
            self._view = view
        self.call_after_refresh(self._set_close)

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._say_cache)

    def on_resize(self) -> None:
        self.call_after_refresh(self._set_close)

    def _set_close(self) -> None:
        """Set it close where it is longer than there is room with free lines between its parts."""
        shown = [part for part in self.children if part.display]
        lines = sum(part.size.height for part in shown if not isinstance(part, Offenders))
        biggest = sum(part.lines for part in self.query(Offenders) if part.display)
        self.set_class(lines + biggest + len(shown) - 1 > self.size.height, "-close")
        self.set_class(lines + min(biggest, CLOSE_OFFENDERS + 1) + CLOSE_GAPS > self.size.height, "-closer")

    def _say_cache(self) -> None:
        """Write the line on the server's cache, whose state changes with time alone."""
        if self._context_usage:
            now = time.time()
            self._show_words("cache", "\n".join(cache_lines(self._context_usage.cache, now)))
            self._show_words("legend", "\n".join(legend(self._context_usage, now)))

    def _show_words(self, which: str, words: str) -> None:
        place = self.query_one(f".{which}", Words)
        place.display = bool(words)
        place.set_words(words)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(self.FreeUpPressed())


def _is_due(context_usage: ContextUsage) -> bool:
    return is_measured(context_usage) and context_usage.used >= context_usage.trigger_tokens


def _money(context_usage: ContextUsage, state: SessionState) -> str:
    words = [f"cost {money(context_usage.cost_usd)}", cached_words(context_usage)]
    passes = count(context_usage.compactions, "compaction") if context_usage.compactions else ""
    waiting = f"{count(len(state.deferred), 'change')} put off" if state.deferred else ""
    if state.setup_deferred:
        waiting = f"with the next compaction: {', '.join(filter(None, (waiting, state.setup_deferred.words)))}"
    return "\n".join(filter(None, [*words, passes, waiting]))
