"""Applies the changes a person makes by hand in a session: undo, redo, pin, drop, shrink, put back, change a memo.
`core.changes` defines what each change is.

Each is one journal transaction and returns the new gauge. Knows nothing of turns, and starts no compaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

import msgspec

from ctxchat.agent.compaction.policy import AutoCompactPolicy
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.session_lock import SessionLock
from ctxchat.core.cache import rewrite
from ctxchat.core.cache_state import PrefixRewrite
from ctxchat.core.changes import (
    CAN_WAIT,
    UndoPreview,
    drop_change,
    find_change,
    lost_facts,
    lost_facts_change,
    memo_change,
    partial_undo,
    pin_change,
    preview_undo,
    quote_change,
    redo_change,
    restore_change,
    shrink_change,
)
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.facts import Memory
from ctxchat.core.journal import Changed, Deferred, Record, Sealed, Undone
from ctxchat.core.ledger import Change, DeferredKind, Ledger
from ctxchat.core.messages import Group
from ctxchat.core.tokens import Count
from ctxchat.core.view import View


class Changes:
    """The changes by hand of one session. All raise LedgerError for what cannot be done, and then nothing is written."""

    def __init__(
        self, conversation: Conversation, lock: SessionLock, policy: AutoCompactPolicy, memory: Memory
    ) -> None:
        self._conversation = conversation
        self._lock = lock
        self._policy = policy
        self._memory = memory

    async def preview_undo(self, change_id: str = "") -> UndoPreview:
        """What undoing a change (the last one without an id) would do: how full the window would be, and which part fits."""
        if not self._lock.busy:
            await self._conversation.refresh()  # the window of a session just opened has not been asked for yet
        preview = await asyncio.to_thread(
            preview_undo, self._conversation.ledger, change_id, self._measured, *self._summary_inputs
        )
        return msgspec.structs.replace(
            preview, before=self._conversation.context_usage
        )  # which a server may have counted

    async def undo(self, change_id: str = "", groups: Sequence[str] = ()) -> ContextUsage:
        """Undo a change, the last one without an id; with `groups`, only the part of a compaction that covers them. Where what
        comes back no longer fits, `excess` of the returned gauge says by how much."""
        async with self._lock.alone():
            ledger, at = self._conversation.ledger, self._conversation.clock.now()
            undone = find_change(ledger, change_id)
            inputs = (ledger, undone.id, groups, self._measured, *self._summary_inputs)
            remaining = [await asyncio.to_thread(partial_undo, *inputs)] if groups else []
            scale = self._conversation.as_counted
            if undone.kind == "compaction":
                self._policy.stopped()
            await self._conversation.write(
                Undone(undone.id, at, scale), *(Changed(change, scale) for change in remaining)
            )
            return await self._conversation.refresh()

    async def redo(self, change_id: str = "") -> ContextUsage:
        """Apply an undone change again exactly as it was: the one last undone, without an id."""
        state = self._conversation.state
        change = redo_change(state.undone, state.ledger, change_id)
        context_usage = await self._apply(change)
        if change.kind != "compaction":
            return context_usage
        self._policy.helped()
        return self._conversation.context_usage

    def rewrite_of(self, group_id: str) -> PrefixRewrite:
        """How much of the last request's beginning is lost if this group is changed or left out."""
        view = self._conversation.view
        place = next((n for n, item in enumerate(view.items) if item.group == group_id), len(view.items))
        return self._rewrite(place, {group_id})

    def rewrite_all(self, *, head: bool) -> PrefixRewrite:
        """How much of the last request's beginning is lost if all messages change, and with `head` the head as well."""
        items = self._conversation.view.items
        return self._rewrite(0 if head else next((n for n, item in enumerate(items) if item.group), len(items)), ())

    def _rewrite(self, place: int, groups: Collection[str]) -> PrefixRewrite:
        conversation = self._conversation
        used = conversation.context_usage.used - conversation.context_usage.tokens("draft")
        return rewrite(conversation.view, place, used, groups, binds=conversation.model.binds_thinking)

    async def pin(self, group_id: str) -> ContextUsage:
        """Keep a group word for word from now on."""
        return await self._apply(pin_change(self._conversation.ledger, group_id, self._conversation.clock.now()))

    async def drop(self, group_id: str) -> ContextUsage:
        """Take a group out of the view; the record keeps it."""
        return await self._apply(drop_change(self._conversation.ledger, group_id, self._conversation.clock.now()))

    async def shrink(self, group_id: str) -> ContextUsage:
        """Show a group as one line from now on."""
        return await self._apply(shrink_change(self._conversation.ledger, group_id, self._conversation.clock.now()))

    async def defer(self, group_id: str, kind: DeferredKind) -> ContextUsage:
        """Drop or shrink a group with the next compaction and not before, so that the cached beginning holds until then."""
        ledger = self._conversation.ledger
        change = CAN_WAIT[kind](ledger, group_id, "")
        if group_id not in ledger.current:  # a group of the turn under way can go once answered
            ledger.apply(change)  # raises before anything is written
        return await self._write_records(Deferred(group_id, kind))

    async def undefer(self, group_id: str) -> ContextUsage:
        """Take back `defer`: keep a group that was to be dropped or shrunk with the next compaction."""
        return await self._write_records(Deferred(group_id))

    async def restore(self, group_id: str) -> ContextUsage:
        """Append a group of the record to the conversation again, as a marked quotation."""
        return await self._put_back(restore_change, group_id)

    async def quote(self, group: Group, source: str) -> ContextUsage:
        """Append a group of another session, as a marked quotation; `source` describes that session."""
        return await self._put_back(lambda ledger, of, at: quote_change(ledger, group, of, at), source)

    async def reinsert(self, change_id: str) -> ContextUsage:
        """Append the facts that a compaction lost, as one marked note."""
        return await self._put_back(lost_facts_change, change_id)

    async def memo(self, name: str, text: str) -> ContextUsage:
        """Change a memo of the agent's, remove it with an empty text, or add one. Raises ToolError where it is too long."""
        return await self._put_back(lambda ledger, of, at: memo_change(ledger, of, text, at), name)

    def lost_facts(self, change_id: str) -> tuple[str, ...]:
        """The facts a compaction did not carry over, a line each. Raises LedgerError when it is not active."""
        return lost_facts(self._conversation.ledger, change_id)

    def _measured(self, ledger: Ledger) -> tuple[View, ContextUsage]:
        view = self._conversation.compile(ledger)
        counted = self._conversation.knowledge.counted_of(ledger)
        return view, self._conversation.expected(view, len(ledger.compactions), counted)

    @property
    def _summary_inputs(self) -> tuple[Count, Memory]:
        """Token counter and memory, with which a summary is rebuilt where only a part of what it replaced comes back."""
        return self._conversation.counter.count_text, self._memory

    async def _apply(self, change: Change) -> ContextUsage:
        self._conversation.ledger.apply(change)  # raises before anything is written
        return await self._write_records(Changed(change, self._conversation.as_counted))

    async def _put_back(self, make: Callable[[Ledger, str, str], tuple[Group, Change]], of: str) -> ContextUsage:
        """Write the note that `make` gives, with the change that shows it, and return the new gauge. `of` is what is put back: an
        id or a name."""
        async with self._lock.alone():
            await self._conversation.flush()
            note, change = make(self._conversation.ledger, of, self._conversation.clock.now())
            await self._conversation.write(Sealed((note,)), Changed(change, self._conversation.as_counted))
            return await self._conversation.refresh()

    async def _write_records(self, *records: Record) -> ContextUsage:
        async with self._lock.alone():
            await self._conversation.write(*records)
            return await self._conversation.refresh()
