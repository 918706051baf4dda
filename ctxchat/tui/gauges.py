"""Everything beside the transcript that shows figures, the draft's among them: the gauge, the context panel, the line under the
draft.

Knows one session at a time, and nothing of turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxchat.core.figures import Figures
from ctxchat.tui.commands import parse
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.side_panel import Side

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


class Gauges:
    """They show the same figures at any time."""

    def __init__(self, gauge: Gauge, composer: Composer, side: Side) -> None:
        self._gauge, self._composer, self._side = gauge, composer, side
        self._session: Session | None = None

    def belong_to(self, session: Session) -> None:
        """From now on it is this one's draft and panel."""
        self._session = session

    def show(self, figures: Figures) -> None:
        """These, with the draft in them where there is one."""
        session, draft, parts = self._session, self._composer.draft, self._composer.parts
        if draft.strip() == "/" or parse(draft) is not None:
            draft = ""  # a command goes to no model
        if session and (draft or parts):
            figures = session.attachments.with_draft(draft, parts)
        self._gauge.show(figures, ghost=session.compaction.ghost if session else 0)
        self._composer.weigh(figures)
        if session:
            self._side.show_figures(figures, session)

    def show_again(self) -> None:
        """What the session holds may be the same; the draft, or what is on screen, is not."""
        if self._session:
            self.show(self._session.figures)

    async def count_draft(self) -> None:
        """What goes along, exactly: long texts are only estimated at first."""
        if self._session and self._composer.parts:
            await self._session.attachments.count(self._composer.parts)
            self.show_again()
