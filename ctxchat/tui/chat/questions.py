"""The area over the composer for questions to the person: approvals and questions of tool calls, one at a time, a suggested
compaction, the choice of a model, and other offers.

It is told of every key, so that a question accepts no answer before the person has paused typing. Answers to a call go to its
session from here; answers to offers bubble up to the app. Posts `Changed` when another call is to be answered.
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
from ctxchat.tui.commands import Keys as KeyTable
from ctxchat.tui.commands import shown_key
from ctxchat.tui.widgets.field import AnySizeList, Field

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


class QuestionPanel(Asked):
    """The panel of a question that a tool call or an MCP server asks, with options to choose from or a line to type in."""

    BINDINGS = [
        Binding("escape", "say('')", "No answer", show=False),
        Binding("shift+up", "scroll_text(-1)", show=False),
        Binding("shift+down", "scroll_text(1)", show=False),
    ]

    class Answered(Message):
        """The person's answer; empty where they gave none."""

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
        """The name of the MCP server that asks; empty where the agent does."""
        return self._asked.server

    @property
    def own_keys(self) -> Keys:
        more = (("=shift+↓", "read on"),) if self.query_one(VerticalScroll).max_scroll_y else ()
        return (("=enter", "answer"), ("=tab", "next"), ("=esc", "no answer"), *more)

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the options, or the text field where there are none."""
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
        """Scroll a long question. Immediate, because keys that come faster than frames would count only once."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False, immediate=True)

    def action_say(self, text: str) -> None:
        """Answer with this text; only the first answer counts."""
        self.post_answer(self.Answered(self._asked, text))


POLL_INTERVAL_S = 0.05
"""Seconds between two checks whether a held question may be answered."""

SCROLLING = "Asked VerticalScroll, Asked OptionList, Asked TextArea"
"""Selector of the boxes in a question that can be made lower."""

GIVEN_UP = ("-tight", "-tighter")
"""CSS classes for windows too low to show the answers, added in this order: the first hides rules, the second the optional
grants."""

Asking = ApprovalPanel | QuestionPanel
_OFFERS = SuggestionPanel | FirstChoice | UnreachedPanel | LimitPanel | ImportOffer
"""Panels that no tool call waits for."""


