"""Another file in the place of the database: in one step, with the present one kept, while nobody else has it open."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ctxchat.core.errors import StorageError
from ctxchat.storage import files, schema
from ctxchat.storage.database import FILE
from ctxchat.storage.faults import faults, unreadable


def replace(folder: Path, fresh: Path, kept: str) -> Path:
    """Put the database `fresh`, a closed file on the same disk, in the place of that of the data folder; the present one
    is then `backups/kept`, whose path is returned. Raises StorageError, having changed nothing, also while another ctxchat has
    it open."""
    path, aside = folder / FILE, files.private_folder(folder / "backups") / kept
    with faults(path), files.lock(folder / ".setup.lock", wait=5.0), _alone(path):
        _sync(fresh)
        if path.exists():
            try:
                os.link(path, aside)
            except FileExistsError:
                raise StorageError(f"{aside} is there already.", "Try again.") from None
            except OSError:  # a file system without links
                shutil.copyfile(path, aside)
                _sync(aside)
        for rest in ("-wal", "-shm"):  # of a file that SQLite does not take for a database: they go with it
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + rest).rename(aside.with_name(aside.name + rest))
        fresh.replace(path)
    return aside


def checked(path: Path, newest: int) -> None:
    """Raises StorageError where the file is no whole database of ours, or one of a newer ctxchat."""
    with faults(path):
        if not path.is_file():
            raise StorageError(f"There is no {path}.", "`ctxchat doctor --backups` lists them.")
        with contextlib.closing(sqlite3.connect(f"file:{path.resolve()}?mode=ro&immutable=1", uri=True)) as file:
            schema.check_ours(file, path, newest)
            if not schema.version(file):
                raise unreadable(path, "there is nothing in it")
            found = file.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise unreadable(path, str(found))


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the database so that nobody else has it open, its log written back; one that cannot be read is held by nobody."""
    connection = sqlite3.connect(path, timeout=2.0, isolation_level=None)
    try:
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # In this mode nothing lies beside the file that its closing would remove: by then another file has its name.
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
