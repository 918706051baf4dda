"""The place of the context panel: beside the chat where there is room, else over it when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.message import Message

from ctxchat.core.context_usage import ContextUsage

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tui.chat.breakdown import Breakdown

WIDE, LEAST = 110, 30
"""Columns from which the panel stands beside the chat, and from which it can be shown at all."""


class Side(Vertical):
    """Makes the panel when it is first needed."""

    class Changed(Message):
        """It was opened or closed."""

    def __init__(self) -> None:
        super().__init__(id="side")
        self._panel: Breakdown | None = None
        self._wanted: bool | None = None
        self._width = 0

    @property
    def is_shown(self) -> bool:
        """It is to be seen."""
        return (self._width >= WIDE if self._wanted is None else self._wanted) and self.fits

    @property
    def fits(self) -> bool:
        """There is room for it, if over the chat."""
        return self._width >= LEAST

    @property
    def covers_chat(self) -> bool:
        """It hides a part of the chat."""
        return self.is_shown and self._width < WIDE

    async def lay_out(self, width: int) -> None:
        """Open or closed in a chat of so many columns."""
        self._width = width
        self.screen.set_class(self.is_shown, "-panel")
        self.screen.set_class(self.covers_chat, "-panel-over")
        if self.is_shown and self._panel is None:
            from ctxchat.tui.chat.breakdown import Breakdown

            self._panel = Breakdown()
            await self.mount(self._panel)
        self.post_message(self.Changed())

    def toggle(self) -> None:
        """Open or close it from now on; where that is as the width has it anyway, it follows the width again."""
        shown = not self.is_shown
        self._wanted = None if shown == (self._width >= WIDE) else shown
        self.call_next(self.lay_out, self._width)

    def close(self) -> bool:
        """As wide as it likes again; True when it lay over the chat."""
        over = self.covers_chat
        if over:
            self._wanted = None
            self.call_next(self.lay_out, self._width)
        return over

    def show_figures(self, context_usage: ContextUsage, session: Session) -> None:
        """What it says from now on."""
        if self._panel and self.is_shown:
            self._panel.show_breakdown(context_usage, session.view, session.state)
