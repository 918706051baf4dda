"""The gauge: a bar, one line high, that shows what the context window holds, part by part, with figures beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.sections import OUTSIDE, SECTIONS, SectionName
from ctxchat.presentation.bar import SIGNS, Cell, layout_bar
from ctxchat.presentation.usage_text import gauge_words, is_measured, part_words, sentence

GAUGE_COLOURS: dict[str, str] = {
    "gauge-system": "#5d6b89",
    "gauge-tools": "#4a7a9e",
    "gauge-memory": "#3f8a8c",
    "gauge-injected": "#6d8a4e",
    "gauge-summary": "#9474bd",
    "gauge-pinned": "#c79a36",
    "gauge-user": "#4f9e6b",
    "gauge-assistant": "#5787cf",
    "gauge-tool-results": "#c77a43",
    "gauge-draft": "#dcc05a",
    "gauge-reserved": "transparent",
    "gauge-free": "transparent",
    "gauge-ghost": "#3b4252",
    "gauge-target": "auto 90%",
    "gauge-trigger": "auto 90%",
    "gauge-learned": "auto 90%",
    **{f"gauge-ink-{name.replace('_', '-')}": "auto 62%" for name in SECTIONS},
    **{f"gauge-sign-{name.replace('_', '-')}": str(ord(sign)) for name, sign in SIGNS.items()},
    "gauge-ink-reserved": "#7d8292",
    "gauge-ink-free": "#747986",
}
"""Theme variables of the gauge with the values for themes that do not set them, for `App.get_theme_variable_defaults`.

