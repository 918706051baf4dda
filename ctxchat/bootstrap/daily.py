"""The copy of the store once a day: made beside the work when it has gone on for a while, or at its end where the store is small.
A copy that is under way when everything ends is dropped, so nobody waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from ctxchat.config.schema.program import Storage
from ctxchat.core.errors import StorageError
from ctxchat.storage import backups
from ctxchat.storage.database import Database

QUIET = 30.0
"""Seconds after the start: by then everything has been drawn and loaded."""

SMALL = 16_000_000
"""Bytes of a store that is copied at the end, in some hundredths of a second."""


class DailyBackup:
    """For one start of the program."""

    def __init__(self, database: Database, settings: Storage) -> None:
        self._database, self._settings = database, settings
        self._stop = threading.Event()

    @asynccontextmanager
    async def beside(self) -> AsyncGenerator[None, None]:
        """For as long as the block lasts."""
        task = asyncio.create_task(self._later(), name="backup")
        try:
            yield
        finally:
            self._stop.set()
            early = not task.done()
            task.cancel()
            await asyncio.wait({task})
            if early and self._database.path.stat().st_size < SMALL:
                self._stop = threading.Event()
                await asyncio.to_thread(self._made)

    async def _later(self) -> None:
        await asyncio.sleep(QUIET)
        await asyncio.to_thread(self._made)

    def _made(self) -> None:
        kept, most = self._settings.backups, self._settings.backups_mb * 1_000_000
        with suppress(StorageError, OSError, backups.Stopped):  # tried again at the next start
            if backups.due(self._database, kept):
                backups.daily(self._database, kept, most, self._stop)
