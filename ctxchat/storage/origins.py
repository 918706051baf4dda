"""Sessions brought in from elsewhere: written once, renewed when their file has grown, never twice.

What a person did with such a session here is theirs: one that was gone on with is not renewed, its newer form stands beside it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import ExitStack

import msgspec

from ctxchat.core.errors import CtxchatError
from ctxchat.core.journal import Record
from ctxchat.storage import entries, files, index, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.schema import OF_A_SESSION


class SessionOrigin(msgspec.Struct, frozen=True):
    """Where a session comes from: `source` is the agent and its own id for it, `path` the file, `size` (bytes) and `changed`
    (nanoseconds) what that was like."""

    source: str
    path: str
    size: int
    changed: int


class SessionListing(msgspec.Struct, frozen=True):
    """What lists say of a session, known when all of it was read. `parent` is how the
    source of another one begins."""

    messages: int
    created: str = ""
    updated: str = ""
    folder: str = ""
    model: str = ""
    parent: str = ""
    delegated: bool = False


class NothingNew(CtxchatError):
    """The session is here already, with all that its file has; `session` is its id."""

    def __init__(self, session: str) -> None:
        super().__init__(f"{session} is here already.")
        self.session = session


def known(database: Database) -> dict[str, tuple[int, int]]:
    """Every file that was brought in, with its size and time then."""
    return {path: (size, at) for path, size, at in database.read("SELECT path, size, changed FROM origins")}


def session_of(database: Database, source: str) -> str:
    """The session of a source; empty where it was not brought in, or deleted since."""
    found = database.read("SELECT session FROM origins WHERE source = ?", (source,))
    return str(found[0][0]) if found else ""


def bring(
    database: Database,
    origin: SessionOrigin,
    records: Callable[[str], Iterable[Record]],
    about: Callable[[], SessionListing],
) -> tuple[str, bool]:
    """Write a session, or the newer form of one, in one transaction; its id, and whether it is new here. `records` is told the
    session's id and asked once; `about` is asked after that.

    Raises NothingNew, SessionBusy where the older form is open elsewhere, and StorageError, having changed nothing.
    """
    older = session_of(database, origin.source)
    with ExitStack() as held:
        if older:
            held.enter_context(sessions.held(database, older))
        touched = bool(older) and _touched(database, older)
        session = "" if touched else older
        made: list[str] = []

        def work(connection: sqlite3.Connection, fts: bool) -> str:
            if made:  # the index proved to be damaged half-way, and what was read is gone
                raise Again
            at = database.now()
            before = _extent(connection, older)
            row = session or sessions.insert(connection, at)
            made.append(row)
            if session:
                _empty(connection, session, fts=fts)
            entries.append(connection, row, records(row), at, database.count, fts=fts, found_later=True)
            told = about()
            seq = connection.execute("SELECT coalesce(max(seq), 0) FROM journal WHERE session = ?", (row,)).fetchone()[
                0
            ]
            if older and (told.messages < before[0] or (told.messages, seq) == before):
                raise NothingNew(older)
            _describe(connection, row, told, at, beside=older if touched else "")
            connection.execute("DELETE FROM origins WHERE source = ?", (origin.source,))
            connection.execute(
                "INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?)",
                (row, origin.source, origin.path, origin.size, origin.changed, seq),
            )
            return row

        try:
            return database.write(work), not older
        except BaseException:
            if made and not session:
                files.remove_folder(files.session_folder(database.folder, made[0]))
            raise


def remember(database: Database, session: str, origin: SessionOrigin) -> None:
    """Where a session comes from that counts as begun here; of two, the newer. Raises StorageError."""
    with database.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?, 0)",
            (session, origin.source, origin.path, origin.size, origin.changed),
        )


def seen(database: Database, origin: SessionOrigin) -> None:
    """Remember what the file of a session that has nothing new is like, so that it is not read again. Raises StorageError."""
    with database.transaction() as connection:
        connection.execute(
            "UPDATE origins SET path = ?, size = ?, changed = ? WHERE source = ?",
            (origin.path, origin.size, origin.changed, origin.source),
        )


class Again(CtxchatError):
    """The search index was damaged; it was made anew."""

    def __init__(self) -> None:
        super().__init__("The search index was damaged while this was written.", "Import it once more.")


def _touched(database: Database, session: str) -> bool:
    """Something was written in it since it was brought in."""
    found = database.read(
        "SELECT 1 FROM journal JOIN origins USING (session) WHERE session = ? AND seq > entries LIMIT 1", (session,)
    )
    return bool(found)


def _extent(connection: sqlite3.Connection, session: str) -> tuple[int, int]:
    """How many messages and entries it was brought in with."""
    entry = connection.execute("SELECT entries FROM origins WHERE session = ?", (session,)).fetchone()
    if entry is None:
        return 0, 0
    messages = connection.execute(
        "SELECT count(*) FROM messages JOIN groups USING (session, place) WHERE session = ? AND entry <= ?",
        (session, *entry),
    )
    return int(messages.fetchone()[0]), int(entry[0])


def _empty(connection: sqlite3.Connection, session: str, *, fts: bool) -> None:
    index.remove(connection, session, fts=fts)
    for table in OF_A_SESSION:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    connection.execute(
        "UPDATE sessions SET messages = 0, used = 0, compactions = 0, title = '' WHERE id = ?", (session,)
    )


def _describe(connection: sqlite3.Connection, session: str, about: SessionListing, at: str, *, beside: str) -> None:
    parent = beside
    if about.parent and not parent:
        found = connection.execute(
            "SELECT session FROM origins WHERE substr(source, 1, ?) = ? AND session <> ? LIMIT 1",
            (len(about.parent) + 1, f"{about.parent}:", session),
        ).fetchone()
        parent = found[0] if found else ""
    connection.execute(
        "UPDATE sessions SET created = ?, updated = ?, folder = ?, model = ?, parent = ?, delegated = ? WHERE id = ?",
        (
            about.created or at,
            about.updated or at,
            entries.whole_text(about.folder),
            entries.whole_text(about.model),
            parent,
            about.delegated and bool(parent),
            session,
        ),
    )
