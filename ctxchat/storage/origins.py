"""Sessions brought in from elsewhere: written once, renewed when their file has grown, never twice.

What a person did with such a session here is theirs: one that was gone on with is not renewed, its newer form stands beside it.
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

_COPIED_BYTES = 1_000_000  # bytes that are copied at once

_WEIGHTS = {
    "journal": ("id", "length(body)"),
    "groups": ("place", "100"),
    "messages": ("id", "4 * tokens + 200"),  # the length of a text is told by reading it
    "covers": ("rowid", "50"),
}
"""How the rows of a table are told apart, and how many bytes each has, about."""

_TOLD = "title, used, estimated, messages, compactions"


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


_LOOKED_AT = "brought in: "
"""How rows of `meta` begin that name a file to which no session points."""


def imported_files(database: Database) -> dict[str, tuple[int, int]]:
    """Every file that was brought in, with its size and time then."""
    looked_at = f"SELECT substr(key, {len(_LOOKED_AT) + 1}), value FROM meta WHERE key GLOB '{_LOOKED_AT}*'"
    told = [(path, *map(int, stat.split())) for path, stat in database.query(looked_at)]
    told += database.query("SELECT path, size, changed FROM origins")
    return {path: (size, at) for path, size, at in sorted(told, key=lambda one: one[2])}


def session_of(database: Database, source: str) -> str:
    """The session of a source; empty where it was not brought in, or deleted since."""
    found = database.query("SELECT session FROM origins WHERE source = ?", (source,))
    return str(found[0][0]) if found else ""


def bring(
    database: Database,
    origin: SessionOrigin,
    records: Callable[[str], Iterable[Record]],
    about: Callable[[], SessionListing],
    going_on: Callable[[], None] = lambda: None,
) -> tuple[str, bool]:
    """Write a session, or the newer form of one; its id, and whether it is new here. `records` is told the session's id and asked
    once; `about` is asked after that. All rows are made ready in a database aside, then copied: those of a new session in pieces
    between which others write, and nobody sees it before it is whole; of one that has grown what differs, in one transaction.
    `going_on` is called between the pieces: what it raises ends it.

    Raises NothingNew, SessionBusy where the older form is open elsewhere, and StorageError, having changed nothing.
    """
    older = session_of(database, origin.source)
    with ExitStack() as held:
        if older:
            held.enter_context(sessions.hold_session(database, older))
        renewed = bool(older) and not _touched(database, older)
        at = database.now()
        row = older if renewed else sessions.new_id(at)
        if not renewed:
            held.enter_context(_unseen(database, row))
        aside = held.enter_context(_file_aside(private_files.session_folder(database.folder, row)))
        with faults(database.folder):
            entry = _make_ready(database, aside, row, records(row), at)
        told = about()
        before = _extent(database, older)
        if older and (told.messages < before[0] or (told.messages, entry) == before):
            raise NothingNew(older)
        database.query("ATTACH ? AS aside", (f"file:{quote(str(aside.resolve()))}?mode=rw",))
        held.callback(database.query, "DETACH aside")
        since = _first_that_differs(database, row, entry) if renewed else 0
        left: Sequence[tuple[str, str]] = [] if renewed else _copied_in_pieces(database, _pieces(database), going_on)

        def write_session(connection: sqlite3.Connection) -> None:
            if renewed:
                _renew(connection, row, since)
            else:
                connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (row, at, at))
                connection.execute("DELETE FROM doomed WHERE session = ?", (row,))
                for table, where in (("compactions", "1"), *left):
                    _copy(connection, table, where)
            connection.execute(
                f"UPDATE main.sessions SET ({_TOLD}) = (SELECT {_TOLD} FROM aside.sessions) WHERE id = ?", (row,)
            )
            _describe(connection, row, told, at, beside="" if renewed else older)
            connection.execute("DELETE FROM origins WHERE source = ?", (origin.source,))
            connection.execute(
                "INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?)",
                (row, origin.source, origin.path, origin.size, origin.changed, entry),
            )

        database.write(write_session)
        return row, not older


@contextmanager
def _unseen(database: Database, session: str) -> Generator[None]:
    """A session that is in no list until its row is written. What is there of it until then counts as deleted, and goes when
    this fails; after a kill at the next start."""
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
    """An empty file of our own in a session's folder, gone at the end."""
    path = folder / private_files.ASIDE
    with faults(path):
        path.unlink(missing_ok=True)  # a kill left it
    private_files.private_file(path)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _make_ready(database: Database, aside: Path, session: str, records: Iterable[Record], at: str) -> int:
    """Write the rows of a session into a database of its own, with tables like ours; how many entries it has."""
    tables = database.query("SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")  # where anything fails the file is thrown away
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for (table,) in tables:
            connection.execute(table)
        connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (session, at, at))
        entries.append(connection, session, records, at, database.count)
        connection.execute("COMMIT")
        return int(connection.execute("SELECT count(*) FROM journal").fetchone()[0])


