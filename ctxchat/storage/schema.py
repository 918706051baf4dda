"""Defines the tables, and migrates older databases: each step makes a copy first and is one transaction.

A kill at any time leaves the version before or after a step. The journal is authoritative; `sessions`, `groups`, `messages`,
`compactions` and `covers` are derived from it, so that lists, search and the archive need not read all of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ctxchat.core.errors import StorageError
from ctxchat.storage import index
from ctxchat.storage.faults import unreadable

APPLICATION_ID = 0x43745874
"""SQLite's application id of ctxchat's databases."""


class StoredTable(msgspec.Struct, frozen=True):
    """A table. `key` is the column that identifies a row within a session, empty where the rows belong to no session. `copied`
    are the columns that a repair copies, empty where it rebuilds the rows from the journal."""

    key: str = ""
    copied: str = ""


TABLES = {
    "covers": StoredTable("rowid"),
    "compactions": StoredTable("id"),
    "messages": StoredTable("id"),
    "groups": StoredTable("place"),
    "journal": StoredTable("id"),
    "partials": StoredTable("session", copied="session, at, body"),
    "origins": StoredTable("session", copied="session, source, path, size, changed, entries"),
    "sessions": StoredTable(),
    "doomed": StoredTable(copied="session"),
    "meta": StoredTable(copied="key, value"),
}
"""All tables, those whose rows refer to other tables first. Decides what is deleted with a session and what a repair copies."""

OF_A_SESSION = {name: table.key for name, table in TABLES.items() if table.key}
"""The tables with rows of sessions, in the column `session`, each with the column that identifies a row within a session."""

Migration = Sequence[str | Callable[[sqlite3.Connection], None]]

_FIRST: Migration = (
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY, created TEXT NOT NULL, updated TEXT NOT NULL, title TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT '', messages INTEGER NOT NULL DEFAULT 0,
        used INTEGER NOT NULL DEFAULT 0, compactions INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX sessions_by_time ON sessions (updated)",
    """CREATE TABLE journal (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, seq INTEGER NOT NULL,
        at TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (session, seq))""",
    """CREATE TABLE partials (
        session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE, at TEXT NOT NULL, body BLOB NOT NULL)""",
    # `place` counts the groups of a session from 0; `entry` is the journal's seq.
    """CREATE TABLE groups (
        session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, place INTEGER NOT NULL, id TEXT NOT NULL,
        kind TEXT NOT NULL, turn INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (session, place)) WITHOUT ROWID""",
    "CREATE INDEX groups_by_id ON groups (session, id)",
    """CREATE TABLE messages (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, seq INTEGER NOT NULL,
        place INTEGER NOT NULL, role TEXT NOT NULL, at TEXT NOT NULL, tokens INTEGER NOT NULL, text TEXT NOT NULL)""",
    "CREATE INDEX messages_by_seq ON messages (session, seq)",
    """CREATE TABLE compactions (
        session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, id TEXT NOT NULL, entry INTEGER NOT NULL,
        at TEXT NOT NULL, reason TEXT NOT NULL, strategy TEXT NOT NULL, model TEXT NOT NULL, before INTEGER NOT NULL,
        after INTEGER NOT NULL, messages INTEGER NOT NULL, seconds REAL NOT NULL, cost_usd REAL NOT NULL,
        undone INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, id))""",
    """CREATE TABLE covers (
        session TEXT NOT NULL, compaction TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        FOREIGN KEY (session, compaction) REFERENCES compactions ON DELETE CASCADE)""",
    "CREATE INDEX covers_by_compaction ON covers (session, compaction)",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # Sessions whose deletion, or whose import, is not finished: it is completed at the next start.
    "CREATE TABLE doomed (session TEXT PRIMARY KEY)",
)

# The names of the tools that a message called or is the result of, so that search can tell an answer from its echo.
_TOOLS: Migration = ("ALTER TABLE messages ADD COLUMN tool TEXT NOT NULL DEFAULT ''",)

# Whether `used` is an estimate and not counted by a server. Where no reply was ever counted it is 0, and estimated at each query.
_ESTIMATED: Migration = ("ALTER TABLE sessions ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0",)

# Messages that undo in part brought back; `after` and `messages` then describe what is left of the compaction.
_IN_PART: Migration = ("ALTER TABLE compactions ADD COLUMN put_back INTEGER NOT NULL DEFAULT 0",)

# The folder a session was begun in, empty where unknown; and whether an agent began it, for a task of another session.
_FOLDER: Migration = (
    "ALTER TABLE sessions ADD COLUMN folder TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN delegated INTEGER NOT NULL DEFAULT 0",
)

# The search index moves to a file of its own.
_OWN_INDEX: Migration = (index.remove_embedded_index,)

# The origin of an imported session: the agent and its id there, the file with its size and time then, and the number of entries
# imported. A session with more entries was continued in ctxchat.
_ORIGINS: Migration = (
    """CREATE TABLE origins (
        session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE, source TEXT NOT NULL UNIQUE, path TEXT NOT NULL,
        size INTEGER NOT NULL, changed INTEGER NOT NULL, entries INTEGER NOT NULL)""",
    "CREATE INDEX origins_by_path ON origins (path)",
)

MIGRATIONS: Sequence[Migration] = (_FIRST, _TOOLS, _ESTIMATED, _IN_PART, _FOLDER, _OWN_INDEX, _ORIGINS)
"""Step n turns version n into version n + 1. Never edited once released, only added to."""


def version(connection: sqlite3.Connection) -> int:
    """The version of this database, 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_ours(connection: sqlite3.Connection, path: Path, newest: int) -> None:
    """Raise StorageError for a database of another program or of a newer ctxchat."""
    connection.execute("BEGIN")  # one consistent read of all three: another process may be creating the tables
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        own_version = version(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if tables and application != APPLICATION_ID:
        raise unreadable(path, "it belongs to another program")
    if own_version > newest:
        raise StorageError(f"{path} was written by a newer ctxchat.", "Update ctxchat to open it.")


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[Migration], backup: Callable[[int], Path]
) -> list[Path]:
    """Migrate the database to the newest version; the paths of the copies made before each step. Raises sqlite3.Error; the failed
    step then changed nothing."""
    copies: list[Path] = []
    first = version(connection)
    for number in range(first, len(migrations)):
        if first:
            copies.append(backup(number))
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in migrations[number]:
                connection.execute(statement) if isinstance(statement, str) else statement(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return copies
