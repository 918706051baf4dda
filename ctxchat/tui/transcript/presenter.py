"""Keeps the transcript in step with one session: its record, and on top of it the turn in progress, event by event.

Knows nothing of what lies around the transcript; what stands outside of a turn (gauge, header, questions) is the chat screen's.
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
"""How a compaction that changed nothing is told, by its outcome."""


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
"""What grows in the transcript; all other events are the chat screen's."""

MAKING_ROOM = "making room: what is here stays as it is until that is done"


class LiveTurn:
    """One turn while it runs."""

    def __init__(self, transcript: Transcript, *, show_reasoning: bool = False) -> None:
        self._transcript = transcript
        self._show_reasoning = show_reasoning
        self._reply: ReplyBlock | None = None
        self._thinking: ThinkingBlock | None = None
        self._tools: dict[str, ToolBlock] = {}
        self._summary: ThinkingBlock | None = None
        self._retry: RetryBlock | None = None
        self._waiting: Waiting | None = None
        self._said: list[Block] = []
        self._rounds: list[list[Block]] = []
        self._fresh_round = True

    def show_event(self, event: Growing, at: str) -> None:
        """One event of the turn, and when it came about."""
        match event:
            case TurnStarted(resumed=True):
                self.wait(WAITING)
            case TurnStarted() | Steered():
                self._arrived()
                said = UserBlock(event.text, at, attached=event.attachments)
                self._said.append(said)
                self._transcript.add_block(said)
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
                self._end_reply()  # it is the person's turn, and nothing moves
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
                    )  # whose seconds go on counting below it
                self._summary.append_text(event.text)
            case Retry():
                block = RetryBlock(event.attempt, event.after_seconds, event.cause)
                if self._retry and self._retry.cause == block.cause:  # one line, however often for the same cause
                    self._transcript.discard(self._retry)
                    self._retry = None
                self._arrived()
                self._retry = block
                self._transcript.add_block(block)
            case Failed():
                self._arrived()
                self.end(interrupted=True)  # a reply that was still growing is a half one
                self._transcript.add_block(ErrorBlock(event.text, event.hint))
            case _:
                assert_never(event)

    def wait(self, what: str) -> None:
        """Nothing to show yet, or not any more."""
        if self._waiting and self._waiting.what == what:
            return
        self._arrived()
        self._waiting = Waiting(what)
        self._transcript.add_block(self._waiting)

    def _arrived(self) -> None:
        if self._retry:
            self._retry.end_retry()
            self._retry = None
        if self._waiting:
            waiting, self._waiting = self._waiting, None
            self._transcript.discard(waiting)

    def _add(self, block: Block, *, opens_round: bool) -> None:
        self._arrived()
        if not self._rounds or (opens_round and self._fresh_round):
            self._rounds.append([])
            self._fresh_round = False
        self._rounds[-1].append(block)
        self._transcript.add_block(block)

    def compacted(self, kept: bool) -> None:
        """The compaction is over; the summary is in the archive when it was `kept`."""
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
        """A call is over. One that never started (denied, broken arguments) gets its line now."""
        block = self._tools.pop(event.call_id, None)
        if block:
            block.finish(event)
        else:
            self._add_call(ToolBlock(event.call_id, event.name, {}, event))
        self._fresh_round = True
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
        """The turn is over, whatever came of it."""
        if interrupted and self._retry:
            self._retry.end_retry(stopped=True)
            self._retry = None
        self._arrived()
        self.compacted(kept=False)
        self._end_thinking()
        self._end_reply(interrupted)
        for block in self._tools.values():
            block.stop()
        self._tools.clear()

    def places(self, fresh: Sequence[Shown]) -> dict[str, list[Block]]:
        """Which of the turn's blocks stand for which new item of the record: the message first, then round by round."""
        places: dict[str, list[Block]] = {}
        rounds = iter(self._rounds)
        for shown in fresh:
            kind = shown.group.kind if shown.group else ""
            if kind == "user" and self._said:
                places[shown.key] = [self._said.pop(0)]
            elif kind in {"reply", "round"} and (mine := next(rounds, None)) is not None:
                places[shown.key] = mine
        self._rounds = list(rounds)
        return places


