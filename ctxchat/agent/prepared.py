"""A summary made ahead, beside the conversation: so that the swap, when it is due, takes no model call.

Holds at most one, and the task that makes it. Trusts nothing: what it covers must still be as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ctxchat.core.ledger import Ledger

TRIES = 2
"""Failures in a row after which none is made ahead until a pass has succeeded: the swap makes its own."""


class Prepared(msgspec.Struct, frozen=True):
    """A summary that stands ready. `covers` are the groups it was made of, the earlier summary's included; `changes` the
    changes that bore on it; `freed` what the gauge would lose by the pass; `cost_usd` what it cost to make, booked already."""

    covers: tuple[str, ...]
    changes: tuple[str, ...]
    text: str
    freed: int
    cost_usd: float = 0.0

    def fits(self, ledger: Ledger) -> bool:
        """True while nothing it was made of has changed since."""
        if bearing(ledger) != self.changes:
            return False
        return ledger.current.isdisjoint(self.covers) and ledger.pinned.isdisjoint(self.covers)


def bearing(ledger: Ledger) -> tuple[str, ...]:
    """Ids of the changes that bear on a summary made of the record: all but passes that only made messages shorter."""
    return tuple(
        c.id for c in ledger.changes if c.kind != "compaction" or any(edit.kind != "shrink" for edit in c.edits)
    )


class PreparedSlot:
    """The one prepared summary of a conversation."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._made: Prepared | None = None
        self._failures = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """One is being made."""
        return self._task is not None and not self._task.done()

    def ready(self, ledger: Ledger) -> Prepared | None:
        """The one that stands ready and still fits."""
        return self._made if self._made and self._made.fits(ledger) else None

    def start(self, make: Callable[[], Awaitable[Prepared | None]]) -> None:
        """Make one in the background, in place of the one there is. None may come of it: then there is nothing to make."""
        if not self.busy and not self._closed and self._failures < TRIES:
            self._task = asyncio.create_task(self._make(make))

    async def _make(self, make: Callable[[], Awaitable[Prepared | None]]) -> None:
        """Nobody asked for it yet, so nobody is told when it fails, whatever the fault."""
        try:
            made = await make()
            if made is not None:  # nothing to make says nothing about whether making works
                self._made, self._failures = made, 0
        except Exception:
            self._failures += 1

    async def wait(self) -> None:
        """Until the one being made is ready, or failed. A cancel ends the waiting and not the making."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def clear(self, ledger: Ledger) -> None:
        """A pass was made, with it or without: it stays where it still fits."""
        self._made = self.ready(ledger)
        self._failures = 0

    async def close(self) -> None:
        """End the one being made; no other is begun."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
