"""The full-text index over everything ever said: FTS5 where this SQLite has it, a plain scan where it has not.

The index holds no text of its own (the `messages` table does) and can be made anew from it at any time.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ctxchat.core.messages import Message
from ctxchat.storage.query import Unit, apart
from ctxchat.storage.ranking import fold

_UNUSABLE = re.compile(
    r"no such (fts5 )?table: (main\.)?search|table search has no column|invalid fts5 file format"
    r"|vtable constructor failed: search"
)

_TABLES = ("search", *(f"search_{part}" for part in ("data", "idx", "docsize", "config", "content")))

_VERSION = "1"
"""Goes up when `apart` changes, so that an older index is made anew."""

Read = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


def searchable(message: Message) -> str:
    """All the words of a message: its text, what it called with what, and its reasoning."""
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    reasoning = [message.reasoning.text] if message.reasoning else []
    # SQLite's own functions end a text at a zero.
    return "\n".join(part for part in (message.text, *calls, *reasoning) if part).replace("\0", "\ufffd")


def frequencies(read: Read, units: Sequence[Unit]) -> dict[Unit, int]:
    """In how many messages each word stands, other forms of it taken in; 0 for one that was never said."""
    found: dict[Unit, int] = {}
    for unit in units:
        if unit.spaced and len(unit.stem) > 2:
            sql, values = "term >= ? AND term < ?", (fold(unit.stem), fold(unit.stem) + "\U0010ffff")
            found[unit] = read(f"SELECT coalesce(sum(doc), 0) FROM temp.terms WHERE {sql}", values)[0][0]
        else:  # characters one by one: the rarest bounds the word
            words = apart(fold(unit.word)).split()
            sql = "SELECT coalesce(sum(doc), 0) FROM temp.terms WHERE term = ?"
            found[unit] = min((read(sql, (word,))[0][0] for word in words), default=0)
    return found


def prepare(connection: sqlite3.Connection, *, wanted: bool = True) -> bool:
    """Have the index ready, made anew where it is missing, stale or of an older kind; False where FTS5 is not to be had, or
    the messages it is made from cannot be read or there is no room for it."""
    connection.create_function("indexed_words", 1, apart, deterministic=True)
    if not wanted or not _has_fts5(connection):
        return False
    if _state(connection) != _VERSION and not (_replaced(connection, _drop) or _replaced(connection, put_aside)):
        return False
    connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'search', 'row')")
    return True


def _replaced(connection: sqlite3.Connection, clear: Callable[[sqlite3.Connection], None]) -> bool:
    """Whether the old index could be cleared in this way and a new one made, in a transaction of its own."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        clear(connection)
        _make(connection)
        connection.execute("COMMIT")
    except sqlite3.DatabaseError:
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


def _drop(connection: sqlite3.Connection) -> None:
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def put_aside(connection: sqlite3.Connection) -> None:
    """Have a damaged index forgotten, within the caller's transaction and before anything else in it. None of its pages is
    looked at: to drop it could give free what a damaged page wrongly points to, the journal's own pages. Where this SQLite
    guards its schema the index is stale and stays."""
    _mark(connection, "stale")
    marks = ", ".join("?" * len(_TABLES))
    connection.execute("PRAGMA writable_schema = ON")
    with suppress(sqlite3.OperationalError):
        connection.execute(f"DELETE FROM sqlite_master WHERE tbl_name IN ({marks})", _TABLES)
        seen = connection.execute("PRAGMA schema_version").fetchone()[0]
        connection.execute(f"PRAGMA schema_version = {seen + 1}")  # whoever has read it reads it again
    connection.execute("PRAGMA writable_schema = RESET")


def make_anew(connection: sqlite3.Connection) -> None:
    """The index from the messages in place of a damaged one, within the caller's transaction, in which nothing else was
    written."""
    put_aside(connection)
    _make(connection)


def _make(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE VIRTUAL TABLE search USING fts5(words, content='', tokenize='unicode61 remove_diacritics 2')"
    )
    connection.execute("INSERT INTO search (rowid, words) SELECT id, indexed_words(text) FROM messages")
    _mark(connection, _VERSION)


def damaged(problem: BaseException | None) -> bool:
    """The error is one that a damaged or missing index makes."""
    name = getattr(problem, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_CONSTRAINT")) or bool(_UNUSABLE.search(str(problem)))


def add(connection: sqlite3.Connection, rows: Iterable[tuple[int, str]], *, fts: bool) -> None:
    """Take in messages by their row id, within the caller's transaction, in which they are written already."""
    if not fts:
        _mark(connection, "stale")
        return
    entries = [(row, apart(text)) for row, text in rows]
    connection.executemany("INSERT INTO search (rowid, words) VALUES (?, ?)", entries)


def remove(connection: sqlite3.Connection, session: str, *, fts: bool) -> None:
    """Take a session's messages out, within the caller's transaction and before their rows go."""
    if not fts:
        _mark(connection, "stale")
        return
    sql = "INSERT INTO search (search, rowid, words) SELECT 'delete', id, indexed_words(text) FROM messages WHERE session = ?"
    connection.execute(sql, (session,))


def remove_row(connection: sqlite3.Connection, row: object) -> None:
    """Take one message out, before its row goes. Raises sqlite3.DatabaseError where it or the index is damaged."""
    sql = (
        "INSERT INTO search (search, rowid, words) SELECT 'delete', id, indexed_words(text) FROM messages WHERE id = ?"
    )
    connection.execute(sql, (row,))


def verify(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError where the index is damaged."""
    connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")


def _has_fts5(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError:
        return False
    return True


def _state(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'index'").fetchone()
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'search' AND sql LIKE '%fts5%'").fetchone()
    return row[0] if row and there else ""


def _mark(connection: sqlite3.Connection, state: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (state,))
