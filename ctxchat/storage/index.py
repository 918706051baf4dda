"""Builds and updates the full-text index over all messages. Needs SQLite's FTS5; without it search scans the messages.

The index is a database file of its own, `index-N.db`, so that damage to it cannot reach the journal. It holds no text (that is in
the `messages` table) and can be rebuilt from the messages at any time. Both databases store a stamp, the number of the index file
in force and of changes made to it; the index is up to date where the stamps agree.

A message is in the index unless its row id is `pending`. After a rebuild or an import many are pending: they are added later in
small batches, the newest first, and until then search finds what the index holds.
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

_DAMAGE_MESSAGES = re.compile(
    r"no such (fts5 )?table: (fts\.)?(search|stems|state|pending)|table (fts\.)?(search|stems) has no column"
    r"|invalid fts5 file format|vtable constructor failed: (search|stems)|unknown database fts|out of step"
)

_OUT_OF_STEP = "the search index is out of step"
_FILES = "index-*.db"
_DAMAGE_CODES = tuple(f"SQLITE_{name}" for name in ("CORRUPT", "CONSTRAINT", "NOTADB", "CANTOPEN", "IOERR", "READONLY"))

_TABLES = ("search", *(f"search_{part}" for part in ("data", "idx", "docsize", "config", "content")))

# `search` has the positions of each word, for quoted phrases and for the prefix that is still being typed; `stems` only which
# messages hold a word in any of its forms: ranking needs no more, and it takes a fraction of the space.
_CREATES = (
    "CREATE VIRTUAL TABLE fts.search USING fts5(words, content='', tokenize='unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE fts.stems USING fts5(words, content='', detail=none, columnsize=0,"
    " tokenize='unicode61 remove_diacritics 2')",
    "CREATE TABLE fts.state (value TEXT NOT NULL)",
    "INSERT INTO fts.state VALUES ('')",
    "CREATE TABLE fts.pending (first INTEGER NOT NULL, last INTEGER NOT NULL)",
)
_INSERTS = ("INSERT INTO fts.search (rowid, words) VALUES (?, ?)", "INSERT INTO fts.stems (rowid, words) VALUES (?, ?)")
_NOT_PENDING = "NOT EXISTS (SELECT 1 FROM fts.pending WHERE messages.id BETWEEN first AND last)"
_DELETES = (
    "INSERT INTO fts.search (search, rowid, words)"
    f" SELECT 'delete', id, indexed_words(text) FROM messages WHERE {{}} AND {_NOT_PENDING}",
    "INSERT INTO fts.stems (stems, rowid, words)"
    f" SELECT 'delete', id, indexed_stems(text, role, tool) FROM messages WHERE {{}} AND {_NOT_PENDING}",
)

CACHE_KILOBYTES = -512
"""SQLite's page cache for this file and for the journal's; negative because the unit is kilobytes. The operating system caches
the file as well: a larger cache takes memory and saves no time that can be measured."""

MISSED = "missed"
"""Key in the journal's database for the number of changes it lost: the index knew of more changes than the database, because the
write-ahead log was removed or cut short. What is left is sound, but older."""

_BATCH_MESSAGES, _BATCH_TOKENS = 200, 10_000
"""Messages, and their tokens, added to the index in one transaction, which then takes some hundredths of a second."""

FIRST_MESSAGES = 400
"""The newest messages that a rebuilt index holds before it is used."""

_VERSION = "4"
"""Version of the index. Raise it when `apart`, `indexed` or the stemmer's minor version changes: an older index is then
rebuilt."""

Row = tuple[int, str, str, str]
"""A message to be indexed: row id, text, role, the names of its tools."""


def searchable(message: Message) -> str:
    """The text of a message that search looks through: what it says, its calls with their arguments, its reasoning."""
    return _searchable_text(message, [f"{call.name} {_decoded(call.arguments)}" for call in message.calls])


def searchable_of_earlier_versions(message: Message) -> str:
    """The searchable text as earlier versions stored it, with the arguments of calls as JSON; their rows were not changed."""
    return _searchable_text(message, [f"{call.name} {call.arguments}" for call in message.calls])


def _searchable_text(message: Message, calls: list[str]) -> str:
    reasoning = [message.reasoning.text] if message.reasoning else []
    # SQLite's own functions end a text at a NUL character.
    return "\n".join(part for part in (message.text, *calls, *reasoning) if part).replace("\0", "\ufffd")


def _decoded(arguments: str) -> str:
    """The keys and values of a call's arguments, one a line; text that is no JSON stays as it is. In JSON, a line break before a
    word is written `\\n`, and the index would take its `n` for the word's first letter."""
    texts: list[str] = []
    try:
        stack: list[object] = [msgspec.json.decode(arguments)]
        while stack:
            item = stack.pop()
            if isinstance(item, dict):
                pairs = reversed(cast("dict[str, object]", item).items())
                stack += [each for key, value in pairs for each in (value, key)]
            elif isinstance(item, list):
                stack += reversed(cast("list[object]", item))
            elif item is not None:
                texts.append(str(item))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return arguments
    return "\n".join(texts)


