"""The full-text index over everything ever said: FTS5 where this SQLite has it, a plain scan where it has not.

The index holds no text of its own (the `messages` table does) and can be made anew from it at any time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ctxchat.core.messages import Message
from ctxchat.storage.query import Unit, apart
from ctxchat.storage.ranking import fold

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
    """Have the index ready, made anew where it is missing, stale or of an older kind; False where FTS5 is not to be had."""
    connection.create_function("indexed_words", 1, apart, deterministic=True)
    if not wanted or not _has_fts5(connection):
        return False
    if _state(connection) != _VERSION:
        _make_anew(connection)
    connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'search', 'row')")
    return True


def _make_anew(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("DROP TABLE IF EXISTS search")
        connection.execute(
            "CREATE VIRTUAL TABLE search USING fts5(words, content='', tokenize='unicode61 remove_diacritics 2')"
        )
        connection.execute("INSERT INTO search (rowid, words) SELECT id, indexed_words(text) FROM messages")
        _mark(connection, _VERSION)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def add(connection: sqlite3.Connection, rows: Iterable[tuple[int, str]], *, fts: bool) -> None:
    """Take in messages by their row id, within the caller's transaction."""
    if fts:
        entries = ((row, apart(text)) for row, text in rows)
        connection.executemany("INSERT INTO search (rowid, words) VALUES (?, ?)", entries)
    else:
        _mark(connection, "stale")


def remove(connection: sqlite3.Connection, session: str, *, fts: bool) -> None:
    """Take a session's messages out, within the caller's transaction and before their rows go."""
    if fts:
        connection.execute(
            "INSERT INTO search (search, rowid, words) SELECT 'delete', id, indexed_words(text) FROM messages WHERE session = ?",
            (session,),
        )
    else:
        _mark(connection, "stale")


def _has_fts5(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError:
        return False
    return True


def _state(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'index'").fetchone()
    return row[0] if row else ""


def _mark(connection: sqlite3.Connection, state: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (state,))
