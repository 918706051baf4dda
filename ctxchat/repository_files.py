"""Reads a file of a folder that somebody else filled: a plain file, inside that folder once links are followed, up to a size and
within a time. A pipe, a device, a link that leads out and a file without end are told, and hold nobody up. And lists such
folders, as long as that is not too much.

Blocking; callers go through a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from time import monotonic

import msgspec

READ_SECONDS = 2.0
"""A file system that takes longer for one file is not waited for."""

_CHUNK_BYTES = 65_536
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class CheckedFile(msgspec.Struct, frozen=True):
    """The beginning of a file, its whole `size` in bytes, and why nothing was read, as the rest of a sentence."""

    data: bytes = b""
    size: int = 0
    problem: str = ""


def read_checked(
    path: Path, within: Path | None, max_bytes: int, seconds: float = READ_SECONDS, *, unlinked: bool = False
) -> CheckedFile:
    """At most `max_bytes` of a file that has to lie in the folder `within`; None is for a place of the person's own, where it
    may lie anywhere. `unlinked`: the path was resolved, and must have no link in it now. Never raises OSError."""
    ends = monotonic() + seconds
    try:
        real = os.path.realpath(path, strict=True)
        if within is not None and not Path(real).is_relative_to(os.path.realpath(within)):
            return CheckedFile(problem="points outside the repository and was left out")
        if unlinked and real != str(path):
            return CheckedFile(problem="was moved while it was read")
        if not stat.S_ISREG(Path(real).stat().st_mode):  # opening a device may already do something
            return CheckedFile(problem="is no regular file")
        with os.fdopen(os.open(real, _FLAGS), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return CheckedFile(problem="is no regular file")
            if os.path.realpath(path) != real or not os.path.samestat(found, Path(real).stat()):
                return CheckedFile(problem="was moved while it was read")
            data = bytearray()
            while len(data) < max_bytes and (chunk := file.read(min(_CHUNK_BYTES, max_bytes - len(data)))):
                data += chunk
                if monotonic() > ends:
                    return CheckedFile(problem=f"could not be read within {seconds:g} s")
            return CheckedFile(bytes(data), found.st_size)
    except (OSError, ValueError) as error:
        if os.path.islink(path) and not os.path.exists(path):  # noqa: PTH110, PTH114 - these never raise
            return CheckedFile(problem="is a link that leads nowhere")
        why = error.strerror if isinstance(error, OSError) else ""
        return CheckedFile(problem=f"could not be read: {why or error}")


def is_at(handle: int, path: str) -> bool:
    """Whether an open file lies at that very path, in which there is no link: nobody put one in the way while it was opened."""
    try:
        if Path(f"/proc/self/fd/{handle}").readlink() == Path(path):  # one call, where there is such a place
            return True
    except OSError:
        pass
    try:
        return os.path.realpath(path) == path and os.path.samestat(os.fstat(handle), Path(path).stat())
    except OSError:
        return False


HOLDS_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Not on Windows, where making a link takes a right that programs seldom have."""


@contextmanager
def held_folder(folder: Path, *, make: bool = False) -> Generator[int | None, None, None]:
    """A folder, opened step by step without following a link, made where it is missing and `make`: what is done in it by this
    descriptor is done there, whoever puts a link in the way meanwhile. None where the system has no such thing. Raises OSError,
    NotADirectoryError for a link."""
    if not HOLDS_FOLDERS:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        yield None
        return
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    at = os.open(folder.anchor, flags)
    try:
        for name in folder.parts[1:]:
            if make:
                with suppress(FileExistsError):
                    if not _is_there(name, at):
                        os.mkdir(name, dir_fd=at)
            below = os.open(name, flags, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _is_there(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


MAX_ENTRIES = 2_000
"""Files and folders of one folder that are looked at."""


def listed(folder: Path) -> list[Path]:
    """What lies in a folder, by name; nothing where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in islice(entries, MAX_ENTRIES))
    except OSError:
        return []


def is_folder(path: Path, *, linked: bool = True) -> bool:
    """Whether a folder is there, or a link to one where `linked`. Unlike a path's own never raises: names may be too long."""
    return os.path.isdir(path) and (linked or not os.path.islink(path))  # noqa: PTH112, PTH114


def is_file(path: Path) -> bool:
    """Whether a plain file is there, links followed; likewise."""
    return os.path.isfile(path)  # noqa: PTH113


def files_below(folder: Path, most: int) -> list[Path] | None:
    """The files in a folder and those below it; None where they or the folders are more than that."""
    found: list[Path] = []
    waiting = [folder]
    for each in waiting:
        entries = listed(each)
        for path in entries:
            if is_folder(path, linked=False):
                waiting.append(path)
            elif is_file(path):
                found.append(path)
        if max(len(found), len(waiting)) > most or len(entries) == MAX_ENTRIES:
            return None
    return found
