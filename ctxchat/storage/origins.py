"""Writes imported sessions, remembers their origin, and updates them when their file has grown. No session is imported twice.

A session that was continued in ctxchat is not updated: its newer version is imported as another session.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from ctxchat.core.errors import CtxchatError
from ctxchat.core.journal import Record
from ctxchat.core.sanitize import whole_text
from ctxchat.storage import entries, index, private_files, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.faults import faults

_COPIED_BYTES = 1_000_000  # bytes copied in one transaction

_WEIGHTS = {
    "journal": ("id", "length(body)"),
    "groups": ("place", "100"),
    "messages": ("id", "4 * tokens + 200"),  # an estimate: the length of a text is only known after reading it
    "covers": ("rowid", "50"),
}
"""The key of each table, and SQL for the approximate bytes of a row."""

_DERIVED_COLUMNS = "title, used, estimated, messages, compactions"


class SessionOrigin(msgspec.Struct, frozen=True):
    """The origin of an imported session: `source` is the agent and its id for the session, `path` the file; `size` (bytes) and
    `changed` (nanoseconds since 1970) are those of the file then."""

    source: str
    path: str
    size: int
    changed: int


class SessionListing(msgspec.Struct, frozen=True):
    """The properties of a session for lists, which are known once all of it was read. `parent` is the beginning of the `source`
    of its parent."""

    messages: int
    created: str = ""
    updated: str = ""
    folder: str = ""
    model: str = ""
    parent: str = ""
    delegated: bool = False


class NothingNew(CtxchatError):
    """The session was imported before and its file has nothing new; `session` is its id."""

    def __init__(self, session: str) -> None:
        super().__init__(f"{session} is here already.")
        self.session = session


_LOOKED_AT = "brought in: "
"""Prefix of keys in `meta` for files that were read and to which no session refers."""


def imported_files(database: Database) -> dict[str, tuple[int, int]]:
    """The size and time of each imported file, at its import, by path."""
    looked_at = f"SELECT substr(key, {len(_LOOKED_AT) + 1}), value FROM meta WHERE key GLOB '{_LOOKED_AT}*'"
    files = [(path, *map(int, stat.split())) for path, stat in database.query(looked_at)]
    files += database.query("SELECT path, size, changed FROM origins")
    return {path: (size, at) for path, size, at in sorted(files, key=lambda file: file[2])}


def session_of(database: Database, source: str) -> str:
    """The id of the session imported from a source; empty where there is none."""
    rows = database.query("SELECT session FROM origins WHERE source = ?", (source,))
    return str(rows[0][0]) if rows else ""


def import_session(
    database: Database,
    origin: SessionOrigin,
    records: Callable[[str], Iterable[Record]],
    about: Callable[[], SessionListing],
    going_on: Callable[[], None] = lambda: None,
) -> tuple[str, bool]:
    """Write an imported session, or update the one imported earlier; its id, and whether it is new. `records` is called once,
    with the id; `about` after that. All rows are first written to a temporary database. Those of a new session are then copied in
    several transactions, so that others can write in between; it becomes visible with the last one. Of an updated session only
    the entries that differ are copied, in one transaction. `going_on` is called between transactions; an error it raises ends the
    import.

    Raises NothingNew, SessionBusy where the earlier version is open elsewhere, and StorageError, having changed nothing.
    """
    older = session_of(database, origin.source)
    with ExitStack() as stack:
        if older:
            stack.enter_context(sessions.hold_session(database, older))
        is_update = bool(older) and not _touched(database, older)
        at = database.now()
        session = older if is_update else sessions.new_id(at)
        if not is_update:
            stack.enter_context(_hidden_session(database, session))
        aside = stack.enter_context(_file_aside(private_files.session_folder(database.folder, session)))
        with faults(database.folder):
            entry = _make_ready(database, aside, session, records(session), at)
        listing = about()
        before = _extent(database, older)
        if older and (listing.messages < before[0] or (listing.messages, entry) == before):
            raise NothingNew(older)
        database.query("ATTACH ? AS aside", (f"file:{quote(str(aside.resolve()))}?mode=rw",))
        stack.callback(database.query, "DETACH aside")
        since = _first_that_differs(database, session, entry) if is_update else 0
        left: Sequence[tuple[str, str]] = [] if is_update else _copied_in_pieces(database, _pieces(database), going_on)

        def write_session(connection: sqlite3.Connection) -> None:
            if is_update:
                _renew(connection, session, since)
            else:
                connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (session, at, at))
                connection.execute("DELETE FROM doomed WHERE session = ?", (session,))
                for table, where in (("compactions", "1"), *left):
                    _copy(connection, table, where)
            connection.execute(
                f"UPDATE main.sessions SET ({_DERIVED_COLUMNS}) = (SELECT {_DERIVED_COLUMNS} FROM aside.sessions) WHERE id = ?",
                (session,),
            )
            _describe(connection, session, listing, at, beside="" if is_update else older)
            connection.execute("DELETE FROM origins WHERE source = ?", (origin.source,))
            connection.execute(
                "INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?)",
                (session, origin.source, origin.path, origin.size, origin.changed, entry),
            )

        database.write(write_session)
        return session, not older


@contextmanager
def _hidden_session(database: Database, session: str) -> Generator[None]:
    """Mark a new session as `doomed` while it is written, and hold its lock: it is in no list until it has its row, and what was
    written is deleted if the block fails, after a kill at the next start."""
    try:
        with private_files.lock(private_files.lock_path(database.folder, session)):
            with database.transaction() as connection:
                connection.execute("INSERT INTO doomed VALUES (?)", (session,))
            yield
    except BaseException:
        database.finish_deletions()
        raise


@contextmanager
def _file_aside(folder: Path) -> Generator[Path]:
    """An empty temporary file in a session's folder, deleted at the end."""
    path = folder / private_files.ASIDE
    with faults(path):
        path.unlink(missing_ok=True)  # left by a killed process
    private_files.private_file(path)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _make_ready(database: Database, aside: Path, session: str, records: Iterable[Record], at: str) -> int:
    """Write the rows of a session into the database `aside`, with the same tables; the number of its entries."""
    tables = database.query("SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")  # no rollback needed: after an error the file is deleted
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for (table,) in tables:
            connection.execute(table)
        connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (session, at, at))
        entries.append(connection, session, records, at, database.count)
        connection.execute("COMMIT")
        return int(connection.execute("SELECT count(*) FROM journal").fetchone()[0])


