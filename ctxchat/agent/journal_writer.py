"""Writes a session's journal, and keeps its state equal to what the journal folds to.

Nothing else writes to the journal. Knows nothing of models, views or turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ctxchat.agent.emitting import to_the_end
from ctxchat.core.errors import StorageError
from ctxchat.core.journal import CompactionFinished, Partial, Record, SessionState, fold
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import JournalPort


class JournalWriter:
    """The journal of one session and the state it folds to."""

    def __init__(self, journal: JournalPort, state: SessionState) -> None:
        self.journal = journal
        self.state = state
        self._noted: tuple[Record, ...] = ()  # applied to the state, still to be written
        self._owed: tuple[Record, ...] = ()  # neither applied nor written yet
        self._writing = asyncio.Lock()

    @property
    def ledger(self) -> Ledger:
        """All groups and changes."""
        return self.state.ledger

    async def write(self, *records: Record) -> None:
        """Write records to the journal, then apply them to the state. Both hold them on return; neither does where this raises
        StorageError. A cancel takes effect only after the write."""
        await to_the_end(self._write_batch(records))

    async def _write_batch(self, records: Sequence[Record]) -> None:
        """Write all waiting records and these in one transaction, and fold them into the state."""
        async with self._writing:
            noted, owed, before = self._noted, self._owed, self.state
            await self.journal.write(*noted, *owed, *records)
            self._noted, self._owed = self._noted[len(noted) :], self._owed[len(owed) :]
            # records noted during the write come after these in the journal, so they are folded after them
            self.state = fold((*owed, *records, *self._noted), before)

    def apply_now_write_later(self, *records: Record) -> None:
        """Apply records to the state at once, and write them with the next write: during a round, writing now would discard the
        saved partial round (see `keep`)."""
        self._noted += records
        self.state = fold(records, self.state)

    def write_later(self, *records: Record) -> None:
        """Write and apply records together with the next write."""
        self._owed += records

    async def flush(self) -> None:
        """Write all waiting records, unless the session is still empty. Raises StorageError where that is not possible; they then
        go on waiting."""
        if self._noted or (self._owed and self.state.ledger.groups):
            await self.write()

    @property
    def next_compaction(self) -> int:
        """The number of the next compaction; finished ones whose record still waits to be written count too."""
        return len(self.state.compactions) + sum(isinstance(record, CompactionFinished) for record in self._owed) + 1

    async def write_or_owe(self, *records: Record) -> bool:
        """Write records, or leave them for the next write where the store refuses, so that a turn does not fail. False in the
        latter case."""
        try:
            await self.write(*records)
        except StorageError:
            self.write_later(*records)
            return False
        return True

    async def keep(self, assistant: Message, results: Sequence[Message] = ()) -> bool:
        """Save an unsealed round, so that a kill of the process loses nothing of it. False where the store refuses; the round
        goes on, since sealing it tries the store again."""
        try:
            await self.journal.keep(Partial(assistant, tuple(results), self.ledger.turn, self._noted))
        except StorageError:
            return False
        return True
