"""The turn in progress, from events to widgets in the transcript. Owns what is still growing, until the turn is over."""

from __future__ import annotations

from typing import assert_never

from textual.widget import Widget

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
from ctxchat.tui.widgets.blocks import ErrorBlock, RetryBlock, UserBlock, Waiting
from ctxchat.tui.widgets.reply import ReplyBlock, ThinkingBlock
from ctxchat.tui.widgets.tool_block import ToolBlock
from ctxchat.tui.widgets.transcript import Transcript

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
        self._said: list[Widget] = []
        self._rounds: list[list[Widget]] = []
        self._fresh_round = True

    async def take(self, event: Growing, at: str) -> None:
        """One event of the turn, and when it came about."""
        match event:
            case TurnStarted(resumed=True):
                await self.wait("waiting for the model")
            case TurnStarted() | Steered():
                await self.user(event, at)
            case TextDelta():
                await self.text(event.text)
            case ReasoningDelta():
                await self.reasoning(event.text)
            case ToolStarted():
                await self.tool_started(event)
            case ToolProgress():
                await self.tool_progress(event.call_id, event.text)
            case ApprovalRequested() | QuestionAsked() | ApprovalResolved():
                if block := self._tools.get(event.call_id):
                    block.ask(not isinstance(event, ApprovalResolved))
            case ToolFinished():
                await self.tool_finished(event)
            case FilesChanged(call_id=call_id):
                if block := self._tools.get(call_id):
                    block.changed(event.changes)
            case Delegated(call_id=call_id):
                if block := self._tools.get(call_id):
                    await block.delegated(event)
            case CompactionStarted():
                await self.wait(MAKING_ROOM)
            case SummaryDelta():
                await self.summary(event.text)
            case Retry():
                await self.retry(RetryBlock(event.attempt, event.after_seconds, event.cause))
            case Failed():
                await self._arrived()
                await self.end(interrupted=True)  # a reply that was still growing is a half one
                await self._transcript.add(ErrorBlock(event.text, event.hint))
            case _:
                assert_never(event)

    async def wait(self, what: str) -> None:
        """Nothing to show yet, or not any more."""
        if self._waiting and self._waiting.what == what:
            return
        await self._arrived()
        self._waiting = Waiting(what)
        await self._transcript.add(self._waiting)

    async def retry(self, block: RetryBlock) -> None:
        """A request failed and goes out again."""
        await self._arrived()
        self._retry = block
        await self._transcript.add(block)

    async def _arrived(self) -> None:
        if self._retry:
            self._retry.over()
            self._retry = None
        if self._waiting:
            waiting, self._waiting = self._waiting, None
            await self._transcript.discard(waiting)

    async def _add(self, widget: Widget, *, opens_round: bool) -> None:
        await self._arrived()
        if not self._rounds or (opens_round and self._fresh_round):
            self._rounds.append([])
            self._fresh_round = False
        self._rounds[-1].append(widget)
        await self._transcript.add(widget)

    async def user(self, event: TurnStarted | Steered, at: str) -> None:
        """The message is in the record."""
        await self._arrived()
        block = UserBlock(event.text, at, attached=event.attachments)
        self._said.append(block)
        await self._transcript.add(block)
        await self.wait("waiting for the model")

    async def text(self, delta: str) -> None:
        """The reply grows."""
        if self._reply is None:
            delta = delta.lstrip()
            if not delta:
                return
            await self._end_thinking()
            self._reply = ReplyBlock(streaming=True)
            await self._add(self._reply, opens_round=True)
        self._reply.feed(delta)

    async def reasoning(self, delta: str) -> None:
        """The model thinks."""
        if self._thinking is None:
            await self._end_reply()
            self._thinking = ThinkingBlock(streaming=True, unfolded=self._show_reasoning)
            await self._add(self._thinking, opens_round=True)
        self._thinking.feed(delta)

    async def summary(self, delta: str) -> None:
        """A compaction writes its summary."""
        if self._summary is None:
            self._summary = ThinkingBlock(streaming=True, words=("writing the summary", "summary"))
            await self._transcript.add(self._summary)
            if self._waiting:  # seconds go on counting, below what is written
                self._transcript.move_child(self._waiting, after=self._summary)
        self._summary.feed(delta)

    async def compacted(self, kept: bool) -> None:
        """The pass is over; the summary is in the archive when it was `kept`."""
        if self._summary:
            block, self._summary = self._summary, None
            if kept:
                await self._transcript.discard(block)
            else:
                block.finish()

    async def tool_started(self, event: ToolStarted) -> None:
        """A call runs."""
        await self._end_thinking()
        await self._end_reply()
        if event.call_id in self._tools:
            return
        block = self._tools[event.call_id] = ToolBlock(event.call_id, event.name, event.arguments)
        await self._add(block, opens_round=False)

    async def tool_progress(self, call_id: str, text: str) -> None:
        """A call says something."""
        if block := self._tools.get(call_id):
            block.progress(text)

    async def tool_finished(self, event: ToolFinished) -> None:
        """A call is over. One that never started (denied, broken arguments) gets its line now."""
        block = self._tools.pop(event.call_id, None)
        if block is None:
            await self._end_thinking()
            await self._end_reply()
            await self._add(ToolBlock(event.call_id, event.name, {}, event), opens_round=False)
        else:
            block.finish(event)
        self._fresh_round = True
        if not self._tools:
            await self.wait("waiting for the model")

    async def _end_thinking(self) -> None:
        if self._thinking:
            thinking, self._thinking = self._thinking, None
            thinking.finish()

    async def _end_reply(self, interrupted: bool = False) -> None:
        if self._reply:
            reply, self._reply = self._reply, None
            await reply.finish(interrupted)

    async def end(self, interrupted: bool = False) -> None:
        """The turn is over, whatever came of it."""
        if interrupted and self._retry:
            self._retry.over(stopped=True)
            self._retry = None
        await self._arrived()
        await self.compacted(kept=False)
        await self._end_thinking()
        await self._end_reply(interrupted)
        for block in self._tools.values():
            block.stop()
        self._tools.clear()

    def places(self, items: list[Shown], known: set[str]) -> dict[str, list[Widget]]:
        """Which of the turn's widgets stand for which new item of the record: the message first, then round by round."""
        fresh = [s for s in items if s.key not in known and s.group]
        places: dict[str, list[Widget]] = {}
        rounds = iter(self._rounds)
        for shown in fresh:
            kind = shown.group.kind if shown.group else ""
            if kind == "user" and self._said:
                places[shown.key] = [self._said.pop(0)]
            elif kind in {"reply", "round"} and (mine := next(rounds, None)) is not None:
                places[shown.key] = mine
        self._rounds = list(rounds)
        return places
