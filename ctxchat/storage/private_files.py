"""Creates, copies, locks and removes files and folders of the store: readable by their owner only, and never reached through a
link.

Knows no table.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from pathlib import Path

from ctxchat.core.errors import SessionBusy, StorageError, UsageError
from ctxchat.storage.faults import NO_LOCKS, faults

CHECKPOINTS = "files"
"""The subfolder of a session's folder that keeps the contents of changed files."""

ASIDE = ".bringing"
"""The temporary database in a session's folder that holds its rows during an import."""

MAX_NUMBERED_COPIES = 99
"""The most numbered files with different contents for one name."""

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""The alphabet of session ids: Crockford's base 32, in which no character looks like another."""

_ID = re.compile(f"[{ALPHABET}]{{12}}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def is_id(session: str) -> bool:
    """Whether a text has the form of a session's id."""
    return bool(_ID.fullmatch(session))


def check_id(session: str) -> str:
    """The id itself. Raises UsageError for anything else, so that no path is ever made of it."""
    if not is_id(session):
        raise UsageError(f"{session!r} is no session id.", "`ctxchat sessions list` shows them.")
    return session


def private_folder(path: Path) -> Path:
    """The folder, created with mode 0700 where it is missing. Raises StorageError, also where a link or a file has its name."""
    with faults(path):
        for missing in [p for p in reversed((path, *path.parents)) if not p.exists()]:
            missing.mkdir(mode=0o700, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "a file stands where a folder should be", str(path))
    if path.is_symlink():
        raise StorageError(f"{path} is a link; ctxchat does not write through it.", "Remove the link.")
    return path


def private_file(path: Path) -> Path:
    """The file, created with mode 0600 where it is missing; one that others could read is made private. Raises StorageError.

    An existing file is never opened: closing it would drop the locks that SQLite holds on it in this process, and another process
    could then delete the log of an open database (sqlite.org/howtocorrupt.html, 2.2).
    """
    with faults(path):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            info = path.lstat()
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.ELOOP, "a link or a folder stands where a file should be", str(path)) from None
            if os.name == "posix" and info.st_mode & 0o077:
                path.chmod(0o600)
            if not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from None
    return path


def write_private(path: Path, data: bytes) -> None:
    """Write a new file with mode 0600, completely or not at all. Raises FileExistsError, and never touches an existing file."""
    if path.is_symlink() or path.exists():
        raise FileExistsError(errno.EEXIST, "a file stands there already", str(path))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_beside(path: Path, data: bytes) -> Path:
    """Write a new file with mode 0600; its path. An existing file with the same content is kept, next to one with other content
    the new one gets a number. Raises StorageError."""
    for number in range(1, MAX_NUMBERED_COPIES + 1):
        file = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        with faults(file):
            try:
                write_private(file, data)
            except FileExistsError:
                if not _has_content(file, data):
                    continue
            return file
    raise StorageError(
        f"{path.parent} has {MAX_NUMBERED_COPIES} versions of {path.name} already.", "Choose another folder."
    )


def _has_content(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data


def session_folder(data: Path, session: str) -> Path:
    """The path of a session's folder, which is not created. Raises UsageError for an invalid id."""
    return data / "sessions" / check_id(session)


def lock_path(data: Path, session: str) -> Path:
    """The file whose lock makes one process the session's writer. Raises UsageError for an invalid id."""
    return session_folder(data, session) / ".lock"


def remove_folder(path: Path) -> None:
    """Delete a session's folder. Links in it, or in its place, are deleted and not followed. Raises StorageError."""
    with faults(path):
        if path.is_symlink():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder's files as private ones; links are neither followed nor copied. Raises StorageError."""
    if not source.is_dir() or source.is_symlink():
        return
    with faults(target):
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.is_symlink() and not any(p.is_symlink() for p in path.parents):
                copy = target / path.relative_to(source)
                private_folder(copy.parent)
                write_private(copy, path.read_bytes())


def copy_file(source: Path, target: Path) -> None:
    """Copy one file as a private one; does nothing where it is missing or a link. Raises StorageError."""
    if source.is_symlink() or not source.is_file():
        return
    with faults(target):
        private_folder(target.parent)
        shutil.copyfile(source, private_file(target))


def safe_name(name: str) -> str:
    """A file name made from any text: one path segment, no leading dots, at most 100 characters."""
    parts = [part for part in re.split(r"[/\\]", name) if part not in {"", ".", ".."}]
    flat = _UNSAFE.sub("_", "_".join(parts)).lstrip("._-")
    stem, dot, suffix = flat.rpartition(".")
    if dot and len(suffix) <= 8:
        return f"{stem[: 99 - len(suffix)]}.{suffix}"
    return flat[:100] or "text"


def shares_locks(folder: Path) -> bool:
    """Whether files in this folder can be locked as processes do that share a SQLite database; False in network folders without a
    lock service. SQLite itself takes ten seconds to find out."""
    try:
        import fcntl
    except ImportError:  # Windows locks everywhere
        return True
    probe = folder / f".{os.getpid()}.db-shm"
    try:
        handle = os.open(probe, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return True  # another problem, which is reported elsewhere
    try:
        fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0)
    except OSError as problem:
        return problem.errno not in NO_LOCKS
    finally:
        os.close(handle)
        probe.unlink(missing_ok=True)
    return True


def lock(path: Path, *, wait: float = 0.0) -> Lock:
    """Take the lock of the file `path`, waiting at most `wait` seconds. Raises SessionBusy and StorageError."""
    held = Lock(path)
    held.acquire(wait)
    return held


class Lock:
    """A lock on a file that ends with its process. The file stays: after deleting it, two processes could hold the lock."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock  # takes 80 ms, which a command that only reads saves

        self._path = path
        # A soft lock would outlive a kill, so a file system without locks is an error here.
        self._lock = FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)

    def acquire(self, wait: float) -> None:
        """Take the lock. Raises SessionBusy when another process holds it for longer than `wait` seconds."""
        from filelock import Timeout

        private_folder(self._path.parent)
        with faults(self._path):
            try:
                self._lock.acquire(timeout=wait, poll_interval=0.02)
            except Timeout:
                raise SessionBusy(
                    f"{self._path.parent.name} is open in another window or command.",
                    "Close it there, or read it here without writing.",
                ) from None

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        self._lock.release()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
