"""Opens the journal of one session for writing, as the agent needs it: implements `core.ports.JournalPort`.

SQLite is called in the storage thread, in the order of the calls; nothing here blocks the event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Partial, Record
from ctxchat.storage import entries, loading, private_files, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.session_files import attach, read_attached, spill


class Opened(msgspec.Struct, frozen=True):
    """A session opened for writing: its journal, its state, and sentences about what was damaged or cut off."""

    journal: Journal
    state: loading.SessionState
    problems: tuple[str, ...]


class Journal:
    """The journal of the session with the id `session`, whose lock it holds. `begin_journal` and `open_journal` make it."""

    read_only = ""

    def __init__(self, database: Database, session: str, lock: private_files.Lock, keep_empty: bool = False) -> None:
        self._database = database
        self.session = session
        self._lock = lock
        self._keep_empty = keep_empty

    @property
    def folder(self) -> Path:
        """The session's own folder; `spill` returns paths within it."""
        return private_files.session_folder(self._database.folder, self.session)

    async def write(self, *records: Record) -> None:
        """Append entries and delete the unfinished round, in one transaction that is on disk when this returns.

        It is carried out even if the caller is cancelled while it waits. Raises StorageError, having changed nothing.
        """
        await self._database.run(sessions.append, self._database, self.session, *records, clear=True)

    async def keep(self, partial: Partial) -> None:
        """Store the unfinished round, in place of an earlier version of it. Raises StorageError."""
        await self._database.run(self._keep, partial)

    async def spill(self, name: str, text: str) -> str:
        """Save a text too large for the view; the path within the session's folder, `tool-results/…`. Raises StorageError."""
        return await self._database.run(spill, self.folder, name, text)

    async def attach(self, name: str, data: bytes) -> str:
        """Save an image of a message; the path within the session's folder, `attachments/…`. Raises StorageError."""
        return await self._database.run(attach, self.folder, name, data)

    async def attached(self, path: str) -> bytes:
        """The data of an image, by the path that `attach` returned. Raises StorageError where it is gone."""
        return await asyncio.to_thread(read_attached, self.folder, path)

    async def close(self, estimate: int = 0) -> None:
        """Finish the calls that wait, then release the session. A session without entries is deleted; with `keep_empty`, only
        after `sessions.EMPTY_KEPT`. `estimate` as the port says."""
        await self._database.run(self._release, estimate)

    def _release(self, estimate: int) -> None:
        """Release the lock; a session in which nothing was said is deleted, unless it is to be kept."""
        try:
            if estimate:
                with suppress(StorageError):  # then lists show the sum of its texts
                    sessions.store_estimate(self._database, self.session, estimate)
            with suppress(StorageError):  # then the empty session stays
                if not self._keep_empty:
                    sessions.forget_unused(self._database, self.session)
        finally:
            self._lock.release()
        if self._keep_empty:
            with suppress(StorageError):
                sessions.forget_long_unused(self._database)

    def _keep(self, partial: Partial) -> None:
        with self._database.transaction() as connection:
            values = (self.session, self._database.now(), entries.encode(partial))
            connection.execute("INSERT OR REPLACE INTO partials VALUES (?, ?, ?)", values)


def begin_journal(database: Database, model: str, folder: str, keep_empty: bool = False) -> Opened:
    """Create a session for a folder and open it for writing. Its lock is taken before others can see the session, so that no
    other window or command opens it in between. Raises StorageError. Call it in the storage thread, like `open_journal`."""
    locks: dict[str, private_files.Lock] = {}
    try:
        session = sessions.create(
            database,
            model=model,
            folder=folder,
            unseen=lambda new: locks.update({new: private_files.lock(private_files.lock_path(database.folder, new))}),
        )
        return _opened(database, session, locks[session], keep_empty)
    except BaseException:
        for created, lock in locks.items():
            lock.release()
            with suppress(StorageError):
                private_files.remove_folder(private_files.session_folder(database.folder, created))
        raise


def open_journal(database: Database, session: str, keep_empty: bool = False) -> Opened:
    """Open a session (by its full id) for writing, and close what a kill left open in its journal. `keep_empty` is for sessions
    whose id somebody outside has, who may come back before anything is written.

    Raises SessionBusy while another window or command has it open for writing; `loading.load_state` reads it even then. Where an
    event loop runs, call it in the storage thread (`database.run`).
    """
    sessions.row(database, session)
    lock = private_files.lock(private_files.lock_path(database.folder, session))
    try:
        sessions.row(database, session)
        return _opened(database, session, lock, keep_empty)
    except BaseException:
        lock.release()
        raise


def _opened(database: Database, session: str, lock: private_files.Lock, keep_empty: bool) -> Opened:
    """A session whose lock is held, loaded, with its repairs written."""
    loaded = loading.load_state(database, session, owned=True)
    if loaded.repairs:
        sessions.append(database, session, *loaded.repairs, clear=True)
    return Opened(Journal(database, session, lock, keep_empty), loaded.state, loaded.problems)