def _pieces(database: Database) -> list[tuple[str, str]]:
    """The rows to copy, in pieces: table and SQL condition of each. Without the compactions, which refer to the session's row."""
    return [
        (table, f"{key} BETWEEN {first} AND {last}")
        for table, (key, weight) in _WEIGHTS.items()
        for first, last in database.query(
            f"SELECT min(at), max(at) FROM (SELECT {key} AS at, sum({weight}) OVER (ORDER BY {key} ROWS UNBOUNDED PRECEDING)"
            f" / {_COPIED_BYTES} AS piece FROM aside.{table}) GROUP BY piece"
        )
    ]


def _copied_in_pieces(
    database: Database, pieces: Sequence[tuple[str, str]], going_on: Callable[[], None]
) -> Sequence[tuple[str, str]]:
    """Copy the pieces in a transaction each, unless there are few of them; the pieces that are left to copy."""
    if len(pieces) <= len(_WEIGHTS):
        return pieces
    for table, where in pieces:
        going_on()
        began = time.monotonic()
        database.write(lambda connection, table=table, where=where: _copy(connection, table, where), linked=False)
        time.sleep(time.monotonic() - began)  # other processes poll for the lock, and need time to get it
    return ()


def _copy(connection: sqlite3.Connection, table: str, where: str) -> None:
    """Copy rows from the temporary database; messages are left pending for the search index."""
    if table == "journal":
        connection.execute(
            "INSERT INTO main.journal (session, seq, at, body)"
            f" SELECT session, seq, at, body FROM aside.journal WHERE {where} ORDER BY id"
        )
    elif table == "messages":
        last = int(connection.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchone()[0])
        copied = connection.execute(
            "INSERT INTO main.messages (session, seq, place, role, at, tokens, text, tool)"
            f" SELECT session, seq, place, role, at, tokens, text, tool FROM aside.messages WHERE {where} ORDER BY id"
        ).rowcount
        if copied:
            index.add_later(connection, last + 1, last + copied)
    else:
        order = "rowid" if table == "covers" else "place" if table == "groups" else "entry"
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM aside.{table} WHERE {where} ORDER BY {order}")