def prepare(connection: sqlite3.Connection, *, wanted: bool = True, mode: str = "rw") -> None:
    """Attach the index; rebuild it where it is missing, not up to date or of an older version. There is none afterwards where
    FTS5 is missing, where the disk is full, and where there was none and nothing may be written (`mode` "ro")."""
    connection.create_function("indexed_words", 1, apart, deterministic=True)
    connection.create_function("indexed_stems", 3, indexed, deterministic=True)
    if wanted and _has_fts5(connection) and not attach(connection, mode=mode) and mode == "rw":
        rebuild(connection)


def attach(connection: sqlite3.Connection, *, mode: str = "rw") -> bool:
    """Attach the index file that the journal's database names; False where it is missing or unusable."""
    detach(connection)
    try:
        number = _file_number(_database_stamp(connection))
        path = _folder(connection) / f"index-{number}.db"
        if not number or not path.is_file():
            return False
        _open(connection, path, mode)
        if not current(connection) and not _current_under_lock(connection, mode):
            raise sqlite3.DatabaseError(_OUT_OF_STEP)
        for table in ("search", "stems"):
            connection.execute(f"SELECT rowid FROM fts.{table} WHERE {table} MATCH 'a' LIMIT 1").fetchall()
        pending_count(connection)
    except (sqlite3.Error, OSError):
        detach(connection)
        return False
    return True


def attached(connection: sqlite3.Connection) -> bool:
    """Whether an index is attached."""
    return any(name == "fts" for _, name, _ in connection.execute("PRAGMA database_list"))


def detach(connection: sqlite3.Connection) -> None:
    """Go on without the index. Its file stays."""
    with suppress(sqlite3.Error):
        connection.execute("DETACH fts")


