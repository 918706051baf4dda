"""The full-text index over everything ever said: FTS5 where this SQLite has it, a plain scan where it has not.

The index holds no text of its own (the `messages` table does) and can be made anew from it at any time.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

from ctxchat.core.messages import Message

_VERSION = "1"
"""Goes up when `words` changes, so that an older index is made anew."""

_UNSPACED = re.compile("([\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])")
_TERM = re.compile(r'"([^"]+)"|([^\s"]+)')


def searchable(message: Message) -> str:
    """All the words of a message: its text, what it called with what, and its reasoning."""
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    reasoning = [message.reasoning.text] if message.reasoning else []
    # SQLite's own functions end a text at a zero.
    return "\n".join(part for part in (message.text, *calls, *reasoning) if part).replace("\0", "\ufffd")


def words(text: str) -> str:
    """The text with room around each character of a script that is written without spaces, so that each counts as a word."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def terms(query: str) -> list[str]:
    """What is looked for: words, and what stands in double quotes as one; only what has a letter or digit in it."""
    found = [quoted or bare for quoted, bare in _TERM.findall(query.replace("\0", " "))]
    return [term.strip() for term in found if re.search(r"\w", term)]


def expression(wanted: Sequence[str], operator: str = "AND") -> str:
    """FTS5's form of it. The last word may be the beginning of one, since it may still be being typed."""
    phrases = ['"' + words(term) + '"' for term in wanted]
    return f" {operator} ".join(phrases) + (" *" if operator == "AND" and len(wanted[-1]) > 2 else "")


def prepare(connection: sqlite3.Connection, *, wanted: bool = True) -> bool:
    """Have the index ready, made anew where it is missing, stale or of an older kind; False where FTS5 is not to be had."""
    connection.create_function("indexed_words", 1, words, deterministic=True)
    if not wanted or not _has_fts5(connection):
        return False
    if _state(connection) == _VERSION:
        return True
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
    return True


def add(connection: sqlite3.Connection, rows: Iterable[tuple[int, str]], *, fts: bool) -> None:
    """Take in messages by their row id, within the caller's transaction."""
    if fts:
        entries = ((row, words(text)) for row, text in rows)
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
