"""The first message of a fresh session that goes on with this one's work: drafted by code, by the model on request, then the
person's to mend.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic

from textual.binding import Binding

from ctxchat.agent.handoff import Handoff
from ctxchat.core.errors import CtxchatError
from ctxchat.tui.panels.summary import SPINNER_INTERVAL_S, DraftScreen, SummaryEditor


class HandoffScreen(DraftScreen):
    """Edits the first message of a session that continues the work. Its result is the message, or None; `text` is the draft for
    this goal."""

    TITLE = "Hand off   to a fresh session"
    MENDED = "Edit it; enter sends it there. This session stays, and the agent can look things up in it."
    EMPTY = "An empty message tells the fresh session nothing. Esc leaves everything as it is."

    BINDINGS = [
        Binding("enter,ctrl+s", "apply", "send it", key_display="enter"),
        Binding("ctrl+t", "by_model", "let the model write it", priority=True),
    ]

    def __init__(self, handoff: Handoff, goal: str, text: str) -> None:
        super().__init__(_at_once(text), "")
        self._handoff, self._goal = handoff, goal

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self._handoff.writer) if action == "by_model" else True

    def action_by_model(self) -> None:
        """Replace the text by one that the model writes, with what code keeps around it."""
        if self._writing:
            return
        self._writer, self._writing, self._since = self._handoff.writer, True, monotonic()
        draft = self.query_one(SummaryEditor)
        before, draft.read_only = draft.whole_text, True
        draft.start_anew()
        self._beat = self.set_interval(SPINNER_INTERVAL_S, self._show_draft)
        self._pieces = self._stream_draft(before)
        self.run_worker(self._write_summary, group="summary", exit_on_error=False)

    async def _stream_draft(self, before: str) -> AsyncGenerator[str, None]:
        """The record as the model writes it, then the whole message; where it fails, what stood there before."""
        draft, written = self.query_one(SummaryEditor), list[str]()
        try:
            async with aclosing(self._handoff.by_model(self._goal)) as pieces:
                async for piece in pieces:
                    written.append(piece)
                    yield piece
            whole = await self._handoff.draft(self._goal, "".join(written))
        except CtxchatError:
            self._coming.clear()
            draft.start_anew()
            yield before
            raise
        self._coming.clear()
        draft.start_anew()
        yield whole


async def _at_once(text: str) -> AsyncGenerator[str, None]:
    yield text