def _first_that_differs(database: Database, session: str, entry: int) -> int:
    """The number of the first entry that differs from the temporary database, or that is missing here; `entry + 1` where none
    does."""
    rows = database.query(
        "SELECT min(seq) FROM aside.journal new WHERE NOT EXISTS (SELECT 1 FROM main.journal old"
        " WHERE old.session = ? AND old.seq = new.seq AND old.body = new.body)",
        (session,),
    )
    return rows[0][0] or entry + 1


def _renew(connection: sqlite3.Connection, session: str, since: int) -> None:
    """Replace the session's rows from entry number `since` on by those of the temporary database."""
    place = "SELECT coalesce(min(place), 1 << 40) FROM {}.groups WHERE session = ? AND entry >= ?"
    old, new = (connection.execute(place.format(file), (session, since)).fetchone()[0] for file in ("main", "aside"))
    index.remove(connection, session, place=old)
    for table, where, first in (
        ("covers", "rowid >= ?", 0),
        ("compactions", "entry >= ?", 0),
        ("messages", "place >= ?", old),
        ("groups", "place >= ?", old),
        ("journal", "seq >= ?", since),
    ):
        connection.execute(f"DELETE FROM main.{table} WHERE session = ? AND {where}", (session, first))
    for table, where in (
        ("journal", f"seq >= {since}"),
        ("groups", f"place >= {new}"),
        ("messages", f"place >= {new}"),
        ("compactions", "1"),
        ("covers", "1"),
    ):
        _copy(connection, table, where)


def remember(database: Database, session: str, origin: SessionOrigin) -> None:
    """Store the origin of a session that counts as begun in ctxchat; of two with the same source the newer one keeps it. Raises
    StorageError."""
    with database.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?, 0)",
            (session, origin.source, origin.path, origin.size, origin.changed),
        )


def remember_file(database: Database, file: SessionOrigin) -> None:
    """Store size and time of a file that has nothing new, so that it is not read again. Raises StorageError."""
    with database.transaction() as connection:
        updated = connection.execute(
            "UPDATE origins SET size = ?, changed = ? WHERE source = ? AND path = ?",
            (file.size, file.changed, file.source, file.path),
        ).rowcount
        if not updated:  # the file has no session, or one that another file has too
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"{_LOOKED_AT}{file.path}", f"{file.size} {file.changed}")
            )


def _touched(database: Database, session: str) -> bool:
    """Whether something was written to a session since its import."""
    rows = database.query(
        "SELECT 1 FROM journal JOIN origins USING (session) WHERE session = ? AND seq > entries LIMIT 1", (session,)
    )
    return bool(rows)


def _extent(database: Database, session: str) -> tuple[int, int]:
    """The number of messages and entries at a session's import."""
    entry = database.query("SELECT entries FROM origins WHERE session = ?", (session,))
    if not entry:
        return 0, 0
    messages = database.query(
        "SELECT count(*) FROM messages JOIN groups USING (session, place) WHERE session = ? AND entry <= ?",
        (session, *entry[0]),
    )
    return int(messages[0][0]), int(entry[0][0])


def _describe(connection: sqlite3.Connection, session: str, about: SessionListing, at: str, *, beside: str) -> None:
    """Write the properties of a session into its row. `beside` is the id of an earlier version that was continued, which becomes
    the parent."""
    parent = beside
    if about.parent and not parent:
        row = connection.execute(
            "SELECT session FROM origins WHERE substr(source, 1, ?) = ? AND session <> ? LIMIT 1",
            (len(about.parent) + 1, f"{about.parent}:", session),
        ).fetchone()
        parent = row[0] if row else ""
    connection.execute(
        "UPDATE sessions SET created = ?, updated = ?, folder = ?, model = ?, parent = ?, delegated = ? WHERE id = ?",
        (
            about.created or at,
            about.updated or at,
            whole_text(about.folder),
            whole_text(about.model),
            parent,
            about.delegated and bool(parent),
            session,
        ),
    )
