"""The line below the gauge that says what comes next, in windows that have room for it."""

from __future__ import annotations

import time

from textual.content import Content

from ctxchat.core.context_usage import ContextUsage
from ctxchat.presentation.outlook import outlook
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.line import Line

REFRESH_S = 20.0
"""Seconds after which what goes by the clock is said anew."""

BETWEEN = "  ·  "


class OutlookLine(Line):
    """The line below the gauge: how far compaction is, how much is ready to be freed, how long the cache holds; as many of these
    as fit."""

    def __init__(self) -> None:
        super().__init__(id="outlook")
        self._context_usage: ContextUsage | None = None
        self._ghost = 0
        self._key = ""

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self.refresh)

    def show_outlook(self, context_usage: ContextUsage, ghost: int, key: str) -> None:
        """Show this usage from now on. `ghost` are the tokens that a prepared compaction would leave, 0 for none; `key` is the
        key that compacts."""
        self._context_usage, self._ghost, self._key = context_usage, ghost, key
        self.refresh()

    def draw_line(self, width: int) -> Content:
        parts = outlook(self._context_usage, self._ghost, time.time(), self._key) if self._context_usage else ()
        while len(parts) > 1 and len(BETWEEN.join(parts)) > width:
            parts = parts[:-1]
        due = self._context_usage is not None and self._context_usage.used >= self._context_usage.trigger_tokens
        styles = ["$text-warning" if due else "$text", *[MUTED] * len(parts)]
        return Content(BETWEEN).join([Content.styled(part, style) for part, style in zip(parts, styles, strict=False)])
