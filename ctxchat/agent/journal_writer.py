"""A session's state and its journal, kept in step: what the one holds the other can be folded from.

The one place that writes. Knows nothing of models, views or turns.
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
        self._noted: tuple[Record, ...] = ()  # in the state already
        self._owed: tuple[Record, ...] = ()
        self._writing = asyncio.Lock()

    @property
    def ledger(self) -> Ledger:
        """All groups and changes."""
        return self.state.ledger

    async def write(self, *records: Record) -> None:
        """To the journal, then into the state. When it returns both hold it; when it raises StorageError neither does.
        A cancel waits for the end of it."""
        await to_the_end(self._write_batch(records))

    async def _write_batch(self, records: Sequence[Record]) -> None:
        async with self._writing:
            noted, owed, before = self._noted, self._owed, self.state
            await self.journal.write(*noted, *owed, *records)
            self._noted, self._owed = self._noted[len(noted) :], self._owed[len(owed) :]
            # what was noted meanwhile is written behind these, and has to be folded behind them
            self.state = fold((*owed, *records, *self._noted), before)

    def apply_now_write_later(self, *records: Record) -> None:
        """Into the state at once, and to the journal with whatever is written next: in the middle of a round a write would
        forget what was kept of it."""
        self._noted += records
        self.state = fold(records, self.state)

    def write_later(self, *records: Record) -> None:
        """Write these with whatever is written next."""
        self._owed += records

    async def flush(self) -> None:
        """Write what is owed, for a session in which anything was said. Raises StorageError while that is not possible; it stays
        owed then."""
        if self._noted or (self._owed and self.state.ledger.groups):
            await self.write()

    @property
    def next_compaction(self) -> int:
        """The number of the next compaction: those whose end is owed to the store count, too."""
        return len(self.state.compactions) + sum(isinstance(record, CompactionFinished) for record in self._owed) + 1

    async def write_or_owe(self, *records: Record) -> bool:
        """Write, or owe it where the store refuses: what was said must not depend on a disk. False when it is owed."""
        try:
            await self.write(*records)
        except StorageError:
            self.write_later(*records)
            return False
        return True

    async def keep(self, assistant: Message, results: Sequence[Message] = ()) -> bool:
        """Remember an unsealed round, so that a kill loses nothing that was said. False where the store refuses: that ends no
        round, since sealing it asks the store again."""
        try:
            await self.journal.keep(Partial(assistant, tuple(results), self.ledger.turn, self._noted))
        except StorageError:
            return False
        return True
