"""Lets one turn, one compaction or one change work on a session at a time. Knows nothing of what they do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit, Work, stream
from ctxchat.agent.hooks import Hooks
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError, SessionBusy
from ctxchat.core.events import Event, Stamped, log_line

_LOG = logging.getLogger("ctxchat.session")

CLOSING_TIMEOUT_S = 1.0
"""Seconds that closing waits for a change to end; it does not wait for a turn."""


class SessionLock:
    """The lock of one conversation.

    During a turn or a compaction, which are long, others are refused. During a change (a setting, a title), which is short, they
    wait. `listener` gets each event before the reader of the stream.
    """

    def __init__(
        self,
        conversation: Conversation,
        hooks: Hooks,
        listener: Callable[[Stamped], None] | None = None,
    ) -> None:
        self._conversation = conversation
        self._hooks = hooks
        self._listener = listener
        self._mutex = asyncio.Lock()
        self._closed = False
        self._under_way = False
        self._seq = 0
        self._newest_event: Event | None = None

    @property
    def read_only(self) -> str:
        """Why nobody may write to the session; empty where that is possible."""
        return self._conversation.journal.read_only

    @property
    def busy(self) -> bool:
        """Whether the lock is held."""
        return self._mutex.locked() or self._under_way

    @property
    def under_way(self) -> bool:
        """Whether a turn or a compaction is under way, or waits for a change to end."""
        return self._under_way

    @asynccontextmanager
    async def alone(self, *, turn: bool = False) -> AsyncGenerator[None, None]:
        """Hold the lock for a `turn` (or a compaction), or else for a change. Raises SessionBusy for a read-only session,
        CtxchatError for a closed one, or while a turn or a compaction is under way."""
        self._refuse()
        if self._under_way:
            raise CtxchatError("A turn is under way.", "Wait for its end, or stop it with Esc.")
        self._under_way = turn
        try:
            async with self._mutex:
                self._refuse()  # it may have been closed meanwhile
                yield
        finally:
            self._under_way = self._under_way and not turn

    def _refuse(self) -> None:
        """Raise where nothing may be written: in a read-only or a closed session."""
        if self.read_only:
            raise SessionBusy(self.read_only)
        if self._closed:
            raise CtxchatError("This session is closed.", "Open it again.")

    def stream(self, work: Work) -> AsyncGenerator[Stamped, None]:
        """The events of the work, its hooks' included, numbered within the session. Holds the lock meanwhile. Raises as
        `alone`."""

        async def work_alone(emit: Emit) -> None:
            async with self.alone(turn=True):
                self._newest_event = None
                await (self._hooks.run_around(work) if self._hooks else work)(emit)

        return stream(work_alone, self._stamped)

    def _stamped(self, event: Event) -> Stamped | None:
        """The event with its number; None for a gauge that is the same as in the event before."""
        if isinstance(event, ContextUsage) and event == self._newest_event:
            return None
        self._newest_event = event
        self._seq += 1
        session, now = self._conversation.journal.session, self._conversation.clock.now()
        if _LOG.isEnabledFor(logging.DEBUG) and (line := log_line(event, now)):
            _LOG.debug("%s %d %s", session, self._seq, line)
        stamped = Stamped(session, self._seq, now, event)
        if self._listener:
            self._listener(stamped)
        return stamped

    @asynccontextmanager
    async def closing(self) -> AsyncGenerator[bool, None]:
        """Hold the lock for closing the session; gives False where it was closed before. Waits a little for a change. Raises
        CtxchatError while a turn or a compaction is under way, which would go on to write without the lock."""
        if self._closed:
            yield False
            return
        try:
            await asyncio.wait_for(self._mutex.acquire(), 0 if self._under_way else CLOSING_TIMEOUT_S)
        except TimeoutError:
            raise CtxchatError("A turn is under way.", "Stop it with Esc, then close.") from None
        try:
            first, self._closed = not self._closed, True
            yield first
        finally:
            self._mutex.release()