class Questions(Vertical):
    """The container of the question panels. It shows one call and one suggestion at most; further calls are queued."""

    class Changed(Message):
        """Another call waits for an answer: `asking` is its panel, None if none waits."""

        def __init__(self, asking: Asking | None) -> None:
            super().__init__()
            self.asking = asking

    class Resized(Message):
        """The questions take more or less room than before."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        """`now` is a steadily rising count of seconds."""
        super().__init__(id="questions")
        self._rules_key = "/permissions"
        self._now = now
        self._changing = Lock()
        self._watching: Timer | None = None
        self._giving_up = False  # a class of GIVEN_UP was added and the layout has not followed yet
        self._wanted: Asked | None = None  # to be focused when it is no longer held: `tab` was pressed
        self._tabbed = False  # the last key was `tab`
        self._calls: list[ApprovalRequested | QuestionAsked] = []
        self._session: Session | None = None

    async def belongs_to(self, session: Session) -> None:
        """Show the questions of this session from now on, and remove those of the one before."""
        self._session = session
        await self.no_calls()
        await self.unsuggest()
        await self.choose_no_model()

    async def ask(self, request: ApprovalRequested | QuestionAsked) -> None:
        """Add a call that waits for an answer."""
        self._calls.append(request)
        if len(self._calls) == 1:
            await self._show_question()

    async def answered(self, call_id: str) -> None:
        """Remove a call that needs no answer any more, and show the next one."""
        if any(r.call_id == call_id for r in self._calls):
            self._calls = [r for r in self._calls if r.call_id != call_id]
            await self._show_question()

    async def suggest(self, suggested: CompactionSuggested) -> None:
        """Suggest a compaction, in place of an earlier suggestion."""
        await self.unsuggest()
        await self._mount_panel(SuggestionPanel(suggested), before=0)

    def use_keys(self, keys: KeyTable) -> None:
        """Name the key of the list of rules as it is from now on."""
        self._rules_key = next(map(shown_key, keys.get("permissions", ())), "/permissions")

    def keep_up(self, context_usage: ContextUsage) -> None:
        """Update the figures of a suggested compaction."""
        for panel in self.query(SuggestionPanel):
            panel.keep_up(context_usage)

    async def unsuggest(self) -> None:
        """Remove the suggested compaction."""
        await self.query(SuggestionPanel).remove()

    async def choose_model(self, look: FirstChoice) -> None:
        """Offer a choice of the models that were found, where none is set."""
        await self.choose_no_model()
        await self._mount_panel(look, before=0)

    async def choose_no_model(self) -> None:
        """Remove the offers that concern the answering model: the choice of one, an unreachable one, a spending limit."""
        await self.query(FirstChoice).remove()
        await self.query(UnreachedPanel).remove()
        await self.query(LimitPanel).remove()

    async def unreached(self, model: str, address: str, *, waiting: bool) -> None:
        """Ask how to go on where `model` at `address` cannot be reached. `waiting`: a message has no answer yet."""
        await self.choose_no_model()
        await self._mount_panel(UnreachedPanel(model, address, waiting=waiting), before=0)

    async def stopped_by(self, limit: Limit) -> None:
        """Ask how to go on where a spending limit stopped the turn."""
        await self.choose_no_model()
        await self._mount_panel(LimitPanel(limit), before=0)

    async def offer_import(self, offer: ImportOffer) -> None:
        """Offer to import sessions of other agents; not while an import is running."""
        await self.query(ImportOffer).remove()
        if not self.importing:
            await self._mount_panel(offer, before=0)

    @property
    def importing(self) -> bool:
        """Whether an import is running."""
        return bool(self.query(ImportLine))

    def stop_import(self) -> bool:
        """Stop the running import; False where none is running."""
        for line in self.query(ImportLine):
            line.action_press()
        return self.importing

    def put_off(self) -> bool:
        """Answer "later" to all offers except a suggested compaction; False where there is none."""
        offers = [
            panel for kind in (FirstChoice, UnreachedPanel, LimitPanel, ImportOffer) for panel in self.query(kind)
        ]
        for panel in offers:
            panel.answer("later")
        return bool(offers)

    async def no_calls(self) -> None:
        """Remove all calls, as the turn is over. A suggested compaction stays."""
        self._calls.clear()
        async with self._changing:
            await self._clear_panels()

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The keys of the focused question, else of the call that waits; empty without either."""
        panels = list(self.query(Asked))
        focused = [panel for panel in panels if panel.answering]
        waiting = [panel for panel in panels if not isinstance(panel, _OFFERS)]
        return next((panel.keys for panel in (*focused, *waiting)), ())

    @property
    def says_tab(self) -> bool:
        """Whether every question without the focus itself says that `tab` leads to it."""
        return all(panel.answering or panel.says_tab for panel in self.query(Asked))

    def focus_next_question(self) -> bool:
        """Focus the first question, as soon as it is not held; False where there is none, or one has the focus already."""
        if self.query("*:focus") or self.has_pseudo_class("focus-within"):
            return False
        for panel in self.query(Asked):
            self._wanted = panel
            self._release_held()
            return True
        return False

    def reply(self, text: str) -> bool:
        """Answer the agent's question with a text from the composer; False where no question waits that the person can have seen.
        A server's question is answered only in its panel: a text in the composer is meant for the agent and must not leave the
        machine."""
        panel = next((panel for panel in self.query(QuestionPanel) if panel.seen and not panel.server), None)
        if panel and text:
            panel.action_say(text)
        return bool(panel and text)

    # ── room ──

    def on_resize(self) -> None:
        self.call_after_refresh(self.give_way)
        self.post_message(self.Resized())

    def take_room(self) -> None:
        """Reset all heights, after the window or the questions have changed, and fit them to the window again."""
        for box in self.query(SCROLLING).results(Widget):
            box.styles.max_height = None
        self.remove_class(*GIVEN_UP)
        self.styles.max_height = None
        self.call_after_refresh(self.give_way)

    def give_way(self) -> None:
        """Make the boxes that scroll lower until the composer below fits the window: the highest box first, the preview of a call
        last. Where that is not enough, hide parts (`GIVEN_UP`), then let the whole area scroll."""
        container = self.parent
        heights = {box: height for box in self.query(SCROLLING).results(Widget) if (height := box.size.height)}
        if not isinstance(container, Widget) or self._giving_up:
            return
        over = container.children[-1].region.bottom - container.region.bottom
        while over > 0 and any(height > 1 for height in heights.values()):
            highest = max(heights, key=lambda box: heights[box] / (1 + box.has_class("preview")))
            if heights[highest] == 1:
                break
            heights[highest] -= 1
            highest.styles.max_height = heights[highest]
            over -= 1
        unused = [name for name in GIVEN_UP if not self.has_class(name)]
        if over > 0 and heights and unused:
            self.add_class(unused[0])
            self._giving_up = True
            self.call_after_refresh(self._give_more)
        elif over > 0:
            self.styles.max_height = max(1, self.size.height - over)

    def _give_more(self) -> None:
        """Run `give_way` again once the layout has followed: a second time in the same frame would hide too much."""
        self._giving_up = False
        self.give_way()

    # ── protection from accidental answers ──

    def typed(self, key: str = "") -> None:
        """Note a key or a paste for any widget: a question without the focus accepts no answer until a pause follows."""
        self._tabbed = key == "tab"
        for panel in self.query(Asked):
            if panel.held or not panel.answering:
                pause = AFTER_TAB_S if key == "tab" and not panel.held else KEY_PAUSE_S
                panel.hold_until(self._now() + pause)
        self._release_held()

    def take_back(self) -> str:
        """Remove and return the letters that a question took as answers and that turn out to begin a sentence for the
        composer."""
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
        """Enable the questions that were held long enough; check again soon while one is still held."""
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

    # ── answers ──

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.permissions.answer(event.request.call_id, event.answer)
        if event.answer.verdict == "always":
            rule = one_line(event.answer.rule, 100)
            self.app.notify(f"From now on allowed here: {rule}. {self._rules_key} takes it back.", markup=False)
        self.call_next(self.answered, event.request.call_id)

    def on_question_panel_answered(self, event: QuestionPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.permissions.reply(event.asked.call_id, event.text)
        self.call_next(self.answered, event.asked.call_id)

    def on_suggestion_panel_replied(self) -> None:
        self.call_next(self._remove_answered, self.unsuggest)

    def on_first_choice_declined(self, event: FirstChoice.Declined) -> None:
        event.stop()
        self.call_next(self._remove_answered, self.choose_no_model)

    def on_unreached_panel_answered(self) -> None:
        self.call_next(self._remove_answered, self.choose_no_model)

    def on_limit_panel_answered(self) -> None:
        self.call_next(self._remove_answered, self.choose_no_model)

    def on_import_offer_answered(self) -> None:
        self.call_next(self._remove_answered, self.query(ImportOffer).remove)

    async def _remove_answered(self, remove: Callable[[], Awaitable[None]]) -> None:
        """Remove an offer that was answered, and announce the call that waits, if any."""
        await remove()
        self.post_message(self.Changed(next(iter(self.query(ApprovalPanel)), None)))

    # ── panels ──

    async def _show_question(self) -> None:
        async with self._changing:  # both the turn and the answer to its last question call this
            await self._clear_panels()
            panel = self._panel(self._calls[0]) if self._calls else None
            if panel:
                await self._mount_panel(panel)
        self.post_message(self.Changed(panel))

    async def _clear_panels(self) -> None:
        if any(panel.answering for panel in self.query(Asked) if isinstance(panel, ApprovalPanel | QuestionPanel)):
            self.screen.set_focus(None)  # at once, or Textual moves the focus to the next widget
        await self.query(ApprovalPanel).remove()
        await self.query(QuestionPanel).remove()

    def _panel(self, request: ApprovalRequested | QuestionAsked) -> Asking:
        if isinstance(request, QuestionAsked):
            return QuestionPanel(request)
        session = self._session
        return ApprovalPanel(
            request, lambda rule: session.permissions.objection(request.call_id, rule) if session else ""
        )
