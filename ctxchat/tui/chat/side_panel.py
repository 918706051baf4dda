"""The place of the context panel: beside the chat where there is room, else over it when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.message import Message

from ctxchat.core.context_usage import ContextUsage

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tui.chat.breakdown import Breakdown

MIN_WIDTH_BESIDE, MIN_WIDTH = 110, 30
"""Columns from which the panel fits beside the chat, and from which it can be shown at all (over the chat)."""


class SidePanel(Vertical):
    """Holds the context panel, which is made when first needed."""

    class Changed(Message):
        """The panel was laid out: it may be open, closed or elsewhere now."""

    def __init__(self) -> None:
        super().__init__(id="side")
        self._panel: Breakdown | None = None
        self._wanted: bool | None = None  # None: shown where it fits beside the chat
        self._width = 0

    @property
    def is_shown(self) -> bool:
        """Whether the panel is shown."""
        return (self._width >= MIN_WIDTH_BESIDE if self._wanted is None else self._wanted) and self.fits

    @property
    def fits(self) -> bool:
        """Whether there is room for it, at least over the chat."""
        return self._width >= MIN_WIDTH

    @property
    def covers_chat(self) -> bool:
        """Whether it lies over the chat."""
        return self.is_shown and self._width < MIN_WIDTH_BESIDE

    async def lay_out(self, width: int) -> None:
        """Show or hide the panel for this width of the chat."""
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
        self._wanted = None if shown == (self._width >= MIN_WIDTH_BESIDE) else shown
        self.call_next(self.lay_out, self._width)

    def close_if_over_chat(self) -> bool:
        """Close the panel where it lies over the chat; whether it did. The width decides again from then on."""
        over = self.covers_chat
        if over:
            self._wanted = None
            self.call_next(self.lay_out, self._width)
        return over

    def show_figures(self, context_usage: ContextUsage, session: Session) -> None:
        """Update the panel, if it is shown."""
        if self._panel and self.is_shown:
            self._panel.show_breakdown(context_usage, session.view, session.state)