def _pieces(database: Database) -> list[tuple[str, str]]:
    """The rows that are ready aside, but for the few that point to the session's own: tables, and which rows of each."""
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
    """Copy these unless they are few; which are left."""
    if len(pieces) <= len(_WEIGHTS):
        return pieces
    for table, where in pieces:
        going_on()
        began = time.monotonic()
        database.write(lambda connection, table=table, where=where: _copy(connection, table, where), linked=False)
        time.sleep(time.monotonic() - began)  # whoever waits to write looks only now and then whether it is their turn
    return ()


def _copy(connection: sqlite3.Connection, table: str, where: str) -> None:
    """Copy rows; the search index takes the words of messages in later."""
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
    """The first entry that is not here as it is aside, where there are so many."""
    found = database.query(
        "SELECT min(seq) FROM aside.journal new WHERE NOT EXISTS (SELECT 1 FROM main.journal old"
        " WHERE old.session = ? AND old.seq = new.seq AND old.body = new.body)",
        (session,),
    )
    return found[0][0] or entry + 1


def _renew(connection: sqlite3.Connection, session: str, since: int) -> None:
    """The rows that are ready aside in place of the session's own, from this entry on."""
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
    """Where a session comes from that counts as begun here; of two, the newer. Raises StorageError."""
    with database.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?, 0)",
            (session, origin.source, origin.path, origin.size, origin.changed),
        )


def seen(database: Database, file: SessionOrigin) -> None:
    """Remember what a file is like in which nothing is new, so that it is not read again. Raises StorageError."""
    with database.transaction() as connection:
        told = connection.execute(
            "UPDATE origins SET size = ?, changed = ? WHERE source = ? AND path = ?",
            (file.size, file.changed, file.source, file.path),
        ).rowcount
        if not told:  # it says nothing, or what another file says too
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"{_LOOKED_AT}{file.path}", f"{file.size} {file.changed}")
            )


def _touched(database: Database, session: str) -> bool:
    """Something was written in it since it was brought in."""
    found = database.query(
        "SELECT 1 FROM journal JOIN origins USING (session) WHERE session = ? AND seq > entries LIMIT 1", (session,)
    )
    return bool(found)


def _extent(database: Database, session: str) -> tuple[int, int]:
    """How many messages and entries it was brought in with."""
    entry = database.query("SELECT entries FROM origins WHERE session = ?", (session,))
    if not entry:
        return 0, 0
    messages = database.query(
        "SELECT count(*) FROM messages JOIN groups USING (session, place) WHERE session = ? AND entry <= ?",
        (session, *entry[0]),
    )
    return int(messages[0][0]), int(entry[0][0])


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
            whole_text(about.folder),
            whole_text(about.model),
            parent,
            about.delegated and bool(parent),
            session,
        ),
    )
