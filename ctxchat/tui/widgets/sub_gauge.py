"""A sub-agent's own gauge, one row below the call it works for: how full its window is."""

from __future__ import annotations

from textual.content import Content

from ctxchat.core.events import Delegated
from ctxchat.tui.reading.figures_text import percent
from ctxchat.tui.reading.text import one_line, short
from ctxchat.tui.widgets.blocks import Line

COLUMNS = 20
"""Of the bar, where there is room."""


class SubGauge(Line):
    """Shows the newest figures it was given."""

    def __init__(self, figures: Delegated) -> None:
        super().__init__(classes="sub-gauge")
        self._figures = figures

    def show(self, figures: Delegated) -> None:
        """From now on."""
        self._figures = figures
        self.refresh()

    def line(self, width: int) -> Content:
        """`  sub-agent  ██▏·············  12 %  3.9k/28.7k`."""
        said = self._figures
        share = said.used / said.limit if said.limit > 0 else 0.0
        fill = f"{percent(share) if said.limit > 0 else '?'}  {short(said.used)}/{short(said.limit)}"
        name = f"  {one_line(said.agent, 16)}  "
        columns = max(0, min(COLUMNS, width - len(name) - len(fill) - 2))
        filled = min(columns, max(1, round(share * columns))) if columns and said.used else 0
        return Content.assemble(
            (name, "$text-muted"),
            ("█" * filled, "$accent"),
            ("·" * (columns - filled), "$text-muted"),
            (f"  {fill}" if columns else fill, "$text-muted"),
        ).truncate(width, ellipsis=True)
