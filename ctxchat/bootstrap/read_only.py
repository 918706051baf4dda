"""A journal nobody may write to: for a session that is open for writing elsewhere."""

from __future__ import annotations

from typing import NoReturn

from ctxchat.core.errors import SessionBusy
from ctxchat.core.journal import Partial, Record


class ReadOnlyJournal:
    """Fulfils the port and refuses every write with the same sentence."""

    def __init__(self, session: str, why: str) -> None:
        self.session = session
        self._why = why

    async def write(self, *records: Record) -> None:
        """Raises SessionBusy."""
        self._refuse()

    async def keep(self, partial: Partial) -> None:
        """Raises SessionBusy."""
        self._refuse()

    async def spill(self, name: str, text: str) -> str:
        """Raises SessionBusy."""
        self._refuse()

    async def attach(self, name: str, data: bytes) -> str:
        """Raises SessionBusy."""
        self._refuse()

    async def attached(self, path: str) -> bytes:
        """Nothing is sent from here, so nothing is read for it either. Raises SessionBusy."""
        self._refuse()

    async def close(self) -> None:
        """There is nothing to give free."""

    def _refuse(self) -> NoReturn:
        raise SessionBusy(self._why, "Close the other window, or fork the session.")
