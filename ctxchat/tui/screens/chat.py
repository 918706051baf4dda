"""The chat: one conversation on screen. Turns events into widgets; what a person wants done it tells the app.

Knows a session's values, never how they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

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
    CompactionStarted,
    CompactionSuggested,
    Event,
    Failed,
    Notice,
    ReasoningDelta,
    Retry,
    Stamped,
    SummaryDelta,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from ctxchat.core.figures import Figures
from ctxchat.tui.commands import Keys
from ctxchat.tui.dialogs import ApprovalPanel
from ctxchat.tui.history import items, last_answer
from ctxchat.tui.input_history import InputHistory
from ctxchat.tui.live import Live
from ctxchat.tui.services import ChatSession
from ctxchat.tui.widgets.blocks import ErrorBlock, Level, NoticeBlock, PassLine, RetryBlock
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.empty import EmptyChat, Example
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.header import Header, Heading, KeyLine
from ctxchat.tui.widgets.prompt import Prompt
from ctxchat.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from ctxchat.tui.widgets.breakdown import Breakdown

WIDE = 110
"""Columns from which the context panel stands beside the chat."""

IDLE_KEYS = (
    ("send", "send"),
    ("newline", "line"),
    ("context", "context"),
    ("archive", "archive"),
    ("xray", "x-ray"),
    ("free_up", "free up"),
    ("palette", "all commands"),
)
BUSY_KEYS = (("interrupt", "stop"), ("send", "queue"), *IDLE_KEYS[2:])
APPROVAL_KEYS = (("=y", "once"), ("=s", "this session"), ("=a", "always"), ("=n", "deny"), ("=tab", "to the question"))


class ChatScreen(Screen[None]):
    """Header, transcript, context panel, composer, gauge, keys."""

    BINDINGS = [Binding("tab", "tab", show=False)]

    def __init__(
        self, folder: str, keys: Keys, history: InputHistory, *, sandboxed: bool, show_reasoning: bool = False
    ) -> None:
        super().__init__(id="chat")
        self._folder, self._keys = folder, keys
        self._sandboxed, self._show_reasoning = sandboxed, show_reasoning
        self.header, self.gauge, self.key_line = Header(), Gauge(id="gauge"), KeyLine(keys)
        self.transcript, self.composer = Transcript(), Composer(keys, history)
        self.empty = EmptyChat(folder)
        self._session: ChatSession | None = None
        self._live: Live | None = None
        self._approvals: list[ApprovalRequested] = []
        self._panel: Breakdown | None = None
        self._panel_wanted: bool | None = None
        self._groups = 0

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield Vertical(id="banner")
                yield self.empty
                yield self.transcript
                yield self.composer
            yield Vertical(id="side")
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
            await self.query("#banner > *").remove()
        self._session, self._live, self._approvals = session, None, []
        await self.query(ApprovalPanel).remove()
        await self._reload()

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
        if session.read_only:
            self.announce(f"{session.read_only} You can read here; nothing can be sent.")

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
        self.gauge.show(figures)
        self.composer.weigh(figures)
        if session and self._panel and self._panel_shown:
            self._panel.show(figures, session.view, session.state)

    # ── the context panel ──

    @property
    def _panel_shown(self) -> bool:
        return self._panel_wanted if self._panel_wanted is not None else self.size.width >= WIDE

    async def lay_out_panel(self) -> None:
        """Open or closed, beside the chat or over it; made when first needed."""
        shown = self._panel_shown and self.size.width >= 30
        self.set_class(shown, "-panel")
        self.set_class(shown and self.size.width < WIDE, "-panel-over")
        if shown and self._panel is None:
            from ctxchat.tui.widgets.breakdown import Breakdown

            self._panel = Breakdown()
            await self.query_one("#side").mount(self._panel)
        if shown and self._session:
            self.show_figures(self._session.figures)

    def toggle_panel(self) -> None:
        """F2."""
        self._panel_wanted = not self._panel_shown
        self.call_next(self.lay_out_panel)

    def close_panel(self) -> bool:
        """Close what lies over the chat; True when there was something."""
        if self.has_class("-panel-over"):
            self._panel_wanted = None
            self.call_next(self.lay_out_panel)
            return True
        return False

    def on_resize(self) -> None:
        self.call_next(self.lay_out_panel)

    # ── a turn ──

    async def begin(self, what: str) -> None:
        """Work has begun."""
        self._live = Live(self.transcript, show_reasoning=self._show_reasoning)
        self._show_empty()
        await self.query("#banner > *").remove()
        self.key_line.show(BUSY_KEYS)
        await self.transcript.to_end()
        await self._live.wait(what)

    async def end(self, interrupted: bool = False) -> None:
        """Work is over."""
        live, self._live = self._live, None
        self._approvals.clear()
        await self.query(ApprovalPanel).remove()
        if live:
            await live.end(interrupted)
            await self._settle(live)
        self.key_line.show(IDLE_KEYS)
        self._show_empty()
        self.show_header()
        if self._session:
            self.show_figures(self._session.figures)

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
            case TurnStarted():
                await live.user(event.text, stamped.at)
            case TextDelta():
                await live.text(event.text)
            case ReasoningDelta():
                await live.reasoning(event.text)
            case ToolStarted():
                await live.tool_started(event)
            case ToolProgress():
                await live.tool_progress(event.call_id, event.text)
            case ToolFinished():
                await live.tool_finished(event)
            case ApprovalRequested():
                await self._ask(event)
            case ApprovalResolved():
                await self._answered(event.call_id)
            case Usage():
                pass
            case Figures():
                await self._measured(event, live)
            case CompactionStarted():
                await live.wait("making room: what is here stays as it is until that is done")
            case SummaryDelta():
                await live.summary(event.text)
            case CompactionFinished():
                await self._compacted(event, live)
            case CompactionSuggested():
                share = f"The window is {event.pressure:.0%} full."
                self.notice("info", f"{share} Freeing up context would leave {event.after_used:,} tokens (F8).")
            case Retry():
                await live.retry(RetryBlock(event.attempt, event.after_seconds, event.cause))
            case Notice():
                self.notice(event.level, event.text)
            case Failed():
                await live.end()
                await self.transcript.add(ErrorBlock(event.text, event.hint))
            case TurnFinished():
                await live.end(interrupted=event.status == "cancelled")
                if event.status == "max_rounds":
                    self.notice("warning", f"Stopped after {event.rounds} rounds. Send a message to go on.")
            case _:
                assert_never(event)

    async def _measured(self, figures: Figures, live: Live) -> None:
        self.show_figures(figures)
        if self._session and len(self._session.state.ledger.groups) != self._groups:
            await self._settle(live)

    async def _compacted(self, event: CompactionFinished, live: Live) -> None:
        await live.compacted(kept=event.outcome == "compacted")
        if event.outcome == "compacted":
            await self._settle(live)
        else:
            await self.transcript.add(PassLine(event.outcome, event.detail))
        await live.wait("waiting for the model")

    def announce(self, text: str) -> None:
        """Something to know before the first message: above the conversation, until one is sent."""
        self.query_one("#banner").mount(NoticeBlock("warning", text))

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

    # ── approvals ──

    async def _ask(self, request: ApprovalRequested) -> None:
        self._approvals.append(request)
        if len(self._approvals) == 1:
            await self._next_approval()

    async def _next_approval(self) -> None:
        await self.query(ApprovalPanel).remove()
        self.set_class(bool(self._approvals), "-approval")
        if not self._approvals:
            self.key_line.show(BUSY_KEYS if self._live else IDLE_KEYS)
            self.composer.prompt.focus()
            return
        panel = ApprovalPanel(self._approvals[0])
        await self.query_one("#main").mount(panel, before=self.composer)
        self.key_line.show(APPROVAL_KEYS)
        if not self.composer.prompt.text:  # never take the focus from someone who is writing
            panel.focus()

    async def _answered(self, call_id: str) -> None:
        if any(r.call_id == call_id for r in self._approvals):
            self._approvals = [r for r in self._approvals if r.call_id != call_id]
            await self._next_approval()

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        if self._session:
            self._session.answer(event.request.call_id, event.verdict, event.reason)
        self.call_next(self._answered, event.request.call_id)

    def action_tab(self) -> None:
        """To the question that waits, else to the next thing."""
        for panel in self.query(ApprovalPanel):
            if not panel.has_focus_within:
                panel.focus()
                return
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
