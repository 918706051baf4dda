"""A line of a screen that fits itself to its width."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget


class Line(Widget):
    """One line that fits itself to its width."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def line(self, width: int) -> Content:
        """What to draw in this many cells."""
        raise NotImplementedError

    def render(self) -> Content:
        return self.line(self.size.width)
