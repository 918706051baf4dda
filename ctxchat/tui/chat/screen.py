"""The chat screen: shows one conversation and turns its events into widgets; requests of the person are sent to the app.

Knows a session's values, never how they are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key, Paste
from textual.geometry import Offset
from textual.widget import Widget
from textual.widgets import Input, TextArea

from ctxchat.config.schema import Interface
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    CompactionSuggested,
    Event,
    Failed,
    Level,
    Notice,
    QuestionAsked,
    Retry,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from ctxchat.core.record import CompactionRecord
from ctxchat.presentation.usage_text import break_words
from ctxchat.tools.todo import last_list
from ctxchat.tui.chat.asked import TO_IT
from ctxchat.tui.chat.banner import Banner
from ctxchat.tui.chat.composer import Composer
from ctxchat.tui.chat.edges import BUSY_KEYS, FRESH_KEYS, IDLE_KEYS, OF_PROMPT, Header, HeaderState, KeyLine
from ctxchat.tui.chat.empty_chat import TOUR, EmptyChat, Example
from ctxchat.tui.chat.gauges import Gauges, PrefetchWatch
from ctxchat.tui.chat.outlook_line import OutlookLine
from ctxchat.tui.chat.prompt import Prompt
from ctxchat.tui.chat.questions import QuestionPanel, Questions
from ctxchat.tui.chat.side_panel import SidePanel
from ctxchat.tui.chat.work_line import WorkLine
from ctxchat.tui.commands import Keys
from ctxchat.tui.style.compositor import CroppingCompositor
from ctxchat.tui.transcript.presenter import Growing, TranscriptPresenter
from ctxchat.tui.transcript.todo_lines import items_of
from ctxchat.tui.transcript.transcript import Transcript
from ctxchat.tui.unsent.input_history import InputHistory
from ctxchat.tui.widgets.current_size import CurrentSizeScreen
from ctxchat.tui.widgets.gauge import Gauge

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tui.guide import Guide


RECENT_GROUPS = 400
"""Groups at the end of the record in which the last to-do list is looked for."""


class ChatScreen(CurrentSizeScreen[None]):
    """The screen with header, transcript, context panel, composer, gauge and key line.

    `folder` is the workspace's name, `now` a steadily rising count of seconds.
    """

    BINDINGS = [Binding("tab", "tab", show=False)]

    def __init__(
        self,
        folder: str,
        keys: Keys,
        history: InputHistory,
        *,
        sandboxed: bool,
        now: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(id="chat")
        self._compositor = CroppingCompositor()
        self._sandboxed, self._folder, self._branch = sandboxed, folder, ""
        self.header, self.gauge, self.key_line = Header(), Gauge(id="gauge"), KeyLine(keys)
        self.outlook, self.work = OutlookLine(), WorkLine()
        self.transcript, self.composer = Transcript(), Composer(keys, history)
        self.empty, self.banner = EmptyChat(folder, keys), Banner()
        self.questions, self.side = Questions(now), SidePanel()
        self.gauges = Gauges(self.gauge, self.outlook, self.composer, self.side)
        self.gauges.use_keys(keys)
        self.transcript.use_keys(keys)
        self.questions.use_keys(keys)
        self._keys = keys
        self._prefetch_watch = PrefetchWatch(self, self.gauges.show_again)
        self.presenter = TranscriptPresenter(self.transcript)
        self.guide: Guide | None = None  # the tour's instructions, during a tour
        self._session: Session | None = None
        self._begun = False  # a turn or compaction has run since the session was shown
        self._after: list[tuple[Level, str]] = []  # notices to show when the turn ends
        self._away = False  # in this turn the model could not be reached, or its key is missing or refused
        self._retrying = False  # the last event of this turn was a retry of a request

    def on_screen_suspend(self) -> None:
        if self.guide:
            self.guide.advance()

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Like Textual's, except that the transcript itself looks up which text is at a position."""
        widget, offset = super().get_widget_and_offset_at(x, y)
        if widget is self.transcript:
            pane = self.transcript.content_region
            x, y = (x, y) if y < pane.bottom else pane.bottom_right_inclusive
            offset = self.transcript.text_at(x - pane.x, y - pane.y)
        return widget, offset

    def compose(self) -> ComposeResult:
        yield self.header
        with Horizontal(id="body"):
            with Vertical(id="main"):
                yield self.banner
                yield self.empty
                yield self.transcript
                yield self.work
                yield self.questions
                if self.guide:
                    yield self.guide
                yield self.composer
            yield self.side
        yield self.gauge
        yield self.outlook
        yield self.key_line

    def on_mount(self) -> None:
        self.composer.prompt.focus()
        self.key_line.show_keys(IDLE_KEYS)

    def on_key(self, event: Key) -> None:
        """Send letters to the composer, unless they have a meaning where the focus is; before anything has the focus, all keys.
        The scroll keys scroll the conversation, where the focused widget did not use them."""
        if self.composer.prompt.scroll(event.key):  # comes here only while another widget has the focus
            event.stop()
            return
        early = self.focused in (None, self.composer.prompt)  # the key was sent while nothing had the focus
        if early and self.composer.prompt.type_key(event):
            event.stop()
            self.screen.set_focus(self.composer.prompt)  # at once: the next letter may be on its way
            return
        letter = event.character if event.is_printable else None
        if letter and event.key not in self.active_bindings and not isinstance(self.focused, Input):
            event.stop()
            earlier_letters = self.questions.take_back()
            self.screen.set_focus(self.composer.prompt)  # at once: the next letter may be on its way
            self.composer.prompt.insert(earlier_letters + letter)

    async def on_paste(self, event: Paste) -> None:
        """Send a paste to the composer, unless a text field has the focus."""
        if isinstance(self.focused, Input | TextArea):
            return
        event.stop()
        self.screen.set_focus(self.composer.prompt)
        await self.composer.prompt._on_paste(event)

    def use_keys(self, keys: Keys) -> None:
        """Use this key table from now on."""
        self._keys = keys
        self.composer.prompt.use_keys(keys)
        self.gauges.use_keys(keys)
        self.transcript.use_keys(keys)
        self.questions.use_keys(keys)
        self.empty.use_keys(keys)
        self.key_line.use_keys(keys)

    def follow(self, settings: Interface, soft_mark: float) -> None:
        """Apply settings, at the start and when they were edited. `soft_mark` is the share of the limit from which a summary is
        prepared, 0 for never."""
        self.composer.prompt.edit_by(settings.editing)
        self.presenter.show_reasoning, self._prefetch_watch.soft_mark = settings.show_reasoning, soft_mark

    # ── the session ──

    async def show_session(self, session: Session) -> None:
        """Show another conversation; the draft stays in the editor."""
        if self._session:
            self.banner.clear()
        self._session, self._begun = session, False
        self.gauges.belong_to(session)
        approvals = session.permissions
        self.composer.belongs_to(
            session.attachments, lambda access_request: approvals.judge("read_file", access_request).verdict
        )
        self.composer.prompt.prompts = lambda: session.setup.prompts
        await self.questions.belongs_to(session)
        self.presenter.show_session(session)
        self._show_all(session)
        self.banner.only("session", session.notices)
        for text in session.notices:
            self.announce(text, about="session")
        if session.read_only:
            self.banner.offer(f"{session.read_only} You can read here; nothing can be sent.")

    async def refresh_session(self) -> None:
        """Show the record again, where it or its changes may differ from what is on screen; not during a turn."""
        if self._session and not self.presenter.running:
            self.presenter.update_record()
            self._show_all(self._session)

    def _show_all(self, session: Session) -> None:
        self._show_empty()
        self.show_header()
        self.show_figures(session.context_usage)
        self._show_keys()

    def _show_empty(self) -> None:
        self.set_class(self.presenter.empty and not self.composer.queued.drafts, "-empty")

    def show_header(self) -> None:
        """Update folder, title, model and permission mode. The mode is shown in the composer's border, or in the header where the
        window is too low for a border."""
        low = self.has_class("-short") or self.has_class("-tiny")
        if session := self._session:
            self.composer.show_mode(session.permissions.mode, self._keys)
            heading = HeaderState(
                folder=self._folder,
                branch=self._branch,
                title=session.state.title,
                model=session.context_usage.model,
                mode=session.permissions.mode if low else "",
                sandboxed=self._sandboxed,
                read_only=bool(session.read_only),
                agent=session.setup.agent,
                effort=session.setup.effort,
            )
            self.header.show_state(heading)

    def show_branch(self, branch: str) -> None:
        """Show the workspace's git branch, which each turn may change."""
        self._branch = branch
        self.show_header()

    def show_figures(self, context_usage: ContextUsage) -> None:
        """Update the gauge and the context panel, the draft included, and a suggested compaction."""
        self.gauges.show_usage(context_usage)
        self.questions.keep_up(context_usage)

    # ── the context panel ──

    def on_side_panel_changed(self, event: SidePanel.Changed) -> None:
        event.stop()
        self._show_keys()
        if self.side.is_shown:
            self.gauges.show_again()

    def on_resize(self) -> None:
        self.call_next(self.side.lay_out, self.size.width)
        self.questions.take_room()
        self.call_after_refresh(self.show_header)
        self.call_after_refresh(self._show_keys)

    # ── a turn ──

    async def begin_work(self, what: str) -> None:
        """Show that a turn or compaction has begun; `what` is the text of the work line."""
        self._begun, self._away, self._retrying = True, False, False
        self.remove_class("-empty")
        self.banner.clear()
        await self.questions.choose_no_model()
        self._prefetch_watch.stop()
        self.presenter.begin_work(what)
        if self._session:
            self.work.show_items(last_list(self._session.state.ledger.groups[-RECENT_GROUPS:]))
        self._show_keys()

    async def end(self, interrupted: bool = False) -> None:
        """Show that the turn or compaction has ended, and ask how to go on where it could not finish."""
        await self.questions.no_calls()
        self.remove_class("-approval")
        self.work.show_items(())
        self.presenter.end(interrupted)
        notices, self._after = self._after, []
        for level, text in notices:
            self.presenter.notice(level, text)
        self._show_keys()
        if self._session:
            self._show_all(self._session)
            self._prefetch_watch.start(self._session)
            if self._away or (interrupted and self._retrying and await self._session.setup.unreached()):
                await self.unreached(self._session, waiting=True)
            if limit := self._session.spending.reached:
                await self.questions.stopped_by(limit)

    async def show_event(self, event: Event) -> None:
        """Show an event of the turn, except for text that grows in the transcript, which the presenter shows."""
        match event:
            case ApprovalRequested() | QuestionAsked():
                await self.questions.ask(event)
            case ApprovalResolved() | ToolFinished():
                await self.questions.answered(event.call_id)  # a call that has ended needs no answer
            case ToolStarted():
                if (items := items_of(event.name, event.arguments)) is not None:
                    self.work.show_items(items)
            case ContextUsage():
                self.show_figures(event)
                self.show_header()  # the model may have changed
                self.presenter.catch_up()
            case CompactionSuggested():
                await self.questions.suggest(event)
            case CompactionRecord():
                if event.outcome == "compacted":
                    await self.questions.unsuggest()
                self.presenter.compacted(event)
            case Notice():
                self.presenter.notice(event.level, event.text)
            case TurnFinished():
                self.presenter.close_turn(interrupted=event.status == "cancelled")
            case Failed():
                self._away = event.kind in ("connection", "auth")
            case _:
                pass
        if isinstance(event, Growing):
            self._retrying = isinstance(event, Retry)

    def announce(self, text: str, level: Level = "warning", about: str = "", *, above: bool = False) -> None:
        """Show a notice that matters before the next message. Until a message is sent it is in the banner above the conversation;
        later in the conversation, after the running turn, or `above` its question. Notices `about` a subject are shown once while
        they apply."""
        if self.banner.add_notice(text, level, about, shown=not self._begun) and self._begun:
            if above:
                self.presenter.notice_above(level, text)
            elif self.presenter.running:
                self._after.append((level, text))
            else:
                self.presenter.notice(level, text)

    def no_model(self, note: str) -> None:
        """Say that the offline assistant answers: below the examples of an empty chat where there is room, else as a warning."""
        room = (self.has_class("-tall") or self.has_class("-high")) and not self.has_class("-narrow")
        if self._begun or not self.presenter.empty or not room:
            self.announce(note, about="model", above=True)
        elif self.banner.add_notice(note, "warning", "model", shown=False):
            self.empty.say(note)

    def has_model(self) -> None:
        """Remove the note that the offline assistant answers."""
        self.banner.only("model", ())
        self.empty.say("")

    def notice(self, level: Level, text: str) -> None:
        """Add the response to a person's action at the end of the transcript, and scroll there."""
        self.remove_class("-empty")
        self.presenter.notice(level, text)
        self.transcript.to_end()

    def failed(self, text: str, hint: str = "") -> None:
        """Add an error to the end of the transcript, with a `hint` at its remedy, and scroll there."""
        self.remove_class("-empty")
        self.presenter.failed(text, hint)
        self.transcript.to_end()

    def changed(self, context_usage: ContextUsage, text: str) -> None:
        """Show a change made by hand, and what it costs with the next message where it breaks the cache."""
        text = " ".join(filter(None, (text, break_words(context_usage))))
        self.show_figures(context_usage)
        self.call_next(self.refresh_session)
        self.call_next(
            self.notice, "info", text
        )  # last: a compaction mark that is added or removed redraws the transcript

    def on_transcript_unread(self, event: Transcript.Unread) -> None:
        event.stop()
        self.work.show_unread(event.lines)

    def on_work_line_pressed(self, event: WorkLine.Pressed) -> None:
        event.stop()
        self.transcript.to_end()

    # ── questions ──

    async def unreached(self, session: Session, *, waiting: bool) -> None:
        """Ask how to go on where the session's model cannot be reached. `waiting`: a message has no answer yet."""
        await self.questions.unreached(session.context_usage.model, session.setup.address, waiting=waiting)

    def on_questions_changed(self, event: Questions.Changed) -> None:
        event.stop()
        panel = event.asking
        self.set_class(panel is not None, "-approval")
        self.questions.take_room()  # the question's line of keys may have appeared or disappeared
        if panel is None or (panel.held and self.focused is None):
            self.composer.prompt.focus()
        elif isinstance(panel, QuestionPanel) and panel.server:
            self.composer.prompt.focus()  # Enter would accept the server's request: only `tab` moves the focus to it
        elif self.focused in (None, self.composer.prompt) and not self.composer.prompt.text and not panel.held:
            panel.focus()  # no draft is being written
        self.call_after_refresh(self._show_keys)

    def on_questions_resized(self) -> None:
        self.call_after_refresh(self._show_keys)

    def on_descendant_focus(self) -> None:
        """Update the key line: which keys work depends on the focused widget."""
        self.call_after_refresh(self._show_keys)

    def on_composer_keys_changed(self, event: Composer.KeysChanged) -> None:
        event.stop()
        self.call_after_refresh(self._show_keys)

    def on_transcript_keys_changed(self, event: Transcript.KeysChanged) -> None:
        event.stop()
        self.call_after_refresh(self._show_keys)

    def _show_keys(self) -> None:
        """Update the key line to the keys that work now. A key that begins with `=` is shown as it is; others are action ids."""
        keys = BUSY_KEYS if self.presenter.running else FRESH_KEYS if self._just_compacted else IDLE_KEYS
        if self.side.covers_chat:  # esc closes it before it stops anything
            keys = (("interrupt", "back"), *(pair for pair in keys if pair[0] not in ("interrupt", "context")))
        if not self.questions.says_tab:
            keys = (TO_IT, *keys)
        own = [(f"={key}", words) for key, words in getattr(self.focused, "key_words", ())]
        if self.focused not in (None, self.composer.prompt):
            keys = (*own, ("=tab", "next"), *(pair for pair in keys if pair[0] not in OF_PROMPT))
        elif own:  # the completion list is open
            replaced = {"interrupt", *(["send", "send_later"] if own[0][0] == "=enter" else [])}
            keys = (*own, *(pair for pair in keys if pair[0] not in replaced))
        self.key_line.show_keys(self.questions.keys or keys)

    @property
    def _just_compacted(self) -> bool:
        """Whether a compaction is the last thing in the record, so that undo would take back nothing else."""
        state = self._session.state if self._session else None
        if state is None or not state.ledger.changes or not state.ledger.groups:
            return False
        last = state.ledger.changes[-1]
        return last.kind == "compaction" and last.at >= state.ledger.groups[-1].messages[-1].at

    def tell_page(self, session_id: str) -> None:
        """In a browser: tell the page which session to open again after a reload."""
        if write_meta := getattr(self.app._driver, "write_meta", None):
            write_meta({"type": "session", "id": session_id})

    def action_copy_text(self) -> None:
        """Copy the selected text and show a notification."""
        super().action_copy_text()
        self.notify("Copied.", timeout=3)

    def action_tab(self) -> None:
        """Move the focus to the first of these there is: a waiting question, an attachment, an example question, the next
        widget."""
        if self.questions.focus_next_question() or self.composer.focus_attached():
            return
        if not (self.composer.prompt.has_focus and self.empty.focus_example()):
            self.focus_next()

    # ── the draft ──

    def on_composer_changed(self, event: Composer.Changed) -> None:
        event.stop()
        self.gauges.show_again()
        self.call_after_refresh(self.questions.give_way)
        if self.composer.parts:
            self.run_worker(self.gauges.count_draft, group="count", exclusive=True, exit_on_error=False)

    def on_prompt_scrolled(self, event: Prompt.Scrolled) -> None:
        event.stop()
        if event.pages < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)

    async def on_example_pressed(self, event: Example.Pressed) -> None:
        event.stop()
        self.composer.prompt.focus()  # the examples disappear as soon as a message is sent
        if event.command == TOUR:
            await self.app.run_action("app.tour")
        elif event.command:
            await self.app.run_action(f"app.command('{event.command}')")
        else:
            self.composer.set_draft(event.text)