class TranscriptPresenter:
    """One session at a time, one turn at a time."""

    def __init__(self, transcript: Transcript, *, show_reasoning: bool) -> None:
        self._transcript, self.show_reasoning = transcript, show_reasoning
        self._session: Session | None = None
        self.live: LiveTurn | None = None  # while work is under way
        self._groups = 0
        self._told = False  # a word of ours stands there
        self._in_vain: NoticeBlock | None = None  # the newest word here is that a compaction came to nothing

    @property
    def running(self) -> bool:
        """A turn or a compaction is under way."""
        return self.live is not None

    @property
    def empty(self) -> bool:
        """There is nothing to read yet."""
        return not (self._transcript.items or self.running or self._told)

    # ── the record ──

    def show_session(self, session: Session) -> None:
        """Another session, from its record."""
        self._session, self.live, self._told = session, None, False
        shown = items(session.state.ledger, session.state.checkpoints)
        self._groups = len(session.state.ledger.groups)
        self._transcript.show_record(shown, _tokens(session))
        self._offer_to_go_on()

    def update_record(self) -> None:
        """What the record holds by now takes the place of what grew; changes in force are drawn."""
        if (session := self._session) is None:
            return
        shown = items(session.state.ledger, session.state.checkpoints)
        places = self.live.places(shown[len(self._transcript.items) :]) if self.live else {}
        self._transcript.extend_record(shown, _tokens(session), places)
        self._groups = len(session.state.ledger.groups)

    def refresh_tokens(self) -> None:
        """What was shown before anything was measured says its tokens now."""
        if self._session and not self.running:
            self._transcript.set_tokens(_tokens(self._session))

    def catch_up(self) -> None:
        """As `update_record`, where the record has more groups than are shown."""
        if self._session and len(self._session.state.ledger.groups) != self._groups:
            self.update_record()

    def last_answer(self) -> str:
        """The newest answer: on screen, else in the record."""
        shown = self._transcript.last_answer()
        whole = last_answer(self._session.state.ledger) if self._session else ""
        return whole if whole.endswith(shown) else shown  # what was gone on with is one answer, in the record

    # ── a turn ──

    def begin_work(self, what: str) -> None:
        """Work has begun."""
        self.live = LiveTurn(self._transcript, show_reasoning=self.show_reasoning)
        self._offer_to_go_on()
        self._transcript.get_ready()
        self._transcript.to_end()
        self.live.wait(what)

    def compacted(self, event: CompactionRecord) -> None:
        """A compaction is over."""
        if self.live is None:
            return
        self.live.compacted(kept=event.outcome == "compacted")
        if event.outcome == "compacted":
            self.update_record()
        else:
            self._in_vain = NoticeBlock(LEVELS.get(event.outcome, "info"), event.detail or event.outcome)
            self._transcript.add_block(self._in_vain)
        self.live.wait(WAITING)

    def close_turn(self, interrupted: bool) -> None:
        """The last word of the turn was said; what still grows stands as it is."""
        if self.live:
            self.live.end(interrupted)

    def end(self, interrupted: bool) -> None:
        """Work is over, whatever came of it."""
        self.close_turn(interrupted)
        self.update_record()
        self.live = None
        end = open_end(self._session.state.ledger) if self._session and interrupted else None
        if end is not None and end.kind != "reply":
            self.notice("info", "Stopped. /continue goes on from here.")
        self._offer_to_go_on()

    def _offer_to_go_on(self) -> None:
        """A half reply at the end can be gone on with, once nothing runs."""
        end = open_end(self._session.state.ledger) if self._session and not self.running else None
        self._transcript.offer_to_go_on(end is not None and end.kind == "reply")

    # ── words of ours ──

    def notice(self, level: Level, text: str) -> None:
        """A sentence at the end."""
        self._told = True
        line, self._in_vain = self._in_vain, None
        if line and text.startswith(line.text):  # it says the same, and when the next try is
            self._transcript.discard(line)
        self._transcript.add_block(NoticeBlock(level, text))

    def notice_above(self, level: Level, text: str) -> None:
        """A sentence before the newest message, so that its answer stays in sight."""
        self._transcript.add_above(NoticeBlock(level, text))

    def add_block(self, block: Block) -> None:
        """Something a person did beside the conversation, at the end and in sight."""
        self._told = True
        self._transcript.add_block(block)
        self._transcript.to_end()

    def failed(self, text: str, hint: str = "") -> None:
        """Something a person asked for did not work."""
        self._told = True
        self._transcript.add_block(ErrorBlock(text, hint))


def _tokens(session: Session) -> dict[int | tuple[int, int], int]:
    view = session.view
    tokens: dict[int | tuple[int, int], int] = {}
    for item, held in zip(view.items, weighed(view, session.context_usage), strict=True):
        if not item.group:
            continue
        tokens[item.message.seq] = held
        parts = item.message.content
        for place, part in enumerate(parts if isinstance(parts, tuple) else ()):
            tokens[item.message.seq, place] = round(session.attachments.count_tokens(part) * held / max(1, item.tokens))
    return tokens
