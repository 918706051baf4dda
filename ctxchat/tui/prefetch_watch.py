"""Looks whether a summary that is made ahead stands ready, while nothing else happens: nobody says so by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.timer import Timer
from textual.widget import Widget

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


GLANCE, MOST = 1.0, 300
"""Seconds between two looks, and after how many we give up."""


class PrefetchWatch:
    """`show` is called once when it stands. `soft_mark` is the share of the limit from which one is made, 0 for never."""

    def __init__(self, widget: Widget, soft_mark: float, show: Callable[[], None]) -> None:
        self._widget, self.soft_mark, self._show = widget, soft_mark, show
        self._timer: Timer | None = None

    def start(self, session: Session) -> None:
        """A turn is over; look from now on, where one may be in the making."""
        self.stop()
        figures = session.figures
        if self.soft_mark and not session.compaction.ghost and figures.used >= self.soft_mark * figures.limit > 0:
            self._timer = self._widget.set_interval(GLANCE, lambda: self._glance(session), repeat=MOST)

    def _glance(self, session: Session) -> None:
        if session.compaction.ghost:
            self.stop()
            self._show()

    def stop(self) -> None:
        """Something else happens, and shows what there is to see."""
        if self._timer:
            self._timer.stop()
            self._timer = None