def rebuild(connection: sqlite3.Connection) -> None:
    """Build the index anew in a new file, or go on without one where that fails. It holds the newest messages; `index_pending`
    adds all others that can be read. Older index files are removed; a process that still has one open notices at its next
    write."""
    detach(connection)
    folder = _folder(connection)
    new_file = folder / "index.db"
    lost_changes = _lost_changes(connection, folder)
    try:
        numbers = [_file_number(path.stem.replace("-", " ")) for path in folder.glob(_FILES)]
        number = max([*numbers, _file_number(_database_stamp(connection))]) + 1
        new_file = private_files.private_file(folder / f"index-{number}.db")
        _open(connection, new_file, "rw")
        connection.execute("PRAGMA fts.journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _CREATES:
            connection.execute(statement)
        last = last_row(connection.execute, "messages")
        if last:
            connection.execute("INSERT INTO fts.pending VALUES (1, ?)", (last,))
        _write_stamp(connection, f"{_VERSION} {number} 0")
        if lost_changes:
            connection.execute("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", (MISSED, str(lost_changes)))
        connection.execute("COMMIT")
        added = 0
        while added < FIRST_MESSAGES and (batch_size := index_pending(connection)):
            added += batch_size
    except (sqlite3.Error, StorageError, OSError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        detach(connection)
        _remove(new_file)
        return
    for older in folder.glob(_FILES):
        if 0 < _file_number(older.stem.replace("-", " ")) < number:
            _remove(older)


def drop_index(connection: sqlite3.Connection) -> None:
    """Remove all index files to free space on a full disk; the index is rebuilt once there is space."""
    detach(connection)
    for path in _folder(connection).glob(_FILES):
        _remove(path)


def remove_embedded_index(connection: sqlite3.Connection) -> None:
    """Remove the index that older versions kept inside the journal's database. It is dropped where every page is sound. In a
    damaged file only its entries in the schema are deleted: dropping a damaged table could free pages that belong to the
    journal."""
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
    with suppress(sqlite3.OperationalError):  # where this SQLite protects its schema the tables stay, unused
        connection.execute(f"DELETE FROM main.sqlite_master WHERE tbl_name IN ({marks})", _TABLES)
        schema_version = connection.execute("PRAGMA schema_version").fetchone()[0]
        # so that every connection reads the schema again
        connection.execute(f"PRAGMA schema_version = {schema_version + 1}")
    connection.execute("PRAGMA writable_schema = RESET")


def damaged(problem: BaseException | None) -> bool:
    """Whether an error may come from a damaged or missing index; a damaged journal can cause the same errors."""
    name = getattr(problem, "sqlite_errorname", "") or ""
    return name.startswith(_DAMAGE_CODES) or bool(_DAMAGE_MESSAGES.search(str(problem)))


def add_messages(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Index messages that the caller's transaction has written, within that transaction."""
    if _record_change(connection):
        pending = connection.execute("SELECT first, last FROM fts.pending").fetchall()
        # row ids of deleted messages are given to new ones, so one may be pending still
        _insert(connection, (row for row in rows if not any(first <= row[0] <= last for first, last in pending)))


def add_later(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Mark the rows from `first` to `last`, just written in the caller's transaction, as pending: `index_pending` adds them."""
    if _record_change(connection):
        extend = "UPDATE fts.pending SET last = max(last, ?) WHERE first <= ? AND last >= ? - 1"
        if not connection.execute(extend, (last, first, first)).rowcount:
            connection.execute("INSERT INTO fts.pending VALUES (?, ?)", (first, last))


def pending_count(connection: sqlite3.Connection) -> int:
    """How many row ids are pending: at least as many as messages, since some rows may be deleted."""
    return int(connection.execute("SELECT coalesce(sum(last - first + 1), 0) FROM fts.pending").fetchone()[0])


def index_pending(connection: sqlite3.Connection) -> int:
    """Add the newest pending messages to the index, in a short transaction; how many row ids were done, 0 where none was
    pending. Messages on a damaged page are left out. Raises sqlite3.DatabaseError where the index is damaged, or another is in
    force."""
    version_before = _data_version(connection)
    newest_span = connection.execute("SELECT rowid, first, last FROM fts.pending ORDER BY last DESC LIMIT 1").fetchone()
    if newest_span is None:
        return 0
    span, first, last = newest_span
    # before the transaction: SQLite refuses to write after it read a damaged page
    start, rows = _batch(connection, first, last)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not current(connection):
            raise sqlite3.DatabaseError(_OUT_OF_STEP)
        # if another process wrote meanwhile, the next call reads again
        if _data_version(connection) == version_before:
            _insert(connection, rows)
            connection.execute("UPDATE fts.pending SET last = ? WHERE rowid = ?", (start - 1, span))
            connection.execute("DELETE FROM fts.pending WHERE last < first")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return last - start + 1


def _data_version(connection: sqlite3.Connection) -> tuple[int, int]:
    """A value for each of the two files that changes when another connection writes into it."""
    versions = (connection.execute(f"PRAGMA {file}.data_version").fetchone()[0] for file in ("main", "fts"))
    return tuple(versions)  # type: ignore[return-value]


def _batch(connection: sqlite3.Connection, first: int, last: int) -> tuple[int, list[Row]]:
    """The newest rows of a span, up to the limits of a batch: the first row id it covers, and the rows in the order of their ids,
    which is the fastest to insert."""
    start = max(first, last - _BATCH_MESSAGES + 1)
    try:
        sizes = connection.execute(
            "SELECT id, tokens FROM messages WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
            (first, last, _BATCH_MESSAGES),
        ).fetchall()
        batch_tokens, start = 0, first
        for number, (row, tokens) in enumerate(sizes, 1):
            batch_tokens += tokens
            if batch_tokens > _BATCH_TOKENS or number == _BATCH_MESSAGES:
                start = row
                break
        rows = connection.execute(f"{_ROWS} BETWEEN ? AND ? ORDER BY id", (start, last)).fetchall()
    except (sqlite3.DatabaseError, TypeError):
        rows = [row for id in range(start, last + 1) for row in _readable_row(connection, id)]
    return start, [row for row in rows if tuple(map(type, row)) == (int, str, str, str)]


_ROWS = "SELECT id, text, role, tool FROM messages NOT INDEXED WHERE id"


def _readable_row(connection: sqlite3.Connection, id: int) -> list[Row]:
    """The row with this id as a list; empty where it is missing or cannot be read."""
    with suppress(sqlite3.DatabaseError):
        return connection.execute(f"{_ROWS} = ?", (id,)).fetchall()
    return []


def remove(connection: sqlite3.Connection, session: str, *, place: int = 0) -> None:
    """Remove a session's messages from the index: those of its groups from number `place` on. Call it within the caller's
    transaction, before the rows are deleted."""
    if _record_change(connection):
        for statement in _DELETES:
            connection.execute(statement.format("session = ? AND place >= ?"), (session, place))


def remove_row(connection: sqlite3.Connection, row: object) -> None:
    """Remove one message from the index, before its row is deleted. Raises sqlite3.DatabaseError where the row or the index is
    damaged."""
    if _record_change(connection):
        for statement in _DELETES:
            connection.execute(statement.format("id = ?"), (row,))


def _insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Add messages to the index, as words and as stems."""
    words, stems = _INSERTS
    for row, text, role, tools in rows:
        connection.execute(words, (row, apart(text)))
        connection.execute(stems, (row, indexed(text, role, tools)))


def verify(connection: sqlite3.Connection) -> None:
    """Check the whole index. Raises sqlite3.DatabaseError where it is damaged, or misses a message that is not pending."""
    for table in ("search", "stems"):
        connection.execute(f"INSERT INTO fts.{table} ({table}) VALUES ('integrity-check')")
    sound = connection.execute("PRAGMA fts.quick_check(1)").fetchone()[0] == "ok"
    complete = (
        f"SELECT (SELECT count(*) FROM fts.search_docsize) = (SELECT count(*) FROM messages WHERE {_NOT_PENDING})"
    )
    if not sound or not current(connection) or not connection.execute(complete).fetchone()[0]:
        raise sqlite3.DatabaseError(_OUT_OF_STEP)


def _record_change(connection: sqlite3.Connection) -> bool:
    """Count up the stamp, since the index changes with this transaction; whether there is an index. Without one the stamp becomes
    stale, so that no index is taken for complete. Raises sqlite3.DatabaseError where the attached file is not the one in force,
    or misses a change."""
    stamp = _database_stamp(connection)
    if not attached(connection):
        _write_stale_stamp(connection, _file_number(stamp))
        return False
    if not current(connection):
        raise sqlite3.DatabaseError(_OUT_OF_STEP)
    version, number, changes = stamp.split()
    _write_stamp(connection, f"{version} {number} {int(changes) + 1}")
    return True


def _lost_changes(connection: sqlite3.Connection, folder: Path) -> int:
    """How many changes the index in force knows of that the journal's database does not. Each is committed to the database first,
    so a positive number means that the database lost writes."""
    try:
        path = folder / f"index-{_file_number(_database_stamp(connection))}.db"
        if not path.is_file():
            return 0
        connection.execute("ATTACH ? AS old", (f"file:{quote(str(path.resolve()))}?mode=rw",))
        connection.execute("BEGIN IMMEDIATE")  # so that nobody writes between the two reads
        own_stamp = _database_stamp(connection).split()
        index_stamp = str(connection.execute("SELECT value FROM old.state").fetchone()[0]).split()
        return (
            max(0, int(index_stamp[2]) - int(own_stamp[2]))
            if own_stamp[:2] == index_stamp[:2] and own_stamp[0] == _VERSION
            else 0
        )
    except (sqlite3.Error, TypeError, ValueError, IndexError):  # it is damaged
        return 0
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with suppress(sqlite3.Error):
            connection.execute("DETACH old")


def _has_fts5(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite has the full-text search FTS5."""
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError:
        return False
    return True


def _open(connection: sqlite3.Connection, path: Path, mode: str) -> None:
    """Attach the index's file to a connection."""
    connection.execute("ATTACH ? AS fts", (f"file:{quote(str(path.resolve()))}?mode={mode}",))
    connection.execute("PRAGMA fts.secure_delete = FAST")
    connection.execute("PRAGMA fts.synchronous = NORMAL")  # what a power cut destroys is rebuilt
    connection.execute(f"PRAGMA fts.cache_size = {CACHE_KILOBYTES}")


def _folder(connection: sqlite3.Connection) -> Path:
    return next(Path(path).parent for _, name, path in connection.execute("PRAGMA database_list") if name == "main")


def _remove(path: Path) -> None:
    for part in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _database_stamp(connection: sqlite3.Connection) -> str:
    """The stamp in the journal's database: version, number of the index file, number of changes; empty where there is none."""
    row = connection.execute("SELECT value FROM main.meta WHERE key = 'index'").fetchone()
    return str(row[0]) if row else ""


def _file_number(stamp: str) -> int:
    """The number of the index file in a stamp, 0 for none. Also takes a file's stem with a blank for its hyphen, `index 3`."""
    parts = stamp.split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0


def current(connection: sqlite3.Connection) -> bool:
    """Whether the attached file is the one in force and has every change: its stamp is the journal database's."""
    stamp = _database_stamp(connection)
    row = connection.execute("SELECT value FROM fts.state").fetchone()
    return stamp.startswith(f"{_VERSION} ") and row is not None and row[0] == stamp


def _current_under_lock(connection: sqlite3.Connection, mode: str) -> bool:
    """`current`, asked while nobody can write: without a lock, one stamp could be read before a change and the other after it."""
    if mode != "rw":
        return False
    connection.execute("BEGIN IMMEDIATE")
    try:
        return current(connection)
    finally:
        connection.execute("ROLLBACK")


def _write_stamp(connection: sqlite3.Connection, stamp: str) -> None:
    connection.execute("INSERT OR REPLACE INTO main.meta VALUES ('index', ?)", (stamp,))
    connection.execute("UPDATE fts.state SET value = ?", (stamp,))


def _write_stale_stamp(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("INSERT OR REPLACE INTO main.meta VALUES ('index', ?)", (f"stale {number} 0",))
