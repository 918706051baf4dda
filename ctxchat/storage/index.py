"""The full-text index over everything ever said: FTS5 where this SQLite has it, a plain scan where it has not.

It lies in a file of its own, `index-N.db`, so that no damage to it can reach the journal: it holds no text (the `messages`
table does) and is made anew from that at any time. Which file is in force, and after how many changes, both databases say.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ctxchat.core.errors import StorageError
from ctxchat.core.messages import Message
from ctxchat.storage import files
from ctxchat.storage.around import rows
from ctxchat.storage.words import apart, fold, indexed

_UNUSABLE = re.compile(
    r"no such (fts5 )?table: (fts\.)?(search|stems|state)|table (fts\.)?(search|stems) has no column|invalid fts5 file format"
    r"|vtable constructor failed: (search|stems)|unknown database fts|out of step"
)

_OUT_OF_STEP = "the search index is out of step"
_FILES = "index-*.db"
_FAULTS = tuple(f"SQLITE_{name}" for name in ("CORRUPT", "CONSTRAINT", "NOTADB", "CANTOPEN", "IOERR", "READONLY"))

_TABLES = ("search", *(f"search_{part}" for part in ("data", "idx", "docsize", "config", "content")))

_TERMS = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab('fts', 'stems', 'row')"

# `search` knows where each word of a message stands, for "…" and for what is still being typed; `stems` only which messages hold
# a word in any of its forms, which takes a fraction of the room and is what ranking goes by.
_MAKE = (
    "CREATE VIRTUAL TABLE fts.search USING fts5(words, content='', tokenize='unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE fts.stems USING fts5(words, content='', detail=none, columnsize=0,"
    " tokenize='unicode61 remove_diacritics 2')",
    "CREATE TABLE fts.state (value TEXT NOT NULL)",
    "INSERT INTO fts.state VALUES ('')",
)
_TAKE = ("INSERT INTO fts.search (rowid, words) VALUES (?, ?)", "INSERT INTO fts.stems (rowid, words) VALUES (?, ?)")
_LEAVE = (
    "INSERT INTO fts.search (search, rowid, words) SELECT 'delete', id, indexed_words(text) FROM messages WHERE {}",
    "INSERT INTO fts.stems (stems, rowid, words) SELECT 'delete', id, indexed_stems(text, role, tool) FROM messages WHERE {}",
)

MISSED = "missed"
"""Where the journal's database keeps how many changes it had lost when an index was found to know of more: its log was gone, or
cut short, and all that is left is well and older."""

_VERSION = "3"
"""Goes up when `apart`, `indexed` or the stemmer's minor changes, so that an older index is made anew."""

Read = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

Row = tuple[int, str, str, str]
"""A message as the index takes it in: row id, text, role, the names of its tools."""


def searchable(message: Message) -> str:
    """All the words of a message: its text, what it called with what, and its reasoning."""
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    reasoning = [message.reasoning.text] if message.reasoning else []
    # SQLite's own functions end a text at a zero.
    return "\n".join(part for part in (message.text, *calls, *reasoning) if part).replace("\0", "\ufffd")


def frequencies(read: Read, words: Sequence[str]) -> dict[str, int]:
    """In how many messages each word of the index stands; 0 for one that was never said."""
    folded = {word: fold(word) for word in words}
    marks = ", ".join("?" * len(folded))
    seen = dict(read(f"SELECT term, doc FROM temp.terms WHERE term IN ({marks})", list(folded.values())))
    return {word: seen.get(term, 0) for word, term in folded.items()}


def prepare(connection: sqlite3.Connection, *, wanted: bool = True, mode: str = "rw") -> bool:
    """Have the index ready, made anew where it is missing, out of step or of an older kind; False where FTS5 is not to be had,
    there is no room for it, or it is missing and nothing may be written (`mode` "ro")."""
    connection.create_function("indexed_words", 1, apart, deterministic=True)
    connection.create_function("indexed_stems", 3, indexed, deterministic=True)
    if not wanted or not _has_fts5(connection):
        return False
    return attach(connection, mode=mode) or (mode == "rw" and make_anew(connection))


def attach(connection: sqlite3.Connection, *, mode: str = "rw") -> bool:
    """Whether the file that the journal's database names can be used: it is, until it is detached."""
    detach(connection)
    try:
        number = _number(_named(connection))
        path = _folder(connection) / f"index-{number}.db"
        if not number or not path.is_file():
            return False
        _open(connection, path, mode)
        if not current(connection) and not _current_at_rest(connection, mode):
            raise sqlite3.DatabaseError(_OUT_OF_STEP)
        for table in ("search", "stems"):
            connection.execute(f"SELECT rowid FROM fts.{table} WHERE {table} MATCH 'a' LIMIT 1").fetchall()
        connection.execute(_TERMS)
    except (sqlite3.Error, OSError):
        detach(connection)
        return False
    return True


