"""Shows sub-agents as child sessions to an editor that supports these: announces them, sends their events, and reports them
idle at the end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

import msgspec

from ctxchat.acp import updates
from ctxchat.acp.editor import Editor
from ctxchat.acp.updates import SessionUpdate
from ctxchat.acp.wire import JsonObject
from ctxchat.bootstrap.program import Program
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import StorageError
from ctxchat.core.events import (
    Event,
    FilesChanged,
    Notice,
    ReasoningDelta,
    Retry,
    Stamped,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    ToolStatus,
    TurnStarted,
)
from ctxchat.core.journal import SessionState, fold
from ctxchat.core.messages import Group
from ctxchat.core.record import CompactionRecord
from ctxchat.core.tool_names import DELEGATE
from ctxchat.core.tooluse import failed
from ctxchat.headless import without_secrets
from ctxchat.presentation.history import items

USAGE_INTERVAL_S = 0.5
"""Seconds between two updates of a child's gauge."""

_RECORD = re.compile(r"\[its record: session ([\w-]+)\]")


def children_of(group: Group) -> Sequence[tuple[str, bool]]:
    """The sessions of sub-agents that the calls of a round delegated to, each with whether its work succeeded."""
    calls = {call.id for call in group.first.calls if call.name == DELEGATE}
    results = [m for m in group.messages[1:] if m.call_id in calls]
    return list({match[1]: not failed(m) for m in results if (match := _RECORD.search(m.text))}.items())


class Child:
    """One child session. Its events wait in the queue `events` until it was announced; None marks the end of its work."""

    def __init__(self, program: Program, editor: Editor, parent: str, session: str) -> None:
        self._program, self._editor, self._parent, self.session = program, editor, parent, session
        self.events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._ids = updates.CallIds()
        self._retold = set[str]()
        self._said = 0.0  # monotonic time in seconds at which its gauge was last sent
        self._following: asyncio.Task[None] | None = None

    async def begin(self, name: str) -> None:
        """Announce the child, and send its events until `end`."""
        if self._following is None:
            await self._announce(name)
            self._following = asyncio.create_task(self._follow(), name=f"child session {self.session}")

    async def end(self, stop: str) -> None:
        """Send the remaining events, then report the child idle. `stop` is the protocol's stop reason."""
        if self._following is not None:
            self.events.put_nowait(None)
            following, self._following = self._following, None
            await following
            await self._settle(stop)

    async def retell(self, stop: str) -> None:
        """Send all of its stored record that was not sent yet, then report it idle."""
        await self._announce("")
        workspace, mask = self._program.workspace, self._program.masking
        with suppress(StorageError):  # a deleted session has nothing to send
            state = fold((await self._program.journal_news(self.session)).records, SessionState())
            for shown in items(state.ledger, state.checkpoints):
                if shown.key in self._retold:
                    continue
                self._retold.add(shown.key)
                if shown.group and shown.group.kind == "user":
                    await self._tell_task(shown.group.first.id, mask(updates.question_text(shown.group.first)))
                else:
                    for update in updates.retold(shown, workspace, self._ids, mask, {}):
                        await self._tell(update)
        await self._settle(stop)

    async def _announce(self, name: str) -> None:
        await self._editor.tell(self._parent, updates.child(self.session, "running", name))

    async def _settle(self, stop: str) -> None:
        await self._editor.tell(self._parent, updates.child(self.session, "idle", stop=stop))

    async def _tell(self, update: SessionUpdate | JsonObject) -> None:
        await self._editor.tell(self.session, update)

    async def _tell_task(self, message: str, text: str) -> None:
        await self._tell(updates.task(self._parent, self.session, message, text))

    async def _follow(self) -> None:
        while (event := await self.events.get()) is not None:
            await self._tell_event(without_secrets(event, self._program.masking))

    async def _tell_event(self, event: Event) -> None:
        """Send an event if the protocol has an update for it. Questions are asked by the parent session."""
        workspace = self._program.workspace
        match event:
            case TurnStarted(message=message, text=text) | Steered(message=message, text=text):
                await self._tell_task(message, text)
            case TextDelta(text=text):
                await self._tell(updates.said(text))
            case ReasoningDelta(text=text):
                await self._tell(updates.thought(text))
            case ToolStarted(call_id=call_id):
                told = msgspec.structs.replace(event, call_id=self._ids.begin(call_id))
                await self._tell(updates.started(told, workspace))
            case ToolFinished(call_id=call_id):
                told = msgspec.structs.replace(event, call_id=self._ids.of(call_id))
                await self._tell(updates.finished(told, workspace))
            case FilesChanged(call_id=call_id):
                told = msgspec.structs.replace(event, call_id=self._ids.of(call_id))
                await self._tell(updates.touched(told, workspace))
            case CompactionRecord() if self._editor.able.compactions:
                await self._tell(updates.compaction_over(event, self._program.masking))
            case CompactionRecord():
                await self._tell(updates.compacted(event, begun=False))
            case ContextUsage() if monotonic() - self._said >= USAGE_INTERVAL_S:
                self._said = monotonic()
                await self._tell(updates.usage(event))
            case Notice(text=text) | Retry(cause=text):
                await self._tell(updates.remark(text))
            case _:
                pass


class Children:
    """The child sessions of one session. Sends nothing to an editor that does not show these."""

    def __init__(self, program: Program, editor: Editor, parent: str) -> None:
        self._program, self._editor, self._parent = program, editor, parent
        self._known: dict[str, Child] = {}
        self._at_work: dict[str, Child] = {}  # by the id of the delegating call
        if editor.able.children:
            program.followers[parent] = self._hear

    async def begin(self, call_id: str, session: str, name: str) -> None:
        """Announce the sub-agent that a call delegated to."""
        if self._editor.able.children and call_id not in self._at_work:
            child = self._at_work[call_id] = self._child(session)
            await child.begin(name)

    async def end(self, call_id: str, status: ToolStatus | None) -> None:
        """End the child of a finished call; `status` is None where the call was cancelled."""
        if child := self._at_work.pop(call_id, None):
            await child.end("cancelled" if status is None else "end_turn" if status == "ok" else "error")

    async def close(self) -> None:
        """End all children that are still at work, as cancelled."""
        for call_id in list(self._at_work):
            await self.end(call_id, None)

    async def retell(self, group: Group) -> None:
        """Send the records of all sub-agents that a stored round delegated to."""
        for session, well in children_of(group) if self._editor.able.children else ():
            await self._child(session).retell("end_turn" if well else "error")

    def forget(self) -> None:
        """Stop following sub-agents: the session is closed."""
        self._program.followers.pop(self._parent, None)

    def _hear(self, stamped: Stamped) -> None:
        self._child(stamped.session).events.put_nowait(stamped.event)

    def _child(self, session: str) -> Child:
        return self._known.setdefault(session, Child(self._program, self._editor, self._parent, session))
