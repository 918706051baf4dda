"""Sessions brought in from elsewhere: written once, renewed when their file has grown, never twice.

What a person did with such a session here is theirs: one that was gone on with is not renewed, its newer form stands beside it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from urllib.parse import quote

import msgspec

from ctxchat.core.errors import CtxchatError
from ctxchat.core.journal import Record
from ctxchat.storage import entries, files, index, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.faults import faults
from ctxchat.storage.schema import OF_A_SESSION

ASIDE = ".bringing-"
"""How the file begins in which a session is made ready."""

_LEFT = 86_400.0  # seconds since it was last written, of one that a kill must have left


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
    session's id and asked once; `about` is asked after that. All rows are made ready in a database aside before the transaction
    begins, which only copies them: others who write wait for nothing else.

    Raises NothingNew, SessionBusy where the older form is open elsewhere, and StorageError, having changed nothing.
    """
    older = session_of(database, origin.source)
    with ExitStack() as held:
        if older:
            held.enter_context(sessions.held(database, older))
        touched = bool(older) and _touched(database, older)
        at = database.now()
        row = older if older and not touched else sessions.new_id(at)
        try:
            with faults(database.folder):
                aside = held.enter_context(_file_aside(database.folder))
                entry = _make_ready(database, aside, row, records(row), at)
            told = about()
            before = _extent(database, older)
            if older and (told.messages < before[0] or (told.messages, entry) == before):
                raise NothingNew(older)

            def work(connection: sqlite3.Connection, fts: bool) -> None:
                if row == older:
                    _empty(connection, row, fts=fts)
                else:
                    connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (row, at, at))
                _take_over(connection, row, fts=fts)
                _describe(connection, row, told, at, beside=older if touched else "")
                connection.execute("DELETE FROM origins WHERE source = ?", (origin.source,))
                connection.execute(
                    "INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?)",
                    (row, origin.source, origin.path, origin.size, origin.changed, entry),
                )

            database.read("ATTACH ? AS aside", (f"file:{quote(str(aside.resolve()))}?mode=rw",))
            held.callback(database.read, "DETACH aside")
            database.write(work)
        except BaseException:
            if row != older:
                files.remove_folder(files.session_folder(database.folder, row))
            raise
        return row, not older


@contextmanager
def _file_aside(folder: Path) -> Iterator[Path]:
    """An empty file of our own, gone at the end; with it go those that a kill has left."""
    for left in folder.glob(f"{ASIDE}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT:
                left.unlink()
    handle, name = mkstemp(prefix=ASIDE, dir=folder)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _make_ready(database: Database, aside: Path, session: str, records: Iterable[Record], at: str) -> int:
    """Write the rows of a session into a database of its own, with tables like ours; how many entries it has."""
    tables = database.read("SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")  # where anything fails the file is thrown away
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for (table,) in tables:
            connection.execute(table)
        connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (session, at, at))
        entries.append(connection, session, records, at, database.count, fts=False)
        connection.execute("COMMIT")
        return int(connection.execute("SELECT count(*) FROM journal").fetchone()[0])


def _take_over(connection: sqlite3.Connection, session: str, *, fts: bool) -> None:
    """Copy the rows that are ready aside; the search index takes their words in later."""
    last = int(connection.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchone()[0])
    connection.execute(
        "INSERT INTO main.journal (session, seq, at, body) SELECT session, seq, at, body FROM aside.journal ORDER BY id"
    )
    connection.execute("INSERT INTO main.groups SELECT * FROM aside.groups")
    connection.execute(
        "INSERT INTO main.messages (id, session, seq, place, role, at, tokens, text, tool)"
        " SELECT id + ?, session, seq, place, role, at, tokens, text, tool FROM aside.messages ORDER BY id",
        (last,),
    )
    connection.execute("INSERT INTO main.compactions SELECT * FROM aside.compactions")
    connection.execute("INSERT INTO main.covers SELECT * FROM aside.covers ORDER BY rowid")
    told = "title, used, estimated, messages, compactions"
    connection.execute(
        f"UPDATE main.sessions SET ({told}) = (SELECT {told} FROM aside.sessions) WHERE id = ?", (session,)
    )
    newest = int(connection.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchone()[0])
    if newest > last:
        index.add_later(connection, last + 1, newest, fts=fts)


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


def _touched(database: Database, session: str) -> bool:
    """Something was written in it since it was brought in."""
    found = database.read(
        "SELECT 1 FROM journal JOIN origins USING (session) WHERE session = ? AND seq > entries LIMIT 1", (session,)
    )
    return bool(found)


def _extent(database: Database, session: str) -> tuple[int, int]:
    """How many messages and entries it was brought in with."""
    entry = database.read("SELECT entries FROM origins WHERE session = ?", (session,))
    if not entry:
        return 0, 0
    messages = database.read(
        "SELECT count(*) FROM messages JOIN groups USING (session, place) WHERE session = ? AND entry <= ?",
        (session, *entry[0]),
    )
    return int(messages[0][0]), int(entry[0][0])


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
