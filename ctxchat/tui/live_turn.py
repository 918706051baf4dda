"""The turn in progress, from events to blocks in the transcript. Owns what is still growing, until the turn is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    CompactionStarted,
    Delegated,
    Failed,
    FilesChanged,
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
from ctxchat.tui.reading.history import Shown
from ctxchat.tui.transcript.block import Block, ErrorBlock, RetryBlock, UserBlock, Waiting
from ctxchat.tui.transcript.fold import ThinkingBlock
from ctxchat.tui.transcript.reply import ReplyBlock
from ctxchat.tui.transcript.tool_block import ToolBlock
from ctxchat.tui.transcript.transcript import Transcript

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

    def take(self, event: Growing, at: str) -> None:
        """One event of the turn, and when it came about."""
        match event:
            case TurnStarted(resumed=True):
                self.wait("waiting for the model")
            case TurnStarted() | Steered():
                self.user(event, at)
            case TextDelta():
                self.text(event.text)
            case ReasoningDelta():
                self.reasoning(event.text)
            case ToolStarted():
                self.tool_started(event)
            case ToolProgress():
                self.tool_progress(event.call_id, event.text)
            case ApprovalRequested() | QuestionAsked() | ApprovalResolved():
                if block := self._tools.get(event.call_id):
                    block.ask(not isinstance(event, ApprovalResolved))
            case ToolFinished():
                self.tool_finished(event)
            case FilesChanged(call_id=call_id):
                if block := self._tools.get(call_id):
                    block.touched(event.changes)
            case Delegated(call_id=call_id):
                if block := self._tools.get(call_id):
                    block.delegated(event)
            case CompactionStarted():
                self.wait(MAKING_ROOM)
            case SummaryDelta():
                self.summary(event.text)
            case Retry():
                self.retry(RetryBlock(event.attempt, event.after_seconds, event.cause))
            case Failed():
                self._arrived()
                self.end(interrupted=True)  # a reply that was still growing is a half one
                self._transcript.add(ErrorBlock(event.text, event.hint))
            case _:
                assert_never(event)

    def wait(self, what: str) -> None:
        """Nothing to show yet, or not any more."""
        if self._waiting and self._waiting.what == what:
            return
        self._arrived()
        self._waiting = Waiting(what)
        self._transcript.add(self._waiting)

    def retry(self, block: RetryBlock) -> None:
        """A request failed and goes out again."""
        self._arrived()
        self._retry = block
        self._transcript.add(block)

    def _arrived(self) -> None:
        if self._retry:
            self._retry.over()
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
        self._transcript.add(block)

    def user(self, event: TurnStarted | Steered, at: str) -> None:
        """The message is in the record."""
        self._arrived()
        block = UserBlock(event.text, at, attached=event.attachments)
        self._said.append(block)
        self._transcript.add(block)
        self.wait("waiting for the model")

    def text(self, delta: str) -> None:
        """The reply grows."""
        if self._reply is None:
            delta = delta.lstrip()
            if not delta:
                return
            self._end_thinking()
            self._reply = ReplyBlock()
            self._add(self._reply, opens_round=True)
        self._reply.feed(delta)

    def reasoning(self, delta: str) -> None:
        """The model thinks."""
        if self._thinking is None:
            self._end_reply()
            self._thinking = ThinkingBlock(streaming=True, unfolded=self._show_reasoning)
            self._add(self._thinking, opens_round=True)
        self._thinking.feed(delta)

    def summary(self, delta: str) -> None:
        """A compaction writes its summary."""
        if self._summary is None:
            self._summary = ThinkingBlock(streaming=True, words=("writing the summary", "summary"))
            self._transcript.add(self._summary, before=self._waiting)  # whose seconds go on counting below it
        self._summary.feed(delta)

    def compacted(self, kept: bool) -> None:
        """The pass is over; the summary is in the archive when it was `kept`."""
        if self._summary:
            block, self._summary = self._summary, None
            if kept:
                self._transcript.discard(block)
            else:
                block.finish()

    def tool_started(self, event: ToolStarted) -> None:
        """A call runs."""
        self._end_thinking()
        self._end_reply()
        if event.call_id in self._tools:
            return
        block = self._tools[event.call_id] = ToolBlock(event.call_id, event.name, event.arguments)
        self._add(block, opens_round=False)

    def tool_progress(self, call_id: str, text: str) -> None:
        """A call says something."""
        if block := self._tools.get(call_id):
            block.progress(text)

    def tool_finished(self, event: ToolFinished) -> None:
        """A call is over. One that never started (denied, broken arguments) gets its line now."""
        block = self._tools.pop(event.call_id, None)
        if block is None:
            self._end_thinking()
            self._end_reply()
            self._add(ToolBlock(event.call_id, event.name, {}, event), opens_round=False)
        else:
            block.finish(event)
        self._fresh_round = True
        if not self._tools:
            self.wait("waiting for the model")

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
            self._retry.over(stopped=True)
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
