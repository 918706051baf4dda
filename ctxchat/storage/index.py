"""The full-text index over everything ever said: FTS5 where this SQLite has it, a plain scan where it has not.

It lies in a file of its own, `index-N.db`, so that no damage to it can reach the journal: it holds no text (the `messages`
table does) and is made anew from that at any time. Which file is in force, and after how many changes, both databases say.

A message is in the index unless its row id is `pending`: of an index made anew, and after an import, those are many, and they are
taken in later, the newest first, a little at a time. Until then search gives what there is.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast
from urllib.parse import quote

import msgspec

from ctxchat.core.errors import StorageError
from ctxchat.core.messages import Message
from ctxchat.core.stems import apart, indexed
from ctxchat.storage import private_files
from ctxchat.storage.around import last_row

_UNUSABLE = re.compile(
    r"no such (fts5 )?table: (fts\.)?(search|stems|state|pending)|table (fts\.)?(search|stems) has no column"
    r"|invalid fts5 file format|vtable constructor failed: (search|stems)|unknown database fts|out of step"
)

_OUT_OF_STEP = "the search index is out of step"
_FILES = "index-*.db"
_FAULTS = tuple(f"SQLITE_{name}" for name in ("CORRUPT", "CONSTRAINT", "NOTADB", "CANTOPEN", "IOERR", "READONLY"))

_TABLES = ("search", *(f"search_{part}" for part in ("data", "idx", "docsize", "config", "content")))

# `search` knows where each word of a message stands, for "…" and for what is still being typed; `stems` only which messages hold
# a word in any of its forms, which takes a fraction of the room and is what ranking goes by.
_MAKE = (
    "CREATE VIRTUAL TABLE fts.search USING fts5(words, content='', tokenize='unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE fts.stems USING fts5(words, content='', detail=none, columnsize=0,"
    " tokenize='unicode61 remove_diacritics 2')",
    "CREATE TABLE fts.state (value TEXT NOT NULL)",
    "INSERT INTO fts.state VALUES ('')",
    "CREATE TABLE fts.pending (first INTEGER NOT NULL, last INTEGER NOT NULL)",
)
_TAKE = ("INSERT INTO fts.search (rowid, words) VALUES (?, ?)", "INSERT INTO fts.stems (rowid, words) VALUES (?, ?)")
_IN_IT = "NOT EXISTS (SELECT 1 FROM fts.pending WHERE messages.id BETWEEN first AND last)"
_LEAVE = (
    "INSERT INTO fts.search (search, rowid, words)"
    f" SELECT 'delete', id, indexed_words(text) FROM messages WHERE {{}} AND {_IN_IT}",
    "INSERT INTO fts.stems (stems, rowid, words)"
    f" SELECT 'delete', id, indexed_stems(text, role, tool) FROM messages WHERE {{}} AND {_IN_IT}",
)

CACHE_KILOBYTES = -512
"""Kilobytes (so SQLite's minus) of pages that are kept at hand of this file and of the journal's. The system keeps them as well:
more would be held for as long as the program runs, and save no time that can be measured."""

MISSED = "missed"
"""Where the journal's database keeps how many changes it had lost when an index was found to know of more: its log was gone, or
cut short, and all that is left is well and older."""

_AT_ONCE, _WEIGHT = 200, 10_000
"""Messages, and their tokens, that are taken in at once: some hundredths of a second."""

FIRST_MESSAGES = 400
"""Messages of an index made anew that are taken in before it is used: the newest."""

_VERSION = "4"
"""Goes up when `apart`, `indexed` or the stemmer's minor changes, so that an older index is made anew."""

Row = tuple[int, str, str, str]
"""A message as the index takes it in: row id, text, role, the names of its tools."""


def searchable(message: Message) -> str:
    """All the words of a message: its text, what it called with what, and its reasoning."""
    return _searchable_text(message, [f"{call.name} {_decoded(call.arguments)}" for call in message.calls])


def searchable_before(message: Message) -> str:
    """As earlier builds wrote it down, with the arguments of calls as JSON; their rows stay as they are."""
    return _searchable_text(message, [f"{call.name} {call.arguments}" for call in message.calls])


def _searchable_text(message: Message, calls: list[str]) -> str:
    reasoning = [message.reasoning.text] if message.reasoning else []
    # SQLite's own functions end a text at a zero.
    return "\n".join(part for part in (message.text, *calls, *reasoning) if part).replace("\0", "\ufffd")


def _decoded(arguments: str) -> str:
    """The keys and values of a call's arguments, a line each: in JSON the first word of a line of code stands behind the `n` of
    `\\n`, as one word with it. What is no JSON stays as it is."""
    words: list[str] = []
    try:
        waiting: list[object] = [msgspec.json.decode(arguments)]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                pairs = reversed(cast("dict[str, object]", part).items())
                waiting += [each for key, value in pairs for each in (value, key)]
            elif isinstance(part, list):
                waiting += reversed(cast("list[object]", part))
            elif part is not None:
                words.append(str(part))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return arguments
    return "\n".join(words)


def prepare(connection: sqlite3.Connection, *, wanted: bool = True, mode: str = "rw") -> None:
    """Have the index ready, made anew where it is missing, out of step or of an older kind; none where FTS5 is not to be had,
    there is no room for it, or it is missing and nothing may be written (`mode` "ro")."""
    connection.create_function("indexed_words", 1, apart, deterministic=True)
    connection.create_function("indexed_stems", 3, indexed, deterministic=True)
    if wanted and _has_fts5(connection) and not attach(connection, mode=mode) and mode == "rw":
        make_anew(connection)


def attach(connection: sqlite3.Connection, *, mode: str = "rw") -> bool:
    """Whether the file that the journal's database names can be used: it is, until it is detached."""
    detach(connection)
    try:
        number = _number(_database_stamp(connection))
        path = _folder(connection) / f"index-{number}.db"
        if not number or not path.is_file():
            return False
        _open(connection, path, mode)
        if not current(connection) and not _current_at_rest(connection, mode):
            raise sqlite3.DatabaseError(_OUT_OF_STEP)
        for table in ("search", "stems"):
            connection.execute(f"SELECT rowid FROM fts.{table} WHERE {table} MATCH 'a' LIMIT 1").fetchall()
        waiting(connection)
    except (sqlite3.Error, OSError):
        detach(connection)
        return False
    return True


def attached(connection: sqlite3.Connection) -> bool:
    """Whether there is an index to work with."""
    return any(name == "fts" for _, name, _ in connection.execute("PRAGMA database_list"))


def detach(connection: sqlite3.Connection) -> None:
    """Work without the index. Its file stays."""
    with suppress(sqlite3.Error):
        connection.execute("DETACH fts")


def make_anew(connection: sqlite3.Connection) -> None:
    """Make an index in a new file beside the older ones, or go on without one where that cannot be. The newest messages are in
    it; all others that can be read are taken in by `take_in_more`. Whoever has an older file open sees that another is in force
    when they write next; those are removed."""
    detach(connection)
    folder = _folder(connection)
    made = folder / "index.db"
    missed = _missed(connection, folder)
    try:
        numbers = [_number(path.stem.replace("-", " ")) for path in folder.glob(_FILES)]
        number = max([*numbers, _number(_database_stamp(connection))]) + 1
        made = private_files.private_file(folder / f"index-{number}.db")
        _open(connection, made, "rw")
        connection.execute("PRAGMA fts.journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _MAKE:
            connection.execute(statement)
        last = last_row(connection.execute, "messages")
        if last:
            connection.execute("INSERT INTO fts.pending VALUES (1, ?)", (last,))
        _mark(connection, f"{_VERSION} {number} 0")
        if missed:
            connection.execute("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", (MISSED, str(missed)))
        connection.execute("COMMIT")
        taken = 0
        while taken < FIRST_MESSAGES and (more := take_in_more(connection)):
            taken += more
    except (sqlite3.Error, StorageError, OSError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        detach(connection)
        _remove(made)
        return
    for older in folder.glob(_FILES):
        if 0 < _number(older.stem.replace("-", " ")) < number:
            _remove(older)


def drop_index(connection: sqlite3.Connection) -> None:
    """Remove the index to make room on a full disk; it is made anew when there is some."""
    detach(connection)
    for path in _folder(connection).glob(_FILES):
        _remove(path)


def forget_old_index(connection: sqlite3.Connection) -> None:
    """Have the index that was kept among the journal's tables forgotten: dropped where every page is well. Else none of its pages
    is looked at: to drop a damaged one could give free what it wrongly points to, the journal's own pages."""
    try:
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
            connection.execute("SAVEPOINT old")
            connection.execute("DROP TABLE IF EXISTS main.search")
            connection.execute("RELEASE old")
            return
    except sqlite3.DatabaseError:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK TO old")
    marks = ", ".join("?" * len(_TABLES))
    connection.execute("PRAGMA writable_schema = ON")
    with suppress(sqlite3.OperationalError):  # where this SQLite guards its schema the tables stay, unused
        connection.execute(f"DELETE FROM main.sqlite_master WHERE tbl_name IN ({marks})", _TABLES)
        seen = connection.execute("PRAGMA schema_version").fetchone()[0]
        connection.execute(f"PRAGMA schema_version = {seen + 1}")  # whoever has read it reads it again
    connection.execute("PRAGMA writable_schema = RESET")


def damaged(problem: BaseException | None) -> bool:
    """The error is one that a damaged or missing index makes; a damaged journal may make it too."""
    name = getattr(problem, "sqlite_errorname", "") or ""
    return name.startswith(_FAULTS) or bool(_UNUSABLE.search(str(problem)))


def add_messages(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Take in messages, within the caller's transaction, in which they are written already."""
    if _changed(connection):
        pending = connection.execute("SELECT first, last FROM fts.pending").fetchall()
        # where the newest were deleted their row ids are given again
        _take_in(connection, (row for row in rows if not any(first <= row[0] <= last for first, last in pending)))


def add_later(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Leave these rows, just written in the caller's transaction, to `take_in_more`."""
    if _changed(connection):
        joined = "UPDATE fts.pending SET last = max(last, ?) WHERE first <= ? AND last >= ? - 1"
        if not connection.execute(joined, (last, first, first)).rowcount:
            connection.execute("INSERT INTO fts.pending VALUES (?, ?)", (first, last))


def waiting(connection: sqlite3.Connection) -> int:
    """How many messages are still to be taken in; at most, since rows of some may be gone."""
    return int(connection.execute("SELECT coalesce(sum(last - first + 1), 0) FROM fts.pending").fetchone()[0])


def take_in_more(connection: sqlite3.Connection) -> int:
    """Take in the newest of the messages that wait, in a short transaction of its own; how many row ids those are, 0 where none
    waits. What lies on a damaged page is left out. Raises sqlite3.DatabaseError where the index is damaged, or another
    is in force."""
    seen = _data_version(connection)
    newest = connection.execute("SELECT rowid, first, last FROM fts.pending ORDER BY last DESC LIMIT 1").fetchone()
    if newest is None:
        return 0
    span, first, last = newest
    start, block = _block(connection, first, last)  # outside: SQLite writes no more once it has met a damaged page
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not current(connection):
            raise sqlite3.DatabaseError(_OUT_OF_STEP)
        if _data_version(connection) == seen:  # else another process wrote since: the next try reads anew
            _take_in(connection, block)
            connection.execute("UPDATE fts.pending SET last = ? WHERE rowid = ?", (start - 1, span))
            connection.execute("DELETE FROM fts.pending WHERE last < first")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return last - start + 1


def _data_version(connection: sqlite3.Connection) -> tuple[int, int]:
    """Changes with what others write into either file."""
    of = (connection.execute(f"PRAGMA {file}.data_version").fetchone()[0] for file in ("main", "fts"))
    return tuple(of)  # type: ignore[return-value]


def _block(connection: sqlite3.Connection, first: int, last: int) -> tuple[int, list[Row]]:
    """The newest rows of a span, some: from which row id on, and in the order of their ids, in which an index takes them best."""
    start = max(first, last - _AT_ONCE + 1)
    try:
        sizes = connection.execute(
            "SELECT id, tokens FROM messages WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?", (first, last, _AT_ONCE)
        ).fetchall()
        weight, start = 0, first
        for place, (row, tokens) in enumerate(sizes, 1):
            weight += tokens
            if weight > _WEIGHT or place == _AT_ONCE:
                start = row
                break
        found = connection.execute(f"{_ROWS} BETWEEN ? AND ? ORDER BY id", (start, last)).fetchall()
    except (sqlite3.DatabaseError, TypeError):
        found = [row for id in range(start, last + 1) for row in _alone(connection, id)]
    return start, [row for row in found if tuple(map(type, row)) == (int, str, str, str)]


_ROWS = "SELECT id, text, role, tool FROM messages NOT INDEXED WHERE id"


def _alone(connection: sqlite3.Connection, id: int) -> list[Row]:
    """The row with this id, if it is there and can be read."""
    with suppress(sqlite3.DatabaseError):
        return connection.execute(f"{_ROWS} = ?", (id,)).fetchall()
    return []


def remove(connection: sqlite3.Connection, session: str, *, place: int = 0) -> None:
    """Take a session's messages out, those from this place of its groups on, within the caller's transaction and before their
    rows go."""
    if _changed(connection):
        for statement in _LEAVE:
            connection.execute(statement.format("session = ? AND place >= ?"), (session, place))


def remove_row(connection: sqlite3.Connection, row: object) -> None:
    """Take one message out, before its row goes. Raises sqlite3.DatabaseError where it or the index is damaged."""
    if _changed(connection):
        for statement in _LEAVE:
            connection.execute(statement.format("id = ?"), (row,))


def _take_in(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    words, stems = _TAKE
    for row, text, role, tools in rows:
        connection.execute(words, (row, apart(text)))
        connection.execute(stems, (row, indexed(text, role, tools)))


def verify(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError where the index is damaged, or does not hold every message."""
    for table in ("search", "stems"):
        connection.execute(f"INSERT INTO fts.{table} ({table}) VALUES ('integrity-check')")
    sound = connection.execute("PRAGMA fts.quick_check(1)").fetchone()[0] == "ok"
    held = f"SELECT (SELECT count(*) FROM fts.search_docsize) = (SELECT count(*) FROM messages WHERE {_IN_IT})"
    if not sound or not current(connection) or not connection.execute(held).fetchone()[0]:
        raise sqlite3.DatabaseError(_OUT_OF_STEP)


def _changed(connection: sqlite3.Connection) -> bool:
    """Write down that the index changes with this transaction, or that it is not kept. Raises sqlite3.DatabaseError where
    another file is in force by now, or the one at hand missed something."""
    now = _database_stamp(connection)
    if not attached(connection):
        _mark_stale(connection, _number(now))
        return False
    if not current(connection):
        raise sqlite3.DatabaseError(_OUT_OF_STEP)
    version, number, changes = now.split()
    _mark(connection, f"{version} {number} {int(changes) + 1}")
    return True


def _missed(connection: sqlite3.Connection, folder: Path) -> int:
    """Changes that the index in force knows of and the journal's database does not. Each is written there first."""
    try:
        path = folder / f"index-{_number(_database_stamp(connection))}.db"
        if not path.is_file():
            return 0
        connection.execute("ATTACH ? AS old", (f"file:{quote(str(path.resolve()))}?mode=rw",))
        connection.execute("BEGIN IMMEDIATE")  # nobody writes between the two looks
        told = _database_stamp(connection).split()
        seen = str(connection.execute("SELECT value FROM old.state").fetchone()[0]).split()
        return max(0, int(seen[2]) - int(told[2])) if told[:2] == seen[:2] and told[0] == _VERSION else 0
    except (sqlite3.Error, TypeError, ValueError, IndexError):  # it is damaged
        return 0
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with suppress(sqlite3.Error):
            connection.execute("DETACH old")


def _has_fts5(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError:
        return False
    return True


def _open(connection: sqlite3.Connection, path: Path, mode: str) -> None:
    connection.execute("ATTACH ? AS fts", (f"file:{quote(str(path.resolve()))}?mode={mode}",))
    connection.execute("PRAGMA fts.secure_delete = FAST")
    connection.execute("PRAGMA fts.synchronous = NORMAL")  # what a power cut takes is made anew
    connection.execute(f"PRAGMA fts.cache_size = {CACHE_KILOBYTES}")


def _folder(connection: sqlite3.Connection) -> Path:
    return next(Path(path).parent for _, name, path in connection.execute("PRAGMA database_list") if name == "main")


def _remove(path: Path) -> None:
    for part in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _database_stamp(connection: sqlite3.Connection) -> str:
    """What the journal's database says: version, number of the file, changes."""
    found = connection.execute("SELECT value FROM main.meta WHERE key = 'index'").fetchone()
    return str(found[0]) if found else ""


def _number(named: str) -> int:
    """The number of the file, 0 for none. Also of a file's own name, with a blank for the hyphen."""
    parts = named.split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0


def current(connection: sqlite3.Connection) -> bool:
    """The attached file is the one in force, and holds all that is told to be in it."""
    named = _database_stamp(connection)
    held = connection.execute("SELECT value FROM fts.state").fetchone()
    return named.startswith(f"{_VERSION} ") and held is not None and held[0] == named


def _current_at_rest(connection: sqlite3.Connection, mode: str) -> bool:
    """The same while nobody writes: else the look at one database may have been before a change, at the other after it."""
    if mode != "rw":
        return False
    connection.execute("BEGIN IMMEDIATE")
    try:
        return current(connection)
    finally:
        connection.execute("ROLLBACK")


def _mark(connection: sqlite3.Connection, state: str) -> None:
    connection.execute("INSERT OR REPLACE INTO main.meta VALUES ('index', ?)", (state,))
    connection.execute("UPDATE fts.state SET value = ?", (state,))


def _mark_stale(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("INSERT OR REPLACE INTO main.meta VALUES ('index', ?)", (f"stale {number} 0",))
