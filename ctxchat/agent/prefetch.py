"""A summary made ahead, beside the conversation: so that the swap, when it is due, takes no model call.

Holds at most one, and the task that makes it. Trusts nothing: what it covers must still be as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ctxchat.core.errors import CtxchatError
from ctxchat.core.ledger import Ledger


class Prepared(msgspec.Struct, frozen=True):
    """A summary that stands ready. `covers` are the groups it was made of, the earlier summary's included; `changes` the
    changes that were in force; `after_used` where the gauge would stand; `cost_usd` what it cost to make."""

    covers: tuple[str, ...]
    changes: tuple[str, ...]
    text: str
    after_used: int
    cost_usd: float = 0.0

    def fits(self, ledger: Ledger) -> bool:
        """True while nothing it was made of has changed since."""
        if tuple(c.id for c in ledger.changes) != self.changes:
            return False
        return ledger.current not in self.covers and ledger.pinned.isdisjoint(self.covers)


class Prefetch:
    """The one prepared summary of a conversation."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Prepared | None] | None = None
        self._ready: Prepared | None = None
        self.failed = 0

    @property
    def busy(self) -> bool:
        """One is being made."""
        return self._task is not None and not self._task.done()

    def ready(self, ledger: Ledger) -> Prepared | None:
        """The one that stands ready and still fits."""
        self._collect()
        return self._ready if self._ready and self._ready.fits(ledger) else None

    def start(self, make: Callable[[], Awaitable[Prepared | None]]) -> None:
        """Make one in the background, in place of the one there is."""
        if self.busy:
            return
        self._collect()
        self._task = asyncio.create_task(_quietly(make))

    async def wait(self) -> None:
        """Until the one being made is ready, or failed."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def _collect(self) -> None:
        if self._task is None or not self._task.done():
            return
        task, self._task = self._task, None
        made = None if task.cancelled() else task.result()
        self.failed = 0 if made else self.failed + 1
        self._ready = made or self._ready

    def clear(self) -> None:
        """It was used, or the world moved on."""
        self._ready = None

    async def close(self) -> None:
        """End the one being made."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _quietly(make: Callable[[], Awaitable[Prepared | None]]) -> Prepared | None:
    """Nobody asked for it yet, so nobody is told when it fails: the swap will then make its own."""
    try:
        return await make()
    except CtxchatError:
        return None
