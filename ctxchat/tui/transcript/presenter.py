"""Keeps the transcript in step with one session: with its record, and during a turn with each event.

Knows only the transcript; what lies around it (gauge, header, questions) is for the chat screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    CompactionStarted,
    Delegated,
    Failed,
    FilesChanged,
    Level,
    QuestionAsked,
    ReasoningDelta,
    Retry,
    Steered,
    SummaryDelta,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from ctxchat.core.ledger import open_end
from ctxchat.core.record import CompactionRecord
from ctxchat.presentation.history import Shown, items, last_answer
from ctxchat.presentation.inventory import weighed
from ctxchat.tui.transcript.blocks import (
    Block,
    ErrorBlock,
    NoticeBlock,
    ReplyBlock,
    RetryBlock,
    ThinkingBlock,
    UserBlock,
    Waiting,
)
from ctxchat.tui.transcript.tool_block import ToolBlock
from ctxchat.tui.transcript.transcript import Transcript

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

WAITING = "waiting for the model"

LEVELS: Mapping[str, Level] = {"failed": "error", "rejected": "warning"}
"""The level of the notice about a compaction that changed nothing, by its outcome; `info` for others."""

Growing = (
    TurnStarted
    | Steered
    | TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolProgress
    | ApprovalRequested
    | QuestionAsked
    | ApprovalResolved
    | ToolFinished
    | FilesChanged
    | Delegated
    | CompactionStarted
    | SummaryDelta
    | Retry
    | Failed
)
"""The events that `LiveTurn` shows in the transcript; all others are for the chat screen."""

MAKING_ROOM = "making room: what is here stays as it is until that is done"


class LiveTurn:
    """Shows one running turn in the transcript, block by block, and remembers which blocks it added for which part of the
    turn."""

    def __init__(self, transcript: Transcript, *, show_reasoning: bool = False) -> None:
        self._transcript = transcript
        self._show_reasoning = show_reasoning
        self._reply: ReplyBlock | None = None
        self._thinking: ThinkingBlock | None = None
        self._tools: dict[str, ToolBlock] = {}
        self._summary: ThinkingBlock | None = None
        self._retry: RetryBlock | None = None
        self._waiting: Waiting | None = None
        self._user_blocks: list[Block] = []  # messages of the person that no item of the record shows yet
        self._rounds: list[list[Block]] = []  # blocks of each answer of the model, with its calls
        self._starts_round = True  # the next text or reasoning begins a new round

    def show_event(self, event: Growing, at: str) -> None:
        """Show one event of the turn; `at` is when it happened."""
        match event:
            case TurnStarted(resumed=True):
                self.wait(WAITING)
            case TurnStarted() | Steered():
                self._end_waiting()
                message = UserBlock(event.text, at, attached=event.attachments)
                self._user_blocks.append(message)
                self._transcript.add_block(message)
                self.wait(WAITING)
            case TextDelta():
                delta = event.text if self._reply else event.text.lstrip()
                if delta and self._reply is None:
                    self._end_thinking()
                    self._reply = ReplyBlock(streaming=True)
                    self._add(self._reply, opens_round=True)
                if self._reply:
                    self._reply.append_text(delta)
            case ReasoningDelta():
                if self._thinking is None:
                    self._end_reply()
                    self._thinking = ThinkingBlock(streaming=True, unfolded=self._show_reasoning)
                    self._add(self._thinking, opens_round=True)
                self._thinking.append_text(event.text)
            case ToolStarted():
                if event.call_id not in self._tools:
                    self._tools[event.call_id] = ToolBlock(event.call_id, event.name, event.arguments)
                    self._add_call(self._tools[event.call_id])
            case ToolProgress(call_id=call_id):
                if block := self._tools.get(call_id):
                    block.progress(event.text)
            case ApprovalRequested() | QuestionAsked() | ApprovalResolved():
                self._end_thinking()
                self._end_reply()  # while a person is asked, no spinner runs
                if block := self._tools.get(event.call_id):
                    block.ask(not isinstance(event, ApprovalResolved))
            case ToolFinished():
                self._finished(event)
            case FilesChanged(call_id=call_id):
                if block := self._tools.get(call_id):
                    block.touched(event.changes)
            case Delegated(call_id=call_id):
                if block := self._tools.get(call_id):
                    block.delegated(event)
            case CompactionStarted():
                self.wait(MAKING_ROOM)
            case SummaryDelta():
                if self._summary is None:
                    self._summary = ThinkingBlock(streaming=True, words=("writing the summary", "summary"))
                    self._transcript.add_block(
                        self._summary, before=self._waiting
                    )  # the wait goes on counting below it
                self._summary.append_text(event.text)
            case Retry():
                block = RetryBlock(event.attempt, event.after_seconds, event.cause)
                if self._retry and self._retry.cause == block.cause:  # one line for all attempts with the same cause
                    self._transcript.discard(self._retry)
                    self._retry = None
                self._end_waiting()
                self._retry = block
                self._transcript.add_block(block)
            case Failed():
                self._end_waiting()
                self.end(interrupted=True)  # a reply that had not ended is cut off
                self._transcript.add_block(ErrorBlock(event.text, event.hint))
            case _:
                assert_never(event)

    def wait(self, what: str) -> None:
        """Show that the turn waits, as there is nothing (more) to show: `what` says for what."""
        if self._waiting and self._waiting.what == what:
            return
        self._end_waiting()
        self._waiting = Waiting(what)
        self._transcript.add_block(self._waiting)

    def _end_waiting(self) -> None:
        """Remove the wait and close the retry, as something arrived."""
        if self._retry:
            self._retry.end_retry()
            self._retry = None
        if self._waiting:
            waiting, self._waiting = self._waiting, None
            self._transcript.discard(waiting)

    def _add(self, block: Block, *, opens_round: bool) -> None:
        """Add a block to the current round; with `opens_round` to a new one if calls have ended since."""
        self._end_waiting()
        if not self._rounds or (opens_round and self._starts_round):
            self._rounds.append([])
            self._starts_round = False
        self._rounds[-1].append(block)
        self._transcript.add_block(block)

    def compacted(self, kept: bool) -> None:
        """End the text of the summary. It is removed if it was `kept`, as the archive has it; else it stays."""
        if self._summary:
            block, self._summary = self._summary, None
            if kept:
                self._transcript.discard(block)
            else:
                block.finish()

    def _add_call(self, block: ToolBlock) -> None:
        self._end_thinking()
        self._end_reply()
        self._add(block, opens_round=False)

    def _finished(self, event: ToolFinished) -> None:
        """Show that a call is over. A call that never started (denied, broken arguments) gets its block only now."""
        block = self._tools.pop(event.call_id, None)
        if block:
            block.finish(event)
        else:
            self._add_call(ToolBlock(event.call_id, event.name, {}, event))
        self._starts_round = True
        if not self._tools:
            self.wait(WAITING)

    def _end_thinking(self) -> None:
        if self._thinking:
            thinking, self._thinking = self._thinking, None
            thinking.finish()

    def _end_reply(self, interrupted: bool = False) -> None:
        if self._reply:
            reply, self._reply = self._reply, None
            reply.finish(interrupted)

    def end(self, interrupted: bool = False) -> None:
        """End every block that still moves: the turn is over. `interrupted`: it was stopped, or it failed."""
        if interrupted and self._retry:
            self._retry.end_retry(stopped=True)
            self._retry = None
        self._end_waiting()
        self.compacted(kept=False)
        self._end_thinking()
        self._end_reply(interrupted)
        for block in self._tools.values():
            block.stop()
        self._tools.clear()

    def places(self, fresh: Sequence[Shown]) -> dict[str, list[Block]]:
        """The blocks of this turn that show the new items of the record, by the items' keys. Messages of the person and rounds
        are each matched in the order in which they came; a block is handed out once."""
        places: dict[str, list[Block]] = {}
        rounds = iter(self._rounds)
        for shown in fresh:
            kind = shown.group.kind if shown.group else ""
            if kind == "user" and self._user_blocks:
                places[shown.key] = [self._user_blocks.pop(0)]
            elif kind in {"reply", "round"} and (blocks := next(rounds, None)) is not None:
                places[shown.key] = blocks
        self._rounds = list(rounds)
        return places


class TranscriptPresenter:
    """Shows one session at a time in the transcript, and at most one running turn."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript, self.show_reasoning = transcript, False
        self._session: Session | None = None
        self.live: LiveTurn | None = None  # while work is under way
        self._groups = 0  # groups of the ledger when the record was last shown
        self._has_notice = False  # a notice or an error is shown, even if the record is empty
        self._failure_notice: NoticeBlock | None = (
            None  # that a compaction changed nothing; None once another notice followed
        )

    @property
    def running(self) -> bool:
        """Whether a turn or a compaction is under way."""
        return self.live is not None

    @property
    def empty(self) -> bool:
        """Whether the transcript has nothing to read yet."""
        return not (self._transcript.items or self.running or self._has_notice)

    # ── the record ──

    def show_session(self, session: Session) -> None:
        """Show another session, from its record."""
        self._session, self.live, self._has_notice = session, None, False
        shown = items(session.state.ledger, session.state.checkpoints)
        self._groups = len(session.state.ledger.groups)
        self._transcript.show_record(shown, _tokens(session))
        self._offer_to_go_on()

    def update_record(self) -> None:
        """Show the record as it is now; blocks of the turn become those of the items that they show."""
        if (session := self._session) is None:
            return
        shown = items(session.state.ledger, session.state.checkpoints)
        places = self.live.places(shown[len(self._transcript.items) :]) if self.live else {}
        self._transcript.extend_record(shown, _tokens(session), places)
        self._groups = len(session.state.ledger.groups)

    def refresh_tokens(self) -> None:
        """Show the tokens of each message anew, as they were measured since. Nothing while work is under way."""
        if self._session and not self.running:
            self._transcript.set_tokens(_tokens(self._session))

    def catch_up(self) -> None:
        """Update the record if its number of groups has changed since it was shown."""
        if self._session and len(self._session.state.ledger.groups) != self._groups:
            self.update_record()

    def last_answer(self) -> str:
        """The newest answer as it is on screen or, if it was continued, whole from the record; empty if there is none."""
        shown = self._transcript.last_answer()
        whole = last_answer(self._session.state.ledger) if self._session else ""
        return whole if whole.endswith(shown) else shown  # on screen an answer that was continued is two blocks

    # ── a turn ──

    def begin_work(self, what: str) -> None:
        """Start to show a turn or a compaction, at the end of the transcript; `what` says what is waited for."""
        self.live = LiveTurn(self._transcript, show_reasoning=self.show_reasoning)
        self._offer_to_go_on()
        self._transcript.get_ready()
        self._transcript.to_end()
        self.live.wait(what)

    def compacted(self, event: CompactionRecord) -> None:
        """Show the end of a compaction: the changed record, or a notice if nothing was changed."""
        if self.live is None:
            return
        self.live.compacted(kept=event.outcome == "compacted")
        if event.outcome == "compacted":
            self.update_record()
        else:
            self._failure_notice = NoticeBlock(LEVELS.get(event.outcome, "info"), event.detail or event.outcome)
            self._transcript.add_block(self._failure_notice)
        self.live.wait(WAITING)

    def close_turn(self, interrupted: bool) -> None:
        """End every block that still moves: no more events of the turn will come."""
        if self.live:
            self.live.end(interrupted)

    def end(self, interrupted: bool) -> None:
        """End the turn or compaction, however it ended, and show the record."""
        self.close_turn(interrupted)
        self.update_record()
        self.live = None
        end = open_end(self._session.state.ledger) if self._session and interrupted else None
        if end is not None and end.kind != "reply":
            self.notice("info", "Stopped. /continue goes on from here.")
        self._offer_to_go_on()

    def _offer_to_go_on(self) -> None:
        """Say below an interrupted reply at the end that /continue goes on from it, unless work is under way."""
        end = open_end(self._session.state.ledger) if self._session and not self.running else None
        self._transcript.offer_to_go_on(end is not None and end.kind == "reply")

    # ── notices and errors ──

    def notice(self, level: Level, text: str) -> None:
        """Add a notice at the end."""
        self._has_notice = True
        failure, self._failure_notice = self._failure_notice, None
        if failure and text.startswith(failure.text):  # the new one says the same, and when the next attempt is
            self._transcript.discard(failure)
        self._transcript.add_block(NoticeBlock(level, text))

    def notice_above(self, level: Level, text: str) -> None:
        """Add a notice before the person's newest message, so that the answer to that stays in sight."""
        self._transcript.add_above(NoticeBlock(level, text))

    def add_block(self, block: Block) -> None:
        """Add a block for something a person did beside the conversation, and scroll to it."""
        self._has_notice = True
        self._transcript.add_block(block)
        self._transcript.to_end()

    def failed(self, text: str, hint: str = "") -> None:
        """Add an error: something that a person asked for did not work."""
        self._has_notice = True
        self._transcript.add_block(ErrorBlock(text, hint))


def _tokens(session: Session) -> dict[int | tuple[int, int], int]:
    """The tokens of each message in the view by its `seq`, and of each of its parts by `seq` and index."""
    view = session.view
    tokens: dict[int | tuple[int, int], int] = {}
    for item, held in zip(view.items, weighed(view, session.context_usage), strict=True):
        if not item.group:
            continue
        tokens[item.message.seq] = held
        parts = item.message.content
        for index, part in enumerate(parts if isinstance(parts, tuple) else ()):
            tokens[item.message.seq, index] = round(session.attachments.count_tokens(part) * held / max(1, item.tokens))
    return tokens
