"""Hands the work of a session to a fresh one: drafts the first message by code or by the model, and notes in the old session
where the work went. Opens no session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from ctxchat.agent.compaction.planner import Planner
from ctxchat.agent.compaction.run import SummaryDraft
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.session_lock import SessionLock
from ctxchat.core.errors import CtxchatError
from ctxchat.core.grouping import single
from ctxchat.core.handoff import handoff
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message
from ctxchat.core.ports import SummaryTask
from ctxchat.core.summaries import written

MAX_DRAFT_TOKENS = 6_000
"""Most tokens of a draft, which may also take no more than a quarter of the context limit."""


class Handoff:
    """The handoff of one session. The summariser of `planner` writes the message on request."""

    def __init__(self, conversation: Conversation, lock: SessionLock, planner: Planner) -> None:
        self._conversation = conversation
        self._lock = lock
        self._planner = planner

    @property
    def writer(self) -> str:
        """The name of the model that would write the message; empty for none."""
        return self._planner.writer

    async def draft(self, goal: str, written: str = "") -> str:
        """The message for the new session, drafted by code around a record the model has `written`, if any. Raises CtxchatError
        where there is nothing to hand off."""
        conversation = self._conversation
        most = min(MAX_DRAFT_TOKENS, conversation.budget.limit // 4)
        session = conversation.journal.session
        text = await asyncio.to_thread(
            handoff, conversation.ledger, session, goal, most, conversation.counter.count_text, written=written
        )
        if not text:
            raise CtxchatError("Nothing was said here yet, so there is nothing to hand off.", "/new begins afresh.")
        return text

    async def by_model(self, goal: str) -> AsyncGenerator[str, None]:
        """A record of the whole conversation for `draft`, as the model writes it. Raises CtxchatError."""
        conversation, summariser = self._conversation, self._planner.summariser
        if summariser is None or not summariser.model:
            raise CtxchatError("No model is there to write it.", "/model chooses one.")
        read, *instead = written(conversation.ledger)
        task = SummaryTask(
            tuple(g for g in conversation.ledger.groups_in_force if g.id not in read.covers and g.kind != "system"),
            read.text,
            "",
            f"Another agent goes on from your record alone, in a fresh session. {goal}".strip(),
            min(conversation.options.summary_max_tokens, conversation.budget.limit // 8),
            instead=tuple(instead),
        )
        async with aclosing(
            SummaryDraft(conversation, summariser.model).receive_text(summariser.summarise(task))
        ) as pieces:
            async for piece in pieces:
                yield piece

    async def record_handoff(self, session: str, title: str) -> None:
        """Note in this session's record which session continues its work. Raises StorageError and SessionBusy."""
        conversation = self._conversation
        text = f"[handed off] The work goes on in session {session}{f' (“{title}”)' if title else ''}."
        async with self._lock.alone():
            await conversation.flush()
            message = Message(conversation.ledger.next_seq, "user", text, at=conversation.clock.now())
            note = single("note", message, conversation.ledger.turn, f"handoff:{session}")
            await conversation.write(Sealed((note,)))
            await conversation.refresh()
