"""Sub-agents as child sessions, for an editor that shows them: announced, told as their work goes on, and idle at the end."""

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
"""Seconds between two updates of the gauge of one."""

_RECORD = re.compile(r"\[its record: session ([\w-]+)\]")


def children_of(group: Group) -> Sequence[tuple[str, bool]]:
    """The sessions of the sub-agents that the calls of a round gave work to, each with whether that came to an answer."""
    calls = {call.id for call in group.first.calls if call.name == DELEGATE}
    results = [m for m in group.messages[1:] if m.call_id in calls]
    return list({match[1]: not failed(m) for m in results if (match := _RECORD.search(m.text))}.items())


class Child:
    """One of them. What happens in it waits in `events` until it was announced; None is the end of its work."""

    def __init__(self, program: Program, editor: Editor, parent: str, session: str) -> None:
        self._program, self._editor, self._parent, self.session = program, editor, parent, session
        self.events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._ids = updates.CallIds()
        self._retold = set[str]()
        self._said = 0.0  # when its gauge was told last
        self._following: asyncio.Task[None] | None = None

    async def begin(self, name: str) -> None:
        """It has work: announced, and told until it ends."""
        if self._following is None:
            await self._announce(name)
            self._following = asyncio.create_task(self._follow(), name=f"child session {self.session}")

    async def end(self, stop: str) -> None:
        """Its work is over, why by the protocol's word; all of it is told before that."""
        if self._following is not None:
            self.events.put_nowait(None)
            following, self._following = self._following, None
            await following
            await self._settle(stop)

    async def retell(self, stop: str) -> None:
        """All of its record, as far as that was not told yet."""
        await self._announce("")
        workspace, mask = self._program.workspace, self._program.masking
        with suppress(StorageError):  # nothing of one that is gone
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
        """What an editor has a place for. Questions are asked, and changed files told, by the session above."""
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
    """Those of one session, by their ids; nothing is told of them to an editor that does not show them."""

    def __init__(self, program: Program, editor: Editor, parent: str) -> None:
        self._program, self._editor, self._parent = program, editor, parent
        self._known: dict[str, Child] = {}
        self._at_work: dict[str, Child] = {}  # by the call that gave it work
        if editor.able.children:
            program.followers[parent] = self._hear

    async def begin(self, call_id: str, session: str, name: str) -> None:
        """A call has given work to a sub-agent."""
        if self._editor.able.children and call_id not in self._at_work:
            child = self._at_work[call_id] = self._child(session)
            await child.begin(name)

    async def end(self, call_id: str, status: ToolStatus | None) -> None:
        """That call is over; None where it was cancelled."""
        if child := self._at_work.pop(call_id, None):
            await child.end("cancelled" if status is None else "end_turn" if status == "ok" else "error")

    async def close(self) -> None:
        """None is at work any more."""
        for call_id in list(self._at_work):
            await self.end(call_id, None)

    async def retell(self, group: Group) -> None:
        """Those that a stored round gave work to, with all of their records."""
        for session, well in children_of(group) if self._editor.able.children else ():
            await self._child(session).retell("end_turn" if well else "error")

    def forget(self) -> None:
        """The session is closed."""
        self._program.followers.pop(self._parent, None)

    def _hear(self, stamped: Stamped) -> None:
        self._child(stamped.session).events.put_nowait(stamped.event)

    def _child(self, session: str) -> Child:
        return self._known.setdefault(session, Child(self._program, self._editor, self._parent, session))
