"""The journal of one session, open for writing: what the agent is handed as `core.ports.JournalPort`.

The SQLite work is done in the storage thread, in the order it was asked for; nothing here blocks the event loop.
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
    """A session this process may write: its journal, its state, and what was found damaged or cut off, in sentences."""

    journal: Journal
    state: loading.SessionState
    problems: tuple[str, ...]


class Journal:
    """Appends to one session (`session` is its id) while holding its lock. Made by `open_journal`."""

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
        """Append; when it returns the entries are on disk and the partial round is forgotten, in one transaction.

        Once asked for it happens, even where the caller is cancelled while waiting. Raises StorageError, having
        changed nothing.
        """
        await self._database.run(sessions.append, self._database, self.session, *records, clear=True)

    async def keep(self, partial: Partial) -> None:
        """Remember a round that is not sealed yet, in place of the one before. Raises StorageError."""
        await self._database.run(self._keep, partial)

    async def spill(self, name: str, text: str) -> str:
        """Save a text too large for the view; its path within the session's folder, `tool-results/…`. Raises
        StorageError."""
        return await self._database.run(spill, self.folder, name, text)

    async def attach(self, name: str, data: bytes) -> str:
        """Save an image of a message; its path within the session's folder, `attachments/…`. Raises StorageError."""
        return await self._database.run(attach, self.folder, name, data)

    async def attached(self, path: str) -> bytes:
        """An image by the path `attach` gave. Raises StorageError where it is gone."""
        return await asyncio.to_thread(read_attached, self.folder, path)

    async def close(self) -> None:
        """Finish what was asked for and give the session free for others. One in which nothing was written is not kept, or only
        for a while where it was opened with `keep_empty`."""
        await self._database.run(self._release)

    def _release(self) -> None:
        try:
            with suppress(StorageError):  # it stays, and is empty
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
    """A new session of a folder, held by this process from its first moment: no window or command that looks for the latest
    one comes in between. Raises StorageError. Call it like `open_journal`."""
    held: dict[str, private_files.Lock] = {}
    try:
        session = sessions.create(
            database,
            model=model,
            folder=folder,
            unseen=lambda new: held.update({new: private_files.lock(private_files.lock_path(database.folder, new))}),
        )
        return _opened(database, session, held[session], keep_empty)
    except BaseException:
        for unmade, lock in held.items():
            lock.release()
            with suppress(StorageError):
                private_files.remove_folder(private_files.session_folder(database.folder, unmade))
        raise


def open_journal(database: Database, session: str, keep_empty: bool = False) -> Opened:
    """Open a session (a full id) for writing, and close in its record what a kill left open. `keep_empty`: somebody else has its
    id, and may come back to it before anything is written.

    Raises SessionBusy while another window or command writes to it: `loading.load_state` reads it all the same. Call it in the
    storage thread (`database.run`) where an event loop is running.
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
    loaded = loading.load_state(database, session, owned=True)
    if loaded.repairs:
        sessions.append(database, session, *loaded.repairs, clear=True)
    return Opened(Journal(database, session, lock, keep_empty), loaded.state, loaded.problems)
