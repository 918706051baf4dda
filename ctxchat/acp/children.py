"""Sub-agents as child sessions, for an editor that shows them: announced, told as their records grow, and idle at the end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress

from ctxchat.acp import updates
from ctxchat.acp.editor import Editor
from ctxchat.bootstrap.program import Program
from ctxchat.core.errors import StorageError
from ctxchat.core.events import ToolStatus
from ctxchat.core.journal import SessionState, fold
from ctxchat.core.messages import Group
from ctxchat.core.tool_names import DELEGATE
from ctxchat.core.tooluse import failed
from ctxchat.presentation.history import items

LOOK_INTERVAL_S = 0.5
"""Seconds after which the record of one at work is looked at again."""

_RECORD = re.compile(r"\[its record: session ([\w-]+)\]")


def children_of(group: Group) -> Sequence[tuple[str, bool]]:
    """The sessions of the sub-agents that the calls of a round gave work to, each with whether that came to an answer."""
    calls = {call.id for call in group.first.calls if call.name == DELEGATE}
    results = [m for m in group.messages[1:] if m.call_id in calls]
    return list({match[1]: not failed(m) for m in results if (match := _RECORD.search(m.text))}.items())


class Child:
    """One of them: how far its record has been told."""

    def __init__(self, program: Program, editor: Editor, parent: str, session: str) -> None:
        self._program, self._editor, self._parent, self.session = program, editor, parent, session
        self._ids = updates.CallIds()
        self._state, self._last = SessionState(), 0
        self._told = set[str]()
        self._following: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def begin(self, name: str) -> None:
        """It has work: announced the first time, and followed until it ends."""
        if self._following is None:
            await self._editor.tell(self._parent, updates.child(self.session, "running", name))
            self._over.clear()
            self._following = asyncio.create_task(self._follow(), name=f"child session {self.session}")

    async def end(self, stop: str) -> None:
        """Its work is over, why by the protocol's word; all of its record is told before that."""
        if self._following is not None:
            self._over.set()
            following, self._following = self._following, None
            await following
            await self._editor.tell(self._parent, updates.child(self.session, "idle", stop=stop))

    async def _tell_news(self) -> None:
        """What its record has got since. Nothing of one that is gone."""
        with suppress(StorageError):
            news = await self._program.journal_news(self.session, self._last)
            if not news.records:
                return
            self._state, self._last = fold(news.records, self._state), news.last
            workspace, mask = self._program.workspace, self._program.masking
            for shown in items(self._state.ledger, self._state.checkpoints):
                if shown.key in self._told:
                    continue
                self._told.add(shown.key)
                if shown.group and shown.group.kind == "user":
                    task = updates.task(self._parent, self.session, shown.group, mask)
                    await self._editor.tell(self.session, task)
                else:
                    for update in updates.retold(shown, workspace, self._ids, mask, {}):
                        await self._editor.tell(self.session, update)

    async def _follow(self) -> None:
        """Until its work is over, and what came of it is told."""
        over = False
        while not over:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_INTERVAL_S):
                    over = await self._over.wait()
            await self._tell_news()


class Children:
    """Those of one session, by their ids; nothing is told of them to an editor that does not show them."""

    def __init__(self, program: Program, editor: Editor, parent: str) -> None:
        self._program, self._editor, self._parent = program, editor, parent
        self._known: dict[str, Child] = {}
        self._at_work: dict[str, Child] = {}  # by the call that gave it work

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
            child = self._child(session)
            await child.begin("")
            await child.end("end_turn" if well else "error")

    def _child(self, session: str) -> Child:
        return self._known.setdefault(session, Child(self._program, self._editor, self._parent, session))
