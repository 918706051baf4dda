"""Deletes a session's rows: in one transaction; in pieces where the disk is full or pages of the file are damaged.

Rows on a damaged page can be neither read nor deleted; nothing finds them any more once the session's own row is gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from ctxchat.core.errors import StorageError
from ctxchat.storage import index
from ctxchat.storage.database import Database
from ctxchat.storage.faults import NoRoom
from ctxchat.storage.schema import OF_A_SESSION

_ROWS_AT_ONCE = 200  # rows deleted in one transaction, when it goes in pieces


def remove(database: Database, session: str) -> None:
    """Delete all rows of a session; its folder is left to `finish_deletions`. Raises StorageError, with the session as it was."""
    try:
        database.write(lambda connection: _remove_all(connection, session))
    except NoRoom:
        database.free_disk_space()  # for the write-ahead log, in which deletions are written first
        _piece_by_piece(database, session)
    except StorageError as problem:
        if not index.damaged(problem.__cause__):
            raise
        _piece_by_piece(database, session)


def _remove_all(connection: sqlite3.Connection, session: str) -> None:
    index.remove(connection, session)
    _delete_session_row(connection, session)


def _piece_by_piece(database: Database, session: str) -> None:
    """Delete the session's own row first, so that it is gone whatever fails later; then the other rows in pieces, emptying the
    log after each. Raises NoRoom where there is still too little room, with the session as it was."""
    with database.transaction(linked=False) as connection:  # rows that point to the session go later
        _delete_session_row(connection, session)
    for table, key in OF_A_SESSION.items():
        with suppress(StorageError):  # what cannot be read or deleted now is left to `finish_deletions`
            rows = database.query(f"SELECT session, {key} FROM {table} WHERE session = ?", (session,))
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                _delete_rows(database, table, key, rows[first : first + _ROWS_AT_ONCE])
                database.write_back()


def _delete_rows(database: Database, table: str, key: str, rows: Sequence[tuple[str, object]]) -> None:
    """Delete these rows; where that fails, each half of them: SQLite ends a transaction that meets a damaged page."""
    try:
        with database.transaction(linked=False) as connection:
            for row in rows:
                if table == "messages":
                    index.remove_row(connection, row[1])
                connection.execute(f"DELETE FROM {table} WHERE session = ? AND {key} = ?", row)
    except StorageError as problem:
        if not (index.damaged(problem.__cause__) or isinstance(problem, NoRoom)):
            raise
        half = len(rows) // 2
        if half:
            _delete_rows(database, table, key, rows[:half])
            _delete_rows(database, table, key, rows[half:])
        elif table == "messages":
            _clear_text(database, rows[0][1])


def _clear_text(database: Database, message: object) -> None:
    """Empty the text of a message whose row cannot be deleted, as where a damaged index still names it."""
    with suppress(StorageError), database.transaction(linked=False) as connection:
        connection.execute("UPDATE messages SET text = '' WHERE id = ?", (message,))


def _delete_session_row(connection: sqlite3.Connection, session: str) -> None:
    """Also marks the session as `doomed`: its deletion is to be finished."""
    connection.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
