"""What waits for a person's word: calls to be allowed and questions of calls, one after another, the suggestion to make room, and
who is to answer where nobody is there.

A place over the composer, told of every key, so that a question is held back until there was a pause. What a call asked is
answered to its session from here; what is said to a suggestion or of a model bubbles up. Says `Changed` when there is something
else to answer.
"""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Self

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import ApprovalRequested, CompactionSuggested, QuestionAsked
from ctxchat.core.limits import Limit
from ctxchat.presentation.text import clean, cut, one_line
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.chat.asked import AFTER_TAB_S, KEY_PAUSE_S, Asked, Keys
from ctxchat.tui.chat.offers import FirstChoice, ImportLine, ImportOffer, LimitPanel, SuggestionPanel, UnreachedPanel
from ctxchat.tui.widgets.field import AnySizeList, Field

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


class QuestionPanel(Asked):
    """One question that waits for a word."""

    BINDINGS = [
        Binding("escape", "say('')", "No answer", show=False),
        Binding("shift+up", "scroll_text(-1)", show=False),
        Binding("shift+down", "scroll_text(1)", show=False),
    ]

    class Answered(Message):
        """What the person said; empty for nothing."""

        def __init__(self, asked: QuestionAsked, text: str) -> None:
            super().__init__()
            self.asked, self.text = asked, text

    def __init__(self, asked: QuestionAsked) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        words = Content.assemble(("? ", "bold $text-warning"), Content(cut(self._asked.text)))
        with VerticalScroll(classes="question words", can_focus=False):
            yield Static(words, markup=False)
        if options := self._asked.options:
            yield AnySizeList(*(Option(Content(one_line(clean(text), 200))) for text in options), markup=False)
        yield Field(placeholder="or in your own words" if options else "your answer", classes="why")

    @property
    def server(self) -> str:
        """The name of the server that wants to know; empty for the agent."""
        return self._asked.server

    @property
    def own_keys(self) -> Keys:
        more = (("=shift+↓", "read on"),) if self.query_one(VerticalScroll).max_scroll_y else ()
        return (("=enter", "answer"), ("=tab", "next"), ("=esc", "no answer"), *more)

    def focus(self, scroll_visible: bool = True) -> Self:
        """To the answers, else to the line."""
        target = self.query(OptionList).first() if self._asked.options else self.query_one(Input)
        target.focus(scroll_visible)
        return self

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_say(self._asked.options[event.option_index])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.action_say(event.value.strip())

    def action_scroll_text(self, lines: int) -> None:
        """Move in a long question; at once, or keys that come faster than frames count once."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False, immediate=True)

    def action_say(self, text: str) -> None:
        """Say it, once."""
        self.post_answer(self.Answered(self._asked, text))


POLL_INTERVAL_S = 0.05
"""Seconds between two looks at a question that is held back."""

SCROLLING = "Asked VerticalScroll, Asked OptionList, Asked TextArea"

GIVEN_UP = ("-tight", "-tighter")
"""In windows where the answers would not be seen: without rules, then without what can be allowed besides."""

Asking = ApprovalPanel | QuestionPanel
_OFFERS = SuggestionPanel | FirstChoice | UnreachedPanel | LimitPanel | ImportOffer
"""Nothing waits for these."""


class Questions(Vertical):
    """At most one call and one suggestion are shown; further calls wait."""

    class Changed(Message):
        """A call waits for a word (`asking`), or none does any more."""

        def __init__(self, asking: Asking | None) -> None:
            super().__init__()
            self.asking = asking

    class Resized(Message):
        """A question came or went, or says more or less."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        """`now` is a steadily rising count of seconds."""
        super().__init__(id="questions")
        self._now = now
        self._changing = Lock()
        self._watching: Timer | None = None
        self._giving_up = False  # what was given up is not laid out yet
        self._wanted: Asked | None = None  # `tab` was pressed while it was held back
        self._tabbed = False  # and that was the last key
        self._calls: list[ApprovalRequested | QuestionAsked] = []
        self._session: Session | None = None

    async def belongs_to(self, session: Session) -> None:
        """Another conversation, whose questions these are from now on."""
        self._session = session
        await self.no_calls()
        await self.unsuggest()
        await self.choose_no_model()

    async def ask(self, request: ApprovalRequested | QuestionAsked) -> None:
        """A call waits."""
        self._calls.append(request)
        if len(self._calls) == 1:
            await self._show_question()

    async def answered(self, call_id: str) -> None:
        """That call waits no longer."""
        if any(r.call_id == call_id for r in self._calls):
            self._calls = [r for r in self._calls if r.call_id != call_id]
            await self._show_question()

    async def suggest(self, suggested: CompactionSuggested) -> None:
        """Room could be made; a newer suggestion takes the place of an older one."""
        await self.unsuggest()
        await self._mount_panel(SuggestionPanel(suggested), before=0)

    def keep_up(self, context_usage: ContextUsage) -> None:
        """The window is fuller or emptier than when room was suggested."""
        for panel in self.query(SuggestionPanel):
            panel.keep_up(context_usage)

    async def unsuggest(self) -> None:
        """Room was made, or the question was answered."""
        await self.query(SuggestionPanel).remove()

    async def choose_model(self, look: FirstChoice) -> None:
        """No model is set, and some were found."""
        await self.choose_no_model()
        await self._mount_panel(look, before=0)

    async def choose_no_model(self) -> None:
        """One was chosen, or none is wanted."""
        await self.query(FirstChoice).remove()
        await self.query(UnreachedPanel).remove()
        await self.query(LimitPanel).remove()

    async def unreached(self, model: str, address: str, *, waiting: bool) -> None:
        """Nobody is there to answer; `waiting` where a message wants its answer."""
        await self.choose_no_model()
        await self._mount_panel(UnreachedPanel(model, address, waiting=waiting), before=0)

    async def stopped_by(self, limit: Limit) -> None:
        """A spending limit is in the way of the answer."""
        await self.choose_no_model()
        await self._mount_panel(LimitPanel(limit), before=0)

    async def offer_import(self, offer: ImportOffer) -> None:
        """Sessions of other agents were found."""
        await self.query(ImportOffer).remove()
        if not self.importing:
            await self._mount_panel(offer, before=0)

    @property
    def importing(self) -> bool:
        """An import is under way."""
        return bool(self.query(ImportLine))

    def stop_import(self) -> bool:
        """End the import under way; False where none is."""
        for line in self.query(ImportLine):
            line.action_press()
        return self.importing

    def put_off(self) -> bool:
        """No model is chosen and nothing imported now; False where nobody asked."""
        asked = [look for kind in (FirstChoice, UnreachedPanel, LimitPanel, ImportOffer) for look in self.query(kind)]
        for look in asked:
            look.answer("later")
        return bool(asked)

    async def no_calls(self) -> None:
        """The turn is over: nothing of it waits. The suggestion stays."""
        self._calls.clear()
        async with self._changing:
            await self._clear_panels()

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the question that is being answered, else of the call that waits; none where nothing does."""
        panels = list(self.query(Asked))
        mine = [panel for panel in panels if panel.answering]
        waiting = [panel for panel in panels if not isinstance(panel, _OFFERS)]
        return next((panel.keys for panel in (*mine, *waiting)), ())

    @property
    def says_tab(self) -> bool:
        """All that are not being answered tell how to come to them."""
        return all(panel.answering or panel.says_tab for panel in self.query(Asked))

    def focus_next_question(self) -> bool:
        """Go to the first that is not being answered; False where there is none."""
        if self.query("*:focus") or self.has_pseudo_class("focus-within"):
            return False
        for panel in self.query(Asked):
            self._wanted = panel
            self._release_held()
            return True
        return False

    def reply(self, text: str) -> bool:
        """What was written below is the answer to the agent's question; False where none waits that a person can have seen. A
        server's is answered on it alone: what is written below is for the agent, and would leave the machine."""
        panel = next((panel for panel in self.query(QuestionPanel) if panel.seen and not panel.server), None)
        if panel and text:
            panel.action_say(text)
        return bool(panel and text)

    # ── room ──

    def on_resize(self) -> None:
        self.call_after_refresh(self.give_way)
        self.post_message(self.Resized())

    def take_room(self) -> None:
        """As high as it likes again, in a window that is another."""
        for box in self.query(SCROLLING).results(Widget):
            box.styles.max_height = None
        self.remove_class(*GIVEN_UP)
        self.styles.max_height = None
        self.call_after_refresh(self.give_way)

    def give_way(self) -> None:
        """What scrolls in a question is lower, the highest first and what a call would do last, by as many
        lines as what stands below it has no room for. Where that is not enough, all of them scroll."""
        place = self.parent
        heights = {box: height for box in self.query(SCROLLING).results(Widget) if (height := box.size.height)}
        if not isinstance(place, Widget) or self._giving_up:
            return
        over = place.children[-1].region.bottom - place.region.bottom
        while over > 0 and any(height > 1 for height in heights.values()):
            highest = max(heights, key=lambda box: heights[box] / (1 + box.has_class("preview")))
            if heights[highest] == 1:
                break
            heights[highest] -= 1
            highest.styles.max_height = heights[highest]
            over -= 1
        left = [name for name in GIVEN_UP if not self.has_class(name)]
        if over > 0 and heights and left:
            self.add_class(left[0])
            self._giving_up = True
            self.call_after_refresh(self._give_more)
        elif over > 0:
            self.styles.max_height = max(1, self.size.height - over)

    def _give_more(self) -> None:
        """Look again, now that what was given up last is gone: twice in one frame would give up too much."""
        self._giving_up = False
        self.give_way()

    # ── no accident ──

    def typed(self, key: str = "") -> None:
        """A key (or a paste) came, wherever it goes: a question that is not being answered waits for a pause."""
        self._tabbed = key == "tab"
        for panel in self.query(Asked):
            if panel.held or not panel.answering:
                pause = AFTER_TAB_S if key == "tab" and not panel.held else KEY_PAUSE_S
                panel.hold_until(self._now() + pause)
        self._release_held()

    def take_back(self) -> str:
        """The letters pressed on a question that turn out to be the beginning of a sentence."""
        return "".join(panel.take_back() for panel in self.query(Asked))

    def on_asked_grew(self, event: Asked.Grew) -> None:
        event.stop()
        self.call_after_refresh(self.give_way)

    def on_asked_key_taken(self, event: Asked.KeyTaken) -> None:
        event.stop()
        self._release_held()

    async def _mount_panel(self, panel: Asked, before: int | None = None) -> None:
        panel.now = self._now
        panel.hold_until(self._now() + KEY_PAUSE_S)
        self.take_room()
        await self.mount(panel, before=before)
        self._release_held()

    def _release_held(self) -> None:
        """Let go of what was held long enough; look again soon where something still is."""
        panels = list(self.query(Asked))
        for panel in panels:
            if panel.became_answerable(self._now()) and isinstance(panel, ApprovalPanel | QuestionPanel):
                self.post_message(self.Changed(panel))
        if self._wanted and not (self._tabbed and self._wanted in panels):
            self._wanted = None
        elif self._wanted and not self._wanted.held:
            self._wanted.focus()
            self._wanted = None
        held = any(panel.waits for panel in panels)
        if held and self._watching is None:
            self._watching = self.set_interval(POLL_INTERVAL_S, self._release_held)
        elif not held and self._watching:
            self._watching.stop()
            self._watching = None

    # ── what was said ──

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.permissions.answer(event.request.call_id, event.answer)
        if event.answer.verdict == "always":
            rule = one_line(event.answer.rule, 100)
            self.app.notify(f"No longer asked here: {rule}. /permissions takes it back.", markup=False)
        self.call_next(self.answered, event.request.call_id)

    def on_question_panel_answered(self, event: QuestionPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.permissions.reply(event.asked.call_id, event.text)
        self.call_next(self.answered, event.asked.call_id)

    def on_suggestion_panel_replied(self) -> None:
        self.call_next(self._settled, self.unsuggest)

    def on_first_choice_declined(self, event: FirstChoice.Declined) -> None:
        event.stop()
        self.call_next(self._settled, self.choose_no_model)

    def on_unreached_panel_answered(self) -> None:
        self.call_next(self._settled, self.choose_no_model)

    def on_limit_panel_answered(self) -> None:
        self.call_next(self._settled, self.choose_no_model)

    def on_import_offer_answered(self) -> None:
        self.call_next(self._settled, self.query(ImportOffer).remove)

    async def _settled(self, remove: Callable[[], Awaitable[None]]) -> None:
        await remove()
        self.post_message(self.Changed(next(iter(self.query(ApprovalPanel)), None)))

    # ── panels ──

    async def _show_question(self) -> None:
        async with self._changing:  # the turn and the answer to its last question both come here
            await self._clear_panels()
            panel = self._panel(self._calls[0]) if self._calls else None
            if panel:
                await self._mount_panel(panel)
        self.post_message(self.Changed(panel))

    async def _clear_panels(self) -> None:
        if any(panel.answering for panel in self.query(Asked) if isinstance(panel, ApprovalPanel | QuestionPanel)):
            self.screen.set_focus(None)  # at once, or the focus goes to whatever is next
        await self.query(ApprovalPanel).remove()
        await self.query(QuestionPanel).remove()

    def _panel(self, request: ApprovalRequested | QuestionAsked) -> Asking:
        if isinstance(request, QuestionAsked):
            return QuestionPanel(request)
        session = self._session
        return ApprovalPanel(
            request, lambda rule: session.permissions.objection(request.call_id, rule) if session else ""
        )
