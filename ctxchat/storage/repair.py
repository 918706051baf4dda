"""Rebuilds a damaged database from everything that can be read of it: the journals entry by entry, and from them the tables for
lists, search and archive. The damaged file is kept under `backups/`.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.journal import fold
from ctxchat.storage import around, backups, entries, index, inspection, loading, private_files, schema, sessions
from ctxchat.storage.database import FILE, Database
from ctxchat.storage.faults import NotOurs
from ctxchat.storage.inspection import Fault, Inspected, Progress
from ctxchat.storage.sessions import SessionRow


class Repaired(msgspec.Struct, frozen=True):
    """The inspections before and after a repair, and the path of the damaged file (empty where the database was not rebuilt)."""

    before: Inspected
    after: Inspected
    kept: str = ""


def repair(folder: Path, progress: Progress = lambda done, of: None) -> Repaired:
    """Repair a store as far as possible. Raises StorageError, having changed nothing, where the file is no database of ctxchat,
    where nothing may be written, and while another ctxchat has it open."""
    try:
        database = Database(folder)
    except NotOurs:
        return _repair_header(folder, progress)
    with database:
        if database.only_read:
            raise StorageError(database.only_read, "Nothing was changed.")
        before = inspection.inspect(database, progress)
        _write_files(database)
        after = inspection.inspect(database) if before.faults else before
        if all(fault.known for fault in after.faults):
            return Repaired(before, after)
        kept = _replace(database, folder, progress)
    with Database(folder) as database:
        return Repaired(before, inspection.inspect(database), str(kept))


def _replace(database: Database, folder: Path, progress: Progress) -> Path:
    """Build a new database from what can be read of the old one, and put it in its place. Returns the path of the old one."""
    stamp = database.now().replace(":", "").replace("-", "")
    with tempfile.TemporaryDirectory(prefix=".repair-", dir=folder) as place:
        _rebuild(database, Path(place), progress)
        database.close()
        return backups.replace(folder, Path(place) / FILE, f"damaged-{stamp}.db")


def _repair_header(folder: Path, progress: Progress) -> Repaired:
    """Repair a file whose end was cut off, or whose first page is damaged. That page has the format and where each table begins,
    and is taken from a new database: its tables are created in the same order, so they begin at the same pages."""
    with tempfile.TemporaryDirectory(prefix=".head-", dir=folder) as place:
        for part in (FILE, f"{FILE}-wal"):
            if (folder / part).is_file():
                shutil.copyfile(folder / part, Path(place) / part)
        (Path(place) / "fresh").mkdir()
        Database(Path(place) / "fresh", full_text=False).close()
        head = (Path(place) / "fresh" / FILE).read_bytes()
        size = int.from_bytes(head[16:18], "big")
        body = bytearray((Path(place) / FILE).read_bytes())
        body[:size] = head[:size]
        body += bytes(max(0, len(head) - len(body)))
        # the number of pages, and no list of free pages
        body[28:40] = (len(body) // size).to_bytes(4, "big") + bytes(8)
        (Path(place) / FILE).write_bytes(body)
        _link_files(folder, Path(place))
        with Database(Path(place)) as database:
            before = inspection.inspect(database)
            if not before.sessions:
                raise StorageError(
                    f"{folder / FILE} holds nothing that can be read as ctxchat's.", "It was left as it is."
                )
            what = "the file was no database any more: its first page was damaged, or its end was cut off"
            before = msgspec.structs.replace(before, faults=(Fault(what, mendable=True), *before.faults))
            kept = _replace(database, folder, progress)
    with Database(folder) as database:
        return Repaired(before, inspection.inspect(database), str(kept))


def _link_files(folder: Path, place: Path) -> None:
    """Make the sessions' folders visible from `place`, for the inspection."""
    with suppress(OSError):
        (place / "sessions").symlink_to(folder / "sessions", target_is_directory=True)


def _write_files(database: Database) -> None:
    """Write missing or changed files of the sessions' folders whose text the record has; a changed file is renamed first."""
    keys = around.RowsBySession(database.query)
    for row in sessions.around_damage(database):
        with suppress(CtxchatError):
            ledger = loading.load_state(database, row.id, keys=keys).state.ledger
            by_id = {m.id: m for m in ledger.messages()}
            folder = private_files.session_folder(database.folder, row.id)
            for path in inspection.missing_files(database, row.id, ledger):
                text = inspection.original(by_id, path)
                if text is None:
                    continue
                place = (
                    private_files.private_folder(private_files.private_folder(folder) / "tool-results")
                    / Path(path).name
                )
                if place.exists():
                    place.replace(place.with_name(f"{place.name}.damaged"))
                private_files.write_private(place, text.encode("utf-8", "replace"))


def _rebuild(old: Database, place: Path, progress: Progress) -> None:
    """Create a database in the folder `place` with everything that can be read of the old one."""
    times: dict[tuple[str, int], str] = {}
    used: dict[str, int] = {}
    for number, session, seq, at in around.rows(old.query, "rowid, session, seq, at", "journal"):
        times[session, seq], used[session] = at, number
    keys = around.RowsBySession(old.query)
    # in the order of use, which row ids then show
    rows = sorted(sessions.around_damage(old), key=lambda row: used.get(row.id, 0))
    with Database(place, now=old.now, count=old.count, full_text=False) as new:
        for number, row in enumerate(rows):
            progress(number, len(rows))
            records, _ = loading.read_entries(old, row.id, keys)
            with new.transaction() as connection:
                at = row.created
                connection.execute("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", (row.id, at, at))
                for seq, record in records:
                    at = times.get((row.id, seq), at)
                    entries.append(connection, row.id, [record], at, new.count)
                _restore_columns(connection, row, fold(record for _, record in records).used)
        with new.transaction(linked=False) as connection:
            for table, about in schema.TABLES.items():
                if about.copied:
                    _copy_table(old, connection, table, about.copied)
            connection.execute("DELETE FROM doomed WHERE session IN (SELECT id FROM sessions)")
            connection.execute("DELETE FROM meta WHERE key IN ('index', ?)", (index.MISSED,))
        new.query("PRAGMA wal_checkpoint(TRUNCATE)")
    backups.check_copy(place / FILE, old.version)


def _restore_columns(connection: sqlite3.Connection, row: SessionRow, used: int) -> None:
    """Restore the columns of a session's row that do not follow from its entries; `used` is for a row without a count of
    tokens."""
    about: dict[str, Any] = {
        "created": row.created,
        "updated": row.updated,
        "parent": row.parent,
        "folder": row.folder,
        "delegated": row.delegated,
    }
    about |= {"title": row.title} if row.title else {}
    about |= {"model": row.model} if row.model else {}
    about |= {"used": row.used, "estimated": row.estimated} if row.used else {"used": used, "estimated": True}
    marks = ", ".join(f"{name} = ?" for name in about)
    connection.execute(f"UPDATE sessions SET {marks} WHERE id = ?", (*about.values(), row.id))


def _copy_table(old: Database, connection: sqlite3.Connection, table: str, columns: str) -> None:
    """Copy all rows of a table that can be read."""
    marks = ", ".join("?" for _ in columns.split(","))
    connection.executemany(
        f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", list(around.rows(old.query, columns, table))
    )