def detach(connection: sqlite3.Connection) -> None:
    """Work without the index. Its file stays."""
    with suppress(sqlite3.Error):
        connection.execute("DROP TABLE IF EXISTS temp.terms")
    with suppress(sqlite3.Error):
        connection.execute("DETACH fts")


def make_anew(connection: sqlite3.Connection) -> bool:
    """Whether an index could be made from all messages that can be read, in a new file beside the older ones. Whoever has one of
    those open sees that another is in force when they write next; they are removed."""
    detach(connection)
    folder = _folder(connection)
    made = folder / "index.db"
    missed = _missed(connection, folder)
    try:
        numbers = [_number(path.stem.replace("-", " ")) for path in folder.glob(_FILES)]
        number = max([*numbers, _number(_named(connection))]) + 1
        made = files.private_file(folder / f"index-{number}.db")
        _open(connection, made, "rw")
        connection.execute("PRAGMA fts.journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _MAKE:
            connection.execute(statement)
        _take_in(connection, rows(connection.execute, "id, text, role, tool", "messages"))
        _mark(connection, f"{_VERSION} {number} 0")
        if missed:
            connection.execute("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", (MISSED, str(missed)))
        connection.execute("COMMIT")
        connection.execute(_TERMS)
    except (sqlite3.Error, StorageError, OSError):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        detach(connection)
        _remove(made)
        return False
    for older in folder.glob(_FILES):
        if 0 < _number(older.stem.replace("-", " ")) < number:
            _remove(older)
    return True


def give_up(connection: sqlite3.Connection) -> None:
    """Remove the index to make room on a full disk; it is made anew when there is some."""
    detach(connection)
    for path in _folder(connection).glob(_FILES):
        _remove(path)


def leave(connection: sqlite3.Connection) -> None:
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


def add(connection: sqlite3.Connection, rows: Iterable[Row], *, fts: bool) -> None:
    """Take in messages, within the caller's transaction, in which they are written already."""
    if _changed(connection, fts=fts):
        _take_in(connection, rows)


def remove(connection: sqlite3.Connection, session: str, *, fts: bool) -> None:
    """Take a session's messages out, within the caller's transaction and before their rows go."""
    if _changed(connection, fts=fts):
        for statement in _LEAVE:
            connection.execute(statement.format("session = ?"), (session,))


def remove_row(connection: sqlite3.Connection, row: object, *, fts: bool) -> None:
    """Take one message out, before its row goes. Raises sqlite3.DatabaseError where it or the index is damaged."""
    if _changed(connection, fts=fts):
        for statement in _LEAVE:
            connection.execute(statement.format("id = ?"), (row,))


def _take_in(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    words, stems = _TAKE
    for row, text, role, tools in rows:
        connection.execute(words, (row, apart(text)))
        connection.execute(stems, (row, indexed(text, role, tools)))


def stale(connection: sqlite3.Connection) -> None:
    """Have it made anew at the next opening, or when somebody writes: rows went without it."""
    _mark_stale(connection, _number(_named(connection)))


def verify(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError where the index is damaged, or does not hold every message."""
    for table in ("search", "stems"):
        connection.execute(f"INSERT INTO fts.{table} ({table}) VALUES ('integrity-check')")
    sound = connection.execute("PRAGMA fts.quick_check(1)").fetchone()[0] == "ok"
    held = "SELECT (SELECT count(*) FROM fts.search_docsize) = (SELECT count(*) FROM messages)"
    if not sound or not current(connection) or not connection.execute(held).fetchone()[0]:
        raise sqlite3.DatabaseError(_OUT_OF_STEP)


def _changed(connection: sqlite3.Connection, *, fts: bool) -> bool:
    """Write down that the index changes with this transaction, or that it is not kept. Raises sqlite3.DatabaseError where
    another file is in force by now, or the one at hand missed something."""
    now = _named(connection)
    if not fts:
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
        path = folder / f"index-{_number(_named(connection))}.db"
        if not path.is_file():
            return 0
        connection.execute("ATTACH ? AS old", (f"file:{quote(str(path.resolve()))}?mode=rw",))
        connection.execute("BEGIN IMMEDIATE")  # nobody writes between the two looks
        told = _named(connection).split()
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


def _folder(connection: sqlite3.Connection) -> Path:
    return next(Path(path).parent for _, name, path in connection.execute("PRAGMA database_list") if name == "main")


def _remove(path: Path) -> None:
    for part in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _named(connection: sqlite3.Connection) -> str:
    """What the journal's database says: version, number of the file, changes."""
    found = connection.execute("SELECT value FROM main.meta WHERE key = 'index'").fetchone()
    return str(found[0]) if found else ""


def _number(named: str) -> int:
    """The number of the file, 0 for none. Also of a file's own name, with a blank for the hyphen."""
    parts = named.split()
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0


def current(connection: sqlite3.Connection) -> bool:
    """The attached file is the one in force, and holds all that is told to be in it."""
    named = _named(connection)
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
