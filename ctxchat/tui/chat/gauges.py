"""Everything beside the transcript that shows figures, the draft's among them: the gauge, the context panel, the line under the
draft; and a look now and then whether a summary that is made ahead stands ready, which the gauge shows.

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
"""Seconds between two looks, and after how many we give up."""


class PrefetchWatch:
    """Looks every second, after a turn, whether a prepared summary stands ready, and calls `show` once when it does. `soft_mark`
    is the share of the limit from which one is prepared, 0 for never."""

    def __init__(self, widget: Widget, soft_mark: float, show: Callable[[], None]) -> None:
        self._widget, self.soft_mark, self._show = widget, soft_mark, show
        self._timer: Timer | None = None

    def start(self, session: Session) -> None:
        """A turn is over; look from now on, where one may be in the making."""
        self.stop()
        context_usage = session.context_usage
        soft = soft_tokens(context_usage, self.soft_mark)
        if self.soft_mark and not session.compaction.ghost and context_usage.used >= soft > 0:
            self._timer = self._widget.set_interval(
                GLANCE_INTERVAL_S, lambda: self._glance(session), repeat=MAX_GLANCES
            )

    def _glance(self, session: Session) -> None:
        if session.compaction.ghost:
            self.stop()
            self._show()

    def stop(self) -> None:
        """Something else happens, and shows what there is to see."""
        if self._timer:
            self._timer.stop()
            self._timer = None


class Gauges:
    """They show the same figures at any time."""

    def __init__(self, gauge: Gauge, outlook: OutlookLine, composer: Composer, side: SidePanel) -> None:
        self._gauge, self._outlook, self._composer, self._side = gauge, outlook, composer, side
        self._compact_key = self._free_up_key = ""
        self._session: Session | None = None

    def use_keys(self, keys: Keys) -> None:
        """What compacts and what frees up now, as people are shown it."""
        self._compact_key, self._free_up_key = (
            next((shown_key(key) for key in keys.get(action, ())), "") for action in ("compact", "free_up")
        )

    def belong_to(self, session: Session) -> None:
        """From now on it is this one's draft and panel."""
        self._session = session

    def show_usage(self, context_usage: ContextUsage) -> None:
        """These, with the draft in them where there is one."""
        session, draft, parts = self._session, self._composer.draft, self._composer.parts
        if draft.strip() == "/" or parse(draft) is not None:
            draft = ""  # a command goes to no model
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
        """What the session holds may be the same; the draft, or what is on screen, is not."""
        if self._session:
            self.show_usage(self._session.context_usage)

    async def count_draft(self) -> None:
        """What goes along, exactly: long texts are only estimated at first."""
        if self._session and self._composer.parts:
            await self._session.attachments.count(self._composer.parts)
            self.show_again()
