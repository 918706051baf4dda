"""Writing a file whole or not at all, such that it stays the same file to everybody else: its owner, mode, extended attributes
and other names stay. For every adapter that writes files of a person; knows nothing of what is in them.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_CANNOT_BE_REPLACED = {
    errno.EBUSY,  # something is mounted on it
    errno.EXDEV,
    errno.EROFS,  # it is mounted into a folder that nobody can write in
    errno.EACCES,  # the folder cannot be written in, or the old owner cannot be given
    errno.EPERM,
    errno.ENOTSUP,
    errno.EINVAL,  # an owner the file system does not know
}


def write_atomically(
    path: Path, data: bytes, mode: int | None = None, *, new_mode: int = 0o600, folder: int | None = None
) -> None:
    """Replace the content of the file at `path`, or create it.

    The new file is written beside the old one and takes its place in one step, with its owner, `mode` (its own where None;
    `new_mode` for a new file) and extended attributes. Where that would part it from its other names, or cannot be done (a file
    that is mounted, another's file, a folder that is read-only), the data is written into the file that is there; that keeps all
    of these too, and if it fails on the way, what was there is written back.

    `path` must not be a symbolic link. With `folder`, the handle of an open one, it is a name in that. Raises OSError.
    """
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        _replace(path, data, None, new_mode if mode is None else mode, folder)
        return
    mode = stat.S_IMODE(found.st_mode) if mode is None else mode
    if found.st_nlink > 1:
        _write_into(path, data, found, mode, folder)
        return
    try:
        _replace(path, data, found, mode, folder)
    except OSError as problem:
        if problem.errno not in _CANNOT_BE_REPLACED:
            raise
        _write_into(path, data, found, mode, folder)


def _replace(path: Path, data: bytes, found: os.stat_result | None, mode: int, folder: int | None) -> None:
    beside = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if found is not None:
                _take_over(file.fileno(), path, found, folder)
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)  # last: a change of owner takes bits away
            os.fsync(file.fileno())
        os.replace(beside, path, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise


def _take_over(new: int, path: Path, found: os.stat_result, folder: int | None) -> None:
    """Owner and extended attributes (access lists are among them). Raises OSError where one cannot be kept."""
    if hasattr(os, "fchown"):
        now = os.fstat(new)
        if (now.st_uid, now.st_gid) != (found.st_uid, found.st_gid):
            os.fchown(new, found.st_uid, found.st_gid)
    if not hasattr(os, "listxattr"):
        return
    old = os.open(path, os.O_RDONLY | _OPEN_FLAGS, dir_fd=folder)
    try:
        wanted = {name: os.getxattr(old, name) for name in _attributes(old)}
        there = {name: os.getxattr(new, name) for name in _attributes(new)}
    finally:
        os.close(old)
    for name in there.keys() - wanted.keys():
        os.removexattr(new, name)
    for name, value in wanted.items():
        if there.get(name) != value:
            os.setxattr(new, name, value)


def _attributes(handle: int) -> list[str]:
    try:
        return os.listxattr(handle)
    except OSError as problem:
        if problem.errno in {errno.ENOTSUP, errno.ENOSYS}:
            return []
        raise


def _write_into(path: Path, data: bytes, found: os.stat_result, mode: int, folder: int | None) -> None:
    before: bytes | None = None
    try:
        handle = os.open(path, os.O_RDWR | _OPEN_FLAGS, dir_fd=folder)
    except PermissionError:  # one that can be written, but not read
        handle = os.open(path, os.O_WRONLY | _OPEN_FLAGS, dir_fd=folder)
    else:
        before = _all_of(handle)
    try:
        if not os.path.samestat(os.fstat(handle), found):
            raise OSError(errno.ESTALE, "Another file stands there than a moment ago", str(path))
        try:
            if hasattr(os, "posix_fallocate") and len(data) > found.st_size:
                os.posix_fallocate(handle, 0, len(data))  # a full disk is noticed before anything is lost
            _write_all(handle, data)
        except OSError:
            if before is not None:
                with suppress(OSError):
                    _write_all(handle, before)
            raise
        if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            with suppress(PermissionError):  # another's file: its mode is not ours to set
                os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _all_of(handle: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read()


def _write_all(handle: int, data: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(data)
    os.ftruncate(handle, len(data))
    os.fsync(handle)
