"""What waits for a person's word: calls to be allowed, one after another, and the suggestion to make room.

A place over the composer. Says `Changed` when there is something else to answer; the answers themselves bubble up.
"""

from __future__ import annotations

from textual.containers import Vertical
from textual.message import Message

from ctxchat.core.events import ApprovalRequested, CompactionSuggested
from ctxchat.tui.widgets.approval import ApprovalPanel
from ctxchat.tui.widgets.suggestion import SuggestionPanel


class Questions(Vertical):
    """At most one call and one suggestion are shown; further calls wait."""

    class Changed(Message):
        """A call is to be allowed (`asking`), or none is any more."""

        def __init__(self, asking: ApprovalPanel | None) -> None:
            super().__init__()
            self.asking = asking

    def __init__(self) -> None:
        super().__init__(id="questions")
        self._calls: list[ApprovalRequested] = []

    async def ask(self, request: ApprovalRequested) -> None:
        """A call waits."""
        self._calls.append(request)
        if len(self._calls) == 1:
            await self._show()

    async def answered(self, call_id: str) -> None:
        """That call waits no longer."""
        if any(r.call_id == call_id for r in self._calls):
            self._calls = [r for r in self._calls if r.call_id != call_id]
            await self._show()

    async def suggest(self, suggested: CompactionSuggested) -> None:
        """Room could be made; a newer suggestion takes the place of an older one."""
        await self.unsuggest()
        await self.mount(SuggestionPanel(suggested), before=0)

    async def unsuggest(self) -> None:
        """Room was made, or the question was answered."""
        await self.query(SuggestionPanel).remove()

    async def no_calls(self) -> None:
        """The turn is over: nothing of it waits. The suggestion stays."""
        self._calls.clear()
        await self.query(ApprovalPanel).remove()

    async def clear(self) -> None:
        """Another conversation."""
        await self.no_calls()
        await self.unsuggest()

    def focus_next_question(self) -> bool:
        """Go to the first that is not being answered; False where there is none."""
        if self.query("*:focus") or self.has_pseudo_class("focus-within"):
            return False
        for panel in self.query(".asked"):
            panel.focus()
            return True
        return False

    async def _show(self) -> None:
        await self.query(ApprovalPanel).remove()
        panel = ApprovalPanel(self._calls[0]) if self._calls else None
        if panel:
            await self.mount(panel)
        self.post_message(self.Changed(panel))
