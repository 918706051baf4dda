"""Makes, lists and restores copies of the database under `backups/`: one a day when something changed, one before each migration,
and the files that a repair or a restore replaced.

A new copy is checked before it counts, so that a damaged store never displaces a good copy. A restore replaces the database in a
single step, keeps the replaced file, and needs that no other process has the database open.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.storage import private_files, schema, sessions
from ctxchat.storage.database import FILE, Database, utc_now
from ctxchat.storage.faults import faults, unreadable

Kind = Literal["daily", "migration", "damaged", "replaced"]

FOLDER = "backups"
_DAY_S = 86_400.0
_PAGES_AT_ONCE = 64  # pages copied before each pause
_PAUSE_S = 0.005  # seconds, in which other processes have the disk to themselves
_KINDS: dict[str, Kind] = {"daily": "daily", "v": "migration", "damaged": "damaged", "replaced": "replaced"}


class Backup(msgspec.Struct, frozen=True):
    """One copy. `at` is the time of its making, ISO 8601 UTC; `bytes` its size."""

    name: str
    kind: Kind
    at: str
    bytes: int


class Stopped(Exception):
    """Raised when the copying is stopped from outside."""


def list_backups(folder: Path) -> list[Backup]:
    """The copies of a data folder, the newest first by the times in their names. Raises StorageError."""
    backups = folder / FOLDER
    with faults(backups):
        sizes = [(path, path.stat().st_size) for path in backups.glob("*.db")] if backups.is_dir() else []
    rows = [Backup(path.name, kind, _time_of_name(path), size) for path, size in sizes if (kind := _kind(path))]
    return sorted(rows, key=lambda row: (row.at, row.name), reverse=True)


def is_due(database: Database, kept: int) -> bool:
    """Whether a daily copy is due: something changed since the newest one, which is a day old (or newer than the clock, which was
    set back). `kept` 0 means that none are made. Raises StorageError."""
    if database.only_read or not kept or database.query("SELECT NOT EXISTS (SELECT 1 FROM journal)")[0][0]:
        return False
    with faults(database.path):
        copies = [path.stat().st_mtime for path in (database.folder / FOLDER).glob("daily-*.db")]
        parts = (database.path, database.path.with_name(f"{FILE}-wal"))
        changed = max(path.stat().st_mtime for path in parts if path.exists())
    newest, now = max(copies, default=0.0), time.time()
    return changed > newest and not 0 <= now - newest < _DAY_S


def make_daily(database: Database, kept: int, most: int, stop: threading.Event | None = None) -> Path | None:
    """Make a daily copy while others write, then delete the oldest beyond `kept` copies or `most` bytes in all; its path. None
    where the store is larger than `most`, the disk has too little space, or the copy proves damaged. Raises Stopped once `stop`
    is set, leaving nothing behind, and StorageError."""
    place = private_files.private_folder(database.folder / FOLDER)
    size = database.path.stat().st_size
    if size > most or shutil.disk_usage(place).free < 2 * size:
        return None
    for old in place.glob(".daily.*"):  # unfinished copies of killed processes
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _DAY_S:
                old.unlink()
    unfinished = place / f".daily.{os.getpid()}"
    stamp = database.now().replace(":", "").replace("-", "")
    try:
        _copy(database.path, unfinished, stop or threading.Event())
        try:
            check_copy(unfinished, database.version)
        except StorageError:
            return None
        copy = place / f"daily-{stamp}.db"
        with faults(copy):
            unfinished.replace(copy)
    finally:
        unfinished.unlink(missing_ok=True)
    _thin_out(place, copy, kept, most)
    return copy


def restore(folder: Path, name: str) -> tuple[Path, list[str]]:
    """Replace the database by a copy. Returns the path at which the replaced database is kept, and the titles of sessions that
    only that one has. `name` is the name of a copy or a unique beginning of one, never a path. Raises UsageError for an unknown
    name, and StorageError where the copy is damaged or another ctxchat has the store open; nothing is changed then."""
    wanted = [row.name for row in list_backups(folder) if name and row.name.startswith(name)]
    if not wanted:
        raise UsageError(f"There is no backup {name!r}.", "`ctxchat doctor --backups` lists them.")
    if len(wanted) > 1 and name not in wanted:
        raise UsageError(f"{name!r} begins several backups: {', '.join(wanted[:3])}.", "Give more of the name.")
    chosen = folder / FOLDER / (name if name in wanted else wanted[0])
    check_copy(chosen, len(schema.MIGRATIONS))
    missing = _only_now(folder, chosen)
    fresh = folder / f".restored.{os.getpid()}"
    try:
        with faults(fresh):
            private_files.private_file(fresh)
            shutil.copyfile(chosen, fresh)
            with contextlib.closing(sqlite3.connect(fresh)) as file, file:
                # the present index has messages that the copy lacks
                file.execute("DELETE FROM meta WHERE key = 'index'")
        stamp = utc_now().replace(":", "").replace("-", "")
        return replace(folder, fresh, f"replaced-{stamp}.db"), missing
    finally:
        fresh.unlink(missing_ok=True)


def _only_now(folder: Path, copy: Path) -> list[str]:
    """The titles of sessions that the present database has and the copy lacks."""
    with contextlib.closing(_reading(copy, "&immutable=1")) as file:
        known = {id for (id,) in file.execute("SELECT id FROM sessions")}
    try:
        with Database(folder) as database:
            rows = sessions.around_damage(database)
    except StorageError:  # the present database cannot be read
        return []
    return [row.title or row.id for row in rows if row.id not in known]


def _copy(source: Path, target: Path, stop: threading.Event) -> None:
    """Copy a database while others may write to it, in small steps with pauses. Raises Stopped where `stop` is set."""

    def go_on(status: int, remaining: int, total: int) -> None:
        if stop.wait(_PAUSE_S):
            raise Stopped

    private_files.private_file(target)
    with (
        faults(target),
        contextlib.closing(_reading(source)) as of,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as to,
    ):
        of.execute("BEGIN")
        of.execute(
            "SELECT 1 FROM sqlite_master"
        ).fetchall()  # starts the read transaction: later writes are not part of the copy
        of.backup(to, pages=_PAGES_AT_ONCE, progress=go_on, sleep=0)
        to.execute("PRAGMA journal_mode = DELETE")


def _thin_out(place: Path, newest: Path, kept: int, most: int) -> None:
    """Delete the oldest daily copies: more than `kept`, or more than `most` bytes together. The newest stays."""
    total = 0
    for number, path in enumerate([newest, *sorted(set(place.glob("daily-*.db")) - {newest}, reverse=True)]):
        total += path.stat().st_size
        if number >= kept or (number and total > most):
            with contextlib.suppress(OSError):
                path.unlink()


def _reading(path: Path, more: str = "") -> sqlite3.Connection:
    uri = f"file:{quote(str(path.resolve()))}?mode=ro{more}"
    return sqlite3.connect(uri, uri=True, timeout=5.0, isolation_level=None, check_same_thread=False)


def _kind(path: Path) -> Kind | None:
    return _KINDS.get(path.name.partition("-")[0].rstrip("0123456789"))


def _time_of_name(path: Path) -> str:
    """The time in a name such as `daily-20260102T030405.678Z.db`, as ISO 8601; empty where there is none."""
    stamp = path.stem.partition("-")[2]
    if len(stamp) < 15:
        return ""
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[9:11]}:{stamp[11:13]}:{stamp[13:]}"


def replace(folder: Path, fresh: Path, kept: str) -> Path:
    """Replace the database of a data folder by `fresh`, a closed database file on the same disk. The replaced one is kept as
    `backups/kept`, whose path is returned. Raises StorageError, having changed nothing, also while another ctxchat has it
    open."""
    path, aside = folder / FILE, private_files.private_folder(folder / "backups") / kept
    with faults(path), private_files.lock(folder / ".setup.lock", wait=5.0), _alone(path):
        _sync(fresh)
        if path.exists():
            try:
                os.link(path, aside)
            except FileExistsError:
                raise StorageError(f"{aside} is there already.", "Try again.") from None
            except OSError:  # a file system without links
                shutil.copyfile(path, aside)
                _sync(aside)
        for rest in ("-wal", "-shm"):  # left where SQLite did not recognise the file as a database: moved along with it
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + rest).rename(aside.with_name(aside.name + rest))
        fresh.replace(path)
    return aside


def check_copy(path: Path, newest: int) -> None:
    """Check a closed database file. Raises StorageError where it is damaged, no database of ctxchat, or of a newer version than
    `newest`."""
    with faults(path):
        if not path.is_file():
            raise StorageError(f"There is no {path}.", "`ctxchat doctor --backups` lists them.")
        with contextlib.closing(sqlite3.connect(f"file:{path.resolve()}?mode=ro&immutable=1", uri=True)) as file:
            schema.check_ours(file, path, newest)
            if not schema.version(file):
                raise unreadable(path, "there is nothing in it")
            result = file.execute("PRAGMA quick_check(1)").fetchone()[0]
            if result != "ok":
                raise unreadable(path, str(result))


@contextlib.contextmanager
def _alone(path: Path) -> Generator[None]:
    """Hold the database exclusively, with its log written back. A file that is no readable database is not held. Raises
    StorageError while another process has it open."""
    connection = sqlite3.connect(path, timeout=2.0, isolation_level=None)
    try:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # Without a log, closing removes no file beside this one: by then another database has its name.
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.DatabaseError as problem:
            name = getattr(problem, "sqlite_errorname", "")
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise StorageError(
                    f"{path} is in use by another ctxchat.", "Close all its windows and commands, then try again."
                ) from problem
            if not name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
                raise
        yield
    finally:
        connection.close()


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
