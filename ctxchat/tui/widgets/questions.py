"""What waits for a person's word: calls to be allowed and questions of calls, one after another, and the suggestion to make room.

A place over the composer. What a call asked is answered to its session from here; what is said to a suggestion or of a model
bubbles up. Says `Changed` when there is something else to answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.containers import Vertical
from textual.message import Message

from ctxchat.core.events import ApprovalRequested, CompactionSuggested, QuestionAsked
from ctxchat.core.figures import Figures
from ctxchat.tui.services import ChatSession
from ctxchat.tui.widgets.approval import ApprovalPanel
from ctxchat.tui.widgets.asked import Asked
from ctxchat.tui.widgets.first_choice import FirstChoice
from ctxchat.tui.widgets.question import QuestionPanel
from ctxchat.tui.widgets.suggestion import SuggestionPanel

Asking = ApprovalPanel | QuestionPanel


class Questions(Vertical):
    """At most one call and one suggestion are shown; further calls wait."""

    class Changed(Message):
        """A call waits for a word (`asking`), or none does any more."""

        def __init__(self, asking: Asking | None) -> None:
            super().__init__()
            self.asking = asking

    def __init__(self) -> None:
        super().__init__(id="questions")
        self._calls: list[ApprovalRequested | QuestionAsked] = []
        self._session: ChatSession | None = None

    async def belongs_to(self, session: ChatSession) -> None:
        """Another conversation, whose questions these are from now on."""
        self._session = session
        await self.no_calls()
        await self.unsuggest()
        await self.choose_no_model()

    async def ask(self, request: ApprovalRequested | QuestionAsked) -> None:
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

    def keep_up(self, figures: Figures) -> None:
        """The window is fuller or emptier than when room was suggested."""
        for panel in self.query(SuggestionPanel):
            panel.keep_up(figures)

    async def unsuggest(self) -> None:
        """Room was made, or the question was answered."""
        await self.query(SuggestionPanel).remove()

    async def choose_model(self, look: FirstChoice) -> None:
        """No model is set, and some were found."""
        await self.choose_no_model()
        await self.mount(look, before=0)

    async def choose_no_model(self) -> None:
        """One was chosen, or none is wanted."""
        await self.query(FirstChoice).remove()

    def put_off(self) -> bool:
        """No model is chosen now; False where none is asked for."""
        asked = self.query(FirstChoice)
        for look in asked:
            look.answer("later")
        return bool(asked)

    async def no_calls(self) -> None:
        """The turn is over: nothing of it waits. The suggestion stays."""
        self._calls.clear()
        await self._clear_panels()

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the question that is being answered, else of the call that waits; none where nothing does."""
        panels = list(self.query(Asked))
        mine = [panel for panel in panels if panel.has_focus or panel.has_pseudo_class("focus-within")]
        waiting = [panel for panel in panels if not isinstance(panel, SuggestionPanel | FirstChoice)]
        return next((panel.keys for panel in (*mine, *waiting)), ())

    def focus_next_question(self) -> bool:
        """Go to the first that is not being answered; False where there is none."""
        if self.query("*:focus") or self.has_pseudo_class("focus-within"):
            return False
        for panel in self.query(".asked"):
            panel.focus()
            return True
        return False

    # ── what was said ──

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.answer(event.request.call_id, event.answer)
        self.call_next(self.answered, event.request.call_id)

    def on_question_panel_answered(self, event: QuestionPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.reply(event.asked.call_id, event.text)
        self.call_next(self.answered, event.asked.call_id)

    def on_suggestion_panel_replied(self) -> None:
        self.call_next(self._settled, self.unsuggest)

    def on_first_choice_declined(self, event: FirstChoice.Declined) -> None:
        event.stop()
        self.call_next(self._settled, self.choose_no_model)

    async def _settled(self, remove: Callable[[], Awaitable[None]]) -> None:
        await remove()
        self.post_message(self.Changed(next(iter(self.query(ApprovalPanel)), None)))

    # ── panels ──

    async def _show(self) -> None:
        await self._clear_panels()
        panel = _panel(self._calls[0]) if self._calls else None
        if panel:
            await self.mount(panel)
        self.post_message(self.Changed(panel))

    async def _clear_panels(self) -> None:
        await self.query(ApprovalPanel).remove()
        await self.query(QuestionPanel).remove()


def _panel(request: ApprovalRequested | QuestionAsked) -> Asking:
    return QuestionPanel(request) if isinstance(request, QuestionAsked) else ApprovalPanel(request)
