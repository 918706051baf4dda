"""Safely reads and lists files in folders that others fill, such as repositories: only regular files inside the folder after
links are resolved, up to a size and within a time. Pipes, devices, links that lead out and endless files are reported as a
problem and never block.

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
"""Most seconds for reading one file, against slow file systems."""

_CHUNK_BYTES = 65_536
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class CheckedFile(msgspec.Struct, frozen=True):
    """The beginning of a file, its whole `size` in bytes, and the `problem` if nothing was read, as the rest of a sentence."""

    data: bytes = b""
    size: int = 0
    problem: str = ""


def read_checked(
    path: Path, within: Path | None, max_bytes: int, seconds: float = READ_SECONDS, *, unlinked: bool = False
) -> CheckedFile:
    """At most `max_bytes` of a file that has to lie in the folder `within`, or anywhere if that is None, for the person's own
    files. `unlinked`: the path was resolved before, and must contain no link now. Never raises OSError."""
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
    """Whether an open file is the one at that link-free path, so that no link was put in while it was opened."""
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
"""Whether `held_folder` can hold a folder open. Not on Windows, where making a link takes a right that programs seldom have."""


@contextmanager
def held_folder(folder: Path, *, make: bool = False) -> Generator[int | None, None, None]:
    """The descriptor of a folder opened step by step without following links, and with `make` created where missing. What is
    done by the descriptor happens in that folder, even if somebody puts a link into its path meanwhile. None where the system
    does not support this. Raises OSError, NotADirectoryError for a link."""
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
"""Most files and folders that are listed of one folder."""


def listed(folder: Path) -> list[Path]:
    """The entries of a folder, sorted by name; empty where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in islice(entries, MAX_ENTRIES))
    except OSError:
        return []


def is_folder(path: Path, *, linked: bool = True) -> bool:
    """Whether the path is a folder, or with `linked` a link to one. Never raises, unlike `Path.is_dir` for too long names."""
    return os.path.isdir(path) and (linked or not os.path.islink(path))  # noqa: PTH112, PTH114


def is_file(path: Path) -> bool:
    """Whether the path is a regular file, links followed. Never raises."""
    return os.path.isfile(path)  # noqa: PTH113


def files_below(folder: Path, most: int) -> list[Path] | None:
    """All files below a folder; None where there are more than `most` files or folders."""
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
