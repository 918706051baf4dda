"""Turns errors of SQLite and the file system into StorageErrors with a remedy. Knows no table."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ctxchat.core.errors import StorageError


class NoRoom(StorageError):
    """The disk is full."""


class NotOurs(StorageError):
    """The file cannot be read as a database of ctxchat's."""


class NotWritable(StorageError):
    """The file or its folder may only be read."""


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SHARED_BYTES = 32_768  # bytes of the `-shm` file that processes share beside the database
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Error numbers of a file system without locks, or without this kind of lock."""
_ELSEWHERE = "set CTXCHAT_DATA_DIR to a folder on a disk of this machine"
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def faults(path: Path, *, alone: bool = False) -> Generator[None]:
    """Turn every error inside, about the file or folder `path`, into a StorageError with a remedy. `alone` says that only one
    process at a time can use the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite(error, path, alone) from error
    except OSError as error:
        raise _from_system(error, path) from error
    except (
        OverflowError,
        ValueError,
        RecursionError,
    ) as error:  # a number too large for a column, a path with a NUL, folders nested too deep
        raise StorageError(f"{path}: {error}", "Nothing was changed.") from error


def _from_sqlite(error: sqlite3.Error, path: Path, alone: bool) -> StorageError:
    """An error of SQLite as a StorageError. `alone`: the file system keeps no shared locks, so only one process can use the
    file."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and _no_room(path)):
        return _full(path)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return _refused(path)
    if alone and name.startswith(("SQLITE_BUSY", "SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK")):
        return StorageError(
            f"{path} cannot be opened: its file system keeps no shared locks, so one ctxchat at a time can use it.",
            f"Close the other one, or {_ELSEWHERE}.",
        )
    if name.startswith(("SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_IOERR_SHMLOCK")):
        return _no_locks(path)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StorageError(f"{path} is in use by another ctxchat that writes.", "Wait a moment and try again.")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return unreadable(path, str(error))
    if name.startswith("SQLITE_CONSTRAINT_FOREIGNKEY"):
        return StorageError("The session was deleted elsewhere; nothing was written.", "Start a new session.")
    return StorageError(f"{path}: {error}", "Nothing was changed. `ctxchat doctor` looks at the store.")


def _from_system(error: OSError, path: Path) -> StorageError:
    """An error of the file system as a StorageError."""
    if error.errno in _FULL:
        return _full(path)
    if error.errno in _REFUSED:
        return _refused(path)
    if error.errno in NO_LOCKS:
        return _no_locks(path)
    if error.errno == errno.ENOTDIR:
        return StorageError(
            f"{path}: {error.strerror or error}", "Move it away, or set CTXCHAT_DATA_DIR to another folder."
        )
    return StorageError(f"{path}: {error.strerror or error}", "Nothing was changed.")


def _no_room(path: Path) -> bool:
    """Whether the disk is too full even for the `-shm` file."""
    try:
        return shutil.disk_usage(path.parent).free < _SHARED_BYTES
    except OSError:
        return False


def _full(path: Path) -> StorageError:
    return NoRoom(f"The disk of {path} is full; nothing was written.", "Free some space and try again.")


def _no_locks(path: Path) -> StorageError:
    return StorageError(
        f"{path} cannot be locked: its file system keeps no locks.", f"Nothing was changed; {_ELSEWHERE}."
    )


def _refused(path: Path) -> StorageError:
    """The error for a path that must not be written."""
    return NotWritable(
        f"{path} cannot be opened for writing.",
        "Give yourself write permission, or set CTXCHAT_DATA_DIR to another folder.",
    )


def unreadable(path: Path, why: str) -> StorageError:
    """The error for a file that is damaged as a whole, or that is no database of ctxchat."""
    return NotOurs(
        f"{path} cannot be read as ctxchat's database: {why}.",
        "It was left as it is. `ctxchat doctor --repair` saves what can be read; `--backups` lists copies to put back.",
    )