The colour of each part, the ink on it and its sign (as the number of its character), the ticks, and the colour of what a
prepared compaction would free.
"""


EIGHTHS = "▏▎▍▌▋▊▉"
"""Characters that fill one to seven eighths of a cell, from its left."""

GHOST = "░"
"""The character of cells that a prepared compaction would free."""


def component(section: SectionName) -> str:
    """The CSS component class of a part of the window: `gauge--tool-results`."""
    return f"gauge--{section.replace('_', '-')}"


def signs_of(app: App[object]) -> Mapping[SectionName, str]:
    """The sign of each part, one cell wide, as the current theme has it."""
    signs = dict(SIGNS)
    for name, default in SIGNS.items():
        number = app.theme_variables.get(f"gauge-sign-{name.replace('_', '-')}", "")
        sign = chr(int(number)) if number.isdecimal() else default
        signs[name] = sign if cell_len(sign) == 1 else default
    return signs


def words_beside(context_usage: ContextUsage, width: int, among: Sequence[ContextUsage] = ()) -> str:
    """The figures beside a bar when both share `width` cells: as detailed as leaves most cells to the bar, at least the
    percentage. Empty if even that has no room.

    Padded to the width that the figures of a full window would have, so that the bar does not jump while they grow; and to that
    of the bars in `among`, so that bars under one another have the same scale.
    """
    compared = [_full(each) for each in (context_usage, *among)] + [*among, context_usage] * bool(among)
    texts = gauge_words(context_usage)
    widest = [max(cell_len(gauge_words(each)[level]) for each in compared) for level in range(len(texts))]
    level = next(
        (i for i, columns in enumerate(widest) if columns <= width * (4 if among else 3) // 10), len(texts) - 1
    )
    text = texts[level].rjust(widest[level])
    return text if cell_len(text) < width else ""


def _full(context_usage: ContextUsage) -> ContextUsage:
    """The usage as if the window were full, with figures as wide as they get."""
    return msgspec.structs.replace(
        context_usage, used=context_usage.limit, pressure=1.0, estimated=True, band=max(context_usage.band, 0.1)
    )


class Gauge(Widget):
    """The bar with its figures, one line high at any width."""

    COMPONENT_CLASSES = {component(name) for name in SECTIONS} | {
        "gauge--target",
        "gauge--trigger",
        "gauge--ghost",
        "gauge--learned",
        "gauge--held",
        "gauge--step",
        "gauge--over",
        "gauge--warn",
        "gauge--words",
    }

    class SegmentClicked(Message):
        """A part of the bar was clicked."""

        def __init__(self, name: SectionName) -> None:
            super().__init__()
            self.name: SectionName = name

    def __init__(
        self,
        context_usage: ContextUsage | None = None,
        *,
        ghost: int = 0,
        among: Sequence[ContextUsage] = (),
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._context_usage = context_usage
        self._among = among
        self._tokens_after = ghost
        self._cells: tuple[Cell, ...] = ()

    def on_mount(self) -> None:
        if self._context_usage:
            self.show_usage(self._context_usage, ghost=self._tokens_after, among=self._among)

    def show_usage(self, context_usage: ContextUsage, *, ghost: int = 0, among: Sequence[ContextUsage] = ()) -> None:
        """Draw this usage; `ghost` is how many tokens a prepared compaction would leave (0: none is prepared), `among` what the
        bars above and below show."""
        self._context_usage, self._tokens_after, self._among = context_usage, ghost, among
        self.set_class(is_measured(context_usage) and context_usage.used >= context_usage.trigger_tokens, "-due")
        self.set_class(is_measured(context_usage) and context_usage.used > context_usage.limit, "-over")
        self.tooltip = sentence(context_usage)
        self.refresh()

    @property
    def words(self) -> str:
        """The figures beside the bar at the present width."""
        return words_beside(self._context_usage, self.size.width, self._among) if self._context_usage else ""

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._context_usage is None or y:
            return Strip.blank(width, self.rich_style)
        text = self.words
        gap = min(2, max(0, width - cell_len(text))) if text else 0
        pad = len(text) - len(text.lstrip())
        columns, held = max(0, width - cell_len(text) - gap), self._context_usage.cache.held_at(time.time())
        self._cells = layout_bar(
            self._context_usage, columns, self._tokens_after, signs_of(self.app), held.tokens if held else 0
        )
        plain = self.rich_style
        beside = plain if self.app.no_color else self.get_component_rich_style("gauge--words")
        segments = [*self._bar(plain), Segment(" " * (gap + pad), plain), Segment(text[pad:], beside)]
        return Strip(segments).adjust_cell_length(width, plain)

    def _bar(self, plain: Style) -> Iterator[Segment]:
        """The bar as runs of cells that look the same. With colours the sign of a part stands in its first cell only, unless the
        theme has a sign of its own for it; without colours it stands in each cell."""
        last: Cell | None = None
        for cell, run in groupby(self._cells, lambda c: msgspec.structs.replace(c, char="")):
            chars = "".join(each.char for each in run)
            if self.app.no_color:
                yield Segment(chars, plain + Style(reverse=cell.over, bold=cell.warn))
                continue
            style = self._colours(cell, plain)
            if cell.eighths and last and not cell.tick:
                chars, style = EIGHTHS[cell.eighths - 1], style + Style(color=self._colours(last, plain).bgcolor)
            elif cell.ghost:
                chars = GHOST * len(chars)
            elif cell.section not in OUTSIDE and chars[0] == SIGNS[cell.section]:
                has_sign = last is not None and last.section == cell.section  # in a run before this one
                chars = (" " if has_sign else chars[0]) + " " * (len(chars) - 1)
            yield Segment(chars, style)
            last = cell

    def _colours(self, cell: Cell, plain: Style) -> Style:
        """The colours of a run of cells. What a prepared compaction would free has the colour of its part in the characters only.
        A tick has the background of the widget, as no colour is visible on every part."""
        class_name = "gauge--over" if cell.over else "gauge--warn" if cell.warn else component(cell.section)
        style = plain if cell.beyond else self.get_component_rich_style(class_name)
        if cell.ghost:
            style = Style(color=style.bgcolor, bgcolor=self.get_component_rich_style("gauge--ghost").bgcolor)
        if not cell.tick or cell.beyond:
            return style
        tick = self.get_component_rich_style(f"gauge--{cell.tick}")
        return Style(color=tick.color, bgcolor=plain.bgcolor, bold=tick.bold)

    def section_at(self, x: int) -> SectionName | None:
        """The part of the window at a cell of the bar; None beside the bar, and for what exceeds the window."""
        return self._cells[x].section if 0 <= x < len(self._cells) and not self._cells[x].beyond else None

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset and (section := self.section_at(offset.x)):
            self.post_message(self.SegmentClicked(section))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._context_usage:
            offset = event.get_content_offset(self)
            section = self.section_at(offset.x) if offset else None
            self.tooltip = part_words(self._context_usage, section) if section else sentence(self._context_usage)
