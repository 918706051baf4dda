"""A session taken out of the tables: at once, and where pages of the file are damaged piece by piece, around them.

What lies on a damaged page can be neither read nor taken out; with its session gone nothing finds it any more.
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

_ROWS_AT_ONCE = 200  # rows of a transaction where there is little room


def remove(database: Database, session: str) -> None:
    """All rows of a session; its folder is left to `finish_deletions`. Raises StorageError, having changed nothing."""
    try:
        database.write(lambda connection: _remove_all(connection, session))
    except NoRoom:
        # What can be made anew gives its room to the log in which the deleting is written.
        database.give_room()
        _piece_by_piece(database, session)
    except StorageError as problem:
        if not index.damaged(problem.__cause__):
            raise
        _piece_by_piece(database, session)


def _remove_all(connection: sqlite3.Connection, session: str) -> None:
    index.remove(connection, session)
    _forget(connection, session)


def _piece_by_piece(database: Database, session: str) -> None:
    """The session first, so that it is gone whatever is met after it; then its rows, each piece written back before the next.
    Raises NoRoom where there is still too little, with the session as it was."""
    with database.transaction(linked=False) as connection:
        _forget(connection, session)
    for table, key in OF_A_SESSION.items():
        with suppress(StorageError):  # which rows there are is on a damaged page
            rows = database.query(f"SELECT session, {key} FROM {table} WHERE session = ?", (session,))
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                _take_out(database, table, key, rows[first : first + _ROWS_AT_ONCE])
                database.write_back()


def _take_out(database: Database, table: str, key: str, rows: Sequence[tuple[str, object]]) -> None:
    """These rows, else each half of them: SQLite writes no more in a transaction that has met a damaged page."""
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
            _take_out(database, table, key, rows[:half])
            _take_out(database, table, key, rows[half:])
        elif table == "messages":
            _blank(database, rows[0][1])


def _blank(database: Database, message: object) -> None:
    """Its words at least, where the index is damaged and still names its row."""
    with suppress(StorageError), database.transaction(linked=False) as connection:
        connection.execute("UPDATE messages SET text = '' WHERE id = ?", (message,))


def _forget(connection: sqlite3.Connection, session: str) -> None:
    connection.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
