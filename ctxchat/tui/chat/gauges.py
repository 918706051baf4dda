"""Keeps the widgets that show token figures in step: the gauge, the context panel and the line under the draft, all with the
draft counted in. Also checks from time to time whether a summary prepared ahead is ready, which the gauge shows.

Knows one session at a time, and nothing of turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.timer import Timer
from textual.widget import Widget

from ctxchat.core.context_usage import ContextUsage, soft_tokens
from ctxchat.presentation.cache_text import cold_words
from ctxchat.tui.chat.composer import Composer
from ctxchat.tui.chat.outlook_line import OutlookLine
from ctxchat.tui.chat.side_panel import SidePanel
from ctxchat.tui.commands import Keys, parse, shown_key
from ctxchat.tui.widgets.gauge import Gauge

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

GLANCE_INTERVAL_S, MAX_GLANCES = 1.0, 300
"""Seconds between two checks for a prepared summary, and the number of checks after which to stop."""


class PrefetchWatch:
    """Checks every second, after a turn, whether a prepared summary is ready, and calls `show` once when it is. `soft_mark` is
    the share of the limit from which one is prepared, 0 for never."""

    def __init__(self, widget: Widget, show: Callable[[], None]) -> None:
        self._widget, self.soft_mark, self._show = widget, 0.0, show
        self._timer: Timer | None = None

    def start(self, session: Session) -> None:
        """Start checking after a turn, where a summary may be in preparation."""
        self.stop()
        context_usage = session.context_usage
        soft = soft_tokens(context_usage, self.soft_mark)
        if self.soft_mark and not session.compaction.ghost and context_usage.used >= soft > 0:
            self._timer = self._widget.set_interval(GLANCE_INTERVAL_S, lambda: self._check(session), repeat=MAX_GLANCES)

    def _check(self, session: Session) -> None:
        if session.compaction.ghost:
            self.stop()
            self._show()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer:
            self._timer.stop()
            self._timer = None


class Gauges:
    """The widgets that show token figures, updated together."""

    def __init__(self, gauge: Gauge, outlook: OutlookLine, composer: Composer, side: SidePanel) -> None:
        self._gauge, self._outlook, self._composer, self._side = gauge, outlook, composer, side
        self._compact_key = self._free_up_key = ""
        self._session: Session | None = None

    def use_keys(self, keys: Keys) -> None:
        """Take the keys of `compact` and `free_up` from a key table, for the texts that name them."""
        self._compact_key, self._free_up_key = (
            next((shown_key(key) for key in keys.get(action, ())), "") for action in ("compact", "free_up")
        )

    def belong_to(self, session: Session) -> None:
        """Show the figures of this session from now on."""
        self._session = session

    def show_usage(self, context_usage: ContextUsage) -> None:
        """Show these figures, with the draft counted in where there is one."""
        session, draft, parts = self._session, self._composer.draft, self._composer.parts
        if draft.strip() == "/" or parse(draft) is not None:
            draft = ""  # a command is not sent to a model
        if session and (draft or parts):
            context_usage = session.attachments.with_draft(draft, parts)
        ghost = session.compaction.ghost if session else 0
        self._gauge.show_usage(context_usage, ghost=ghost)
        self._outlook.show_outlook(context_usage, ghost, self._free_up_key)
        asks = session is not None and bool(draft or parts) and session.setup.options.auto_cold == "ask"
        self._composer.show_cost(
            context_usage, cold_words(context_usage, ghost, self._compact_key, time.time()) if asks else ""
        )
        if session:
            self._side.show_figures(context_usage, session)

    def show_again(self) -> None:
        """Show the session's figures again, after the draft or the visible widgets have changed."""
        if self._session:
            self.show_usage(self._session.context_usage)

    async def count_draft(self) -> None:
        """Count the draft's attachments exactly and show the figures; long texts are only estimated at first."""
        if self._session and self._composer.parts:
            await self._session.attachments.count(self._composer.parts)
            self.show_again()
