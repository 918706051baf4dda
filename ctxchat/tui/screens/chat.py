"""The chat: one conversation on screen. Turns events into widgets; what a person wants done it tells the app.

Knows a session's values, never how they are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Input

from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    CompactionFinished,
    CompactionSuggested,
    Event,
    Notice,
    Stamped,
    TurnFinished,
    Usage,
)
from ctxchat.core.figures import Figures
from ctxchat.tui.commands import Keys
from ctxchat.tui.ghost import GhostWatch
from ctxchat.tui.history import items, last_answer
from ctxchat.tui.input_history import InputHistory
from ctxchat.tui.live import Live
from ctxchat.tui.services import ChatSession
from ctxchat.tui.widgets.approval import ApprovalPanel
from ctxchat.tui.widgets.banner import Banner
from ctxchat.tui.widgets.blocks import ErrorBlock, Level, NoticeBlock, PassLine
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.empty import EmptyChat, Example
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.header import Header, Heading
from ctxchat.tui.widgets.key_line import APPROVAL_KEYS, BUSY_KEYS, IDLE_KEYS, KeyLine
from ctxchat.tui.widgets.prompt import Prompt
from ctxchat.tui.widgets.questions import Questions
from ctxchat.tui.widgets.side import Side
from ctxchat.tui.widgets.suggestion import SuggestionPanel
from ctxchat.tui.widgets.transcript import Transcript


class ChatScreen(Screen[None]):
    """Header, transcript, context panel, composer, gauge, keys."""

    BINDINGS = [Binding("tab", "tab", show=False)]

    def __init__(
        self,
        folder: str,
        keys: Keys,
        history: InputHistory,
        *,
        sandboxed: bool,
        show_reasoning: bool = False,
        soft_mark: float = 0.0,
    ) -> None:
        super().__init__(id="chat")
        self._sandboxed, self._show_reasoning = sandboxed, show_reasoning
        self.header, self.gauge, self.key_line = Header(), Gauge(id="gauge"), KeyLine(keys)
        self.transcript, self.composer = Transcript(), Composer(keys, history)
        self.empty, self.banner = EmptyChat(folder), Banner()
        self.questions, self.side = Questions(), Side()
        self._ghost = GhostWatch(self, soft_mark, self._show_again)
        self._session: ChatSession | None = None
        self._live: Live | None = None
        self._groups = 0

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield self.banner
                yield self.empty
                yield self.transcript
                yield self.questions
                yield self.composer
            yield self.side
        yield self.gauge
        yield self.key_line

    def on_mount(self) -> None:
        self.composer.prompt.focus()
        self.key_line.show(IDLE_KEYS)

    def on_key(self, event: Key) -> None:
        """Letters go to the composer wherever the focus is, unless they mean something there; also those typed early."""
        free = self.focused is None or event.key not in self.active_bindings
        if event.is_printable and event.character and free and not isinstance(self.focused, Input):
            event.stop()
            self.composer.prompt.focus()
            self.composer.prompt.insert(event.character)

    # ── the session ──

    async def show_session(self, session: ChatSession) -> None:
        """Another conversation, or this one after a change. The draft stays."""
        if self._session:
            await self.banner.clear()
        self._session, self._live = session, None
        await self.questions.clear()
        await self._reload()
        for text in session.notices:
            self.announce(text)
        if session.read_only:
            self.banner.offer(f"{session.read_only} You can read here; nothing can be sent.")

    async def refresh_session(self) -> None:
        """The record or its changes may be others than those shown."""
        session = self._session
        if session is None or self._live is not None:
            return
        await self.transcript.settle(items(session.state.ledger), self._tokens(session), {})
        self._groups = len(session.state.ledger.groups)
        self._show_empty()
        self.show_header()
        self.show_figures(session.figures)

    async def _reload(self) -> None:
        session = self._session
        if session is None:
            return
        shown = items(session.state.ledger)
        self._groups = len(session.state.ledger.groups)
        await self.transcript.show(shown, self._tokens(session))
        self._show_empty()
        self.show_header()
        self.show_figures(session.figures)

    @staticmethod
    def _tokens(session: ChatSession) -> dict[int, int]:
        return {item.message.seq: item.tokens for item in session.view.items if item.group}

    def _show_empty(self) -> None:
        self.set_class(not self.transcript.items and self._live is None, "-empty")

    def show_header(self) -> None:
        """Title, model, mode as they are now."""
        if session := self._session:
            heading = Heading(
                title=session.state.title,
                model=session.figures.model,
                mode=session.mode,
                sandboxed=self._sandboxed,
                read_only=bool(session.read_only),
            )
            self.header.show(heading)

    def show_figures(self, figures: Figures) -> None:
        """The gauge and the panel; with the draft in it where there is one."""
        session, draft = self._session, self.composer.draft
        if session and draft:
            figures = session.with_draft(draft)
        self.gauge.show(figures, ghost=session.ghost if session else 0)
        self.composer.weigh(figures)
        if session:
            self.side.show_figures(figures, session)

    def _show_again(self) -> None:
        if self._session:
            self.show_figures(self._session.figures)

    # ── the context panel ──

    async def lay_out_panel(self) -> None:
        """Open or closed, beside the chat or over it."""
        await self.side.lay_out(self.size.width)

    def toggle_panel(self) -> None:
        """Open or close the context panel."""
        self.side.toggle()
        self.call_next(self.lay_out_panel)

    def close_panel(self) -> bool:
        """Close what lies over the chat; True when there was something."""
        closed = self.side.close()
        if closed:
            self.call_next(self.lay_out_panel)
        return closed

    def on_side_opened(self, event: Side.Opened) -> None:
        event.stop()
        self._show_again()

    def on_resize(self) -> None:
        self.call_next(self.lay_out_panel)

    # ── a turn ──

    async def begin(self, what: str) -> None:
        """Work has begun."""
        self._live = Live(self.transcript, show_reasoning=self._show_reasoning)
        self._show_empty()
        await self.banner.clear()
        self.app.add_class("-busy")
        self.key_line.show(BUSY_KEYS)
        self._ghost.stop()
        await self.transcript.to_end()
        await self._live.wait(what)

    async def end(self, interrupted: bool = False) -> None:
        """Work is over."""
        live, self._live = self._live, None
        self.app.remove_class("-busy")
        await self.questions.no_calls()
        self.remove_class("-approval")
        if live:
            await live.end(interrupted)
            await self._settle(live)
        self.key_line.show(IDLE_KEYS)
        self._show_empty()
        self.show_header()
        if self._session:
            self.show_figures(self._session.figures)
            self._ghost.start(self._session)

    async def _settle(self, live: Live) -> None:
        if session := self._session:
            shown = items(session.state.ledger)
            known = {s.key for s in self.transcript.items}
            await self.transcript.settle(shown, self._tokens(session), live.places(shown, known))
            self._groups = len(session.state.ledger.groups)

    async def take(self, stamped: Stamped) -> None:
        """One event of the turn."""
        live = self._live
        if live is None:
            return
        event: Event = stamped.event
        match event:
            case ApprovalRequested():
                await self.questions.ask(event)
            case ApprovalResolved():
                await self.questions.answered(event.call_id)
            case Usage():
                pass
            case Figures():
                await self._measured(event, live)
            case CompactionSuggested():
                await self.questions.suggest(event)
            case CompactionFinished():
                await self._compacted(event, live)
            case Notice():
                self.notice(event.level, event.text)
            case TurnFinished():
                await live.end(interrupted=event.status == "cancelled")
                if event.status == "max_rounds":
                    self.notice("warning", f"Stopped after {event.rounds} rounds. Send a message to go on.")
            case _:
                await live.take(event, stamped.at)

    async def _measured(self, figures: Figures, live: Live) -> None:
        self.show_figures(figures)
        if self._session and len(self._session.state.ledger.groups) != self._groups:
            await self._settle(live)

    async def _compacted(self, event: CompactionFinished, live: Live) -> None:
        await live.compacted(kept=event.outcome == "compacted")
        if event.outcome == "compacted":
            await self.questions.unsuggest()
            await self._settle(live)
        else:
            await self.transcript.add(PassLine(event.outcome, event.detail))
        await live.wait("waiting for the model")

    def announce(self, text: str) -> None:
        """Something to know before the first message: above the conversation, until one is sent."""
        self.banner.say(text)

    def notice(self, level: Level, text: str) -> None:
        """A sentence at the end of the transcript."""
        self.transcript.call_next(self.transcript.add, NoticeBlock(level, text))
        self.remove_class("-empty")

    async def failed(self, text: str, hint: str = "") -> None:
        """Something a person asked for did not work."""
        self.remove_class("-empty")
        await self.transcript.add(ErrorBlock(text, hint))

    def changed(self, figures: Figures, text: str) -> None:
        """A change by hand is in force."""
        self.show_figures(figures)
        self.notice("info", text)
        self.call_next(self.refresh_session)

    def show_queue(self, queued: Sequence[str]) -> None:
        """What waits for the end of the turn."""
        self.composer.show_queue(queued)

    def last_answer(self) -> str:
        """The newest answer: on screen, else in the record."""
        return self.transcript.last_answer() or (last_answer(self._session.state.ledger) if self._session else "")

    # ── what waits for a word ──

    def on_questions_changed(self, event: Questions.Changed) -> None:
        event.stop()
        panel = event.asking
        self.set_class(panel is not None, "-approval")
        if panel is None:
            self.key_line.show(BUSY_KEYS if self._live else IDLE_KEYS)
            self.composer.prompt.focus()
            return
        self.key_line.show(APPROVAL_KEYS)
        if not self.composer.prompt.text and panel.is_attached:  # never take the focus from someone who is writing
            panel.focus()

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.answer(event.request.call_id, event.verdict, event.reason)
        self.call_next(self.questions.answered, event.request.call_id)

    def on_suggestion_panel_replied(self, event: SuggestionPanel.Replied) -> None:
        """The answer is the app's to act on; the question goes."""
        self.composer.prompt.focus()
        self.call_next(self.questions.unsuggest)

    def action_tab(self) -> None:
        """To the question that waits, else to the next thing."""
        if not self.questions.focus_next_question():
            self.focus_next()

    # ── the draft ──

    def on_composer_changed(self, event: Composer.Changed) -> None:
        event.stop()
        if self._session:
            self.show_figures(self._session.figures)

    def on_prompt_scrolled(self, event: Prompt.Scrolled) -> None:
        event.stop()
        if event.pages < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)

    def on_example_pressed(self, event: Example.Pressed) -> None:
        event.stop()
        self.composer.set_draft(event.text)
