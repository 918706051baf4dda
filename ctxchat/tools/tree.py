"""Scans a workspace: every file, link and folder with its mode and the digest of its content. Links are never followed.

A second scan reads only what changed since the first. Keeps no content itself. Blocks.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from ctxchat.core.file_changes import FileState
from ctxchat.repository_files import is_at
from ctxchat.tools.contents import digest_of
from ctxchat.tools.walking import MAX_DEPTH, SYSTEM, Rules, ignored, own_rules, rules_above

MAX_ENTRIES = 50_000
"""The largest number of files and folders that are scanned; in a larger workspace the effects of commands cannot be undone."""

MAX_FILE_BYTES = 10_000_000
"""The largest size in bytes of a file whose content is kept."""

_USUAL = """node_modules .venv venv __pycache__ target dist .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis
.gradle .terraform .next .cache"""
USUAL = frozenset(_USUAL.split())
"""Folders that are left out whatever the ignore rules say, as their content can be made anew."""

_BATCH_BYTES = 4_000_000  # bytes gathered before they are handed on
_CLOCK_TICK_NS = (
    2_000_000_000  # nanoseconds: a file touched later before a look may change again within one tick of its clock
)
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Keep = Callable[[Mapping[str, bytes]], None]
"""Stores contents by their digest. Raises OSError."""


class TooMany(Exception):
    """Raised for a workspace with more than `MAX_ENTRIES` files and folders."""


class SeenPath(msgspec.Struct, frozen=True, gc=False):
    """The state of a path when it was last scanned, and the `stamp` (times, size, inode) that would differ after a change. `sure`
    is false if a change soon after could have left the stamp the same."""

    state: FileState
    stamp: tuple[int, ...]
    sure: bool


Looked = tuple[str, SeenPath, bytes | None]
"""A path, its state, and its content if that was read in this scan."""


class Tree:
    """Scans one folder repeatedly. `apart` are absolute paths of folders within it that are left out."""

    def __init__(self, root: str, apart: Collection[str] = ()) -> None:
        self._root = root
        self._apart = frozenset(apart)
        self._seen: dict[str, SeenPath] = {}
        self._left_out: set[str] = set()
        self._rules: dict[str, Rules] = {}

    def scan(self, keep: Keep, *, again: bool = False) -> dict[str, FileState]:
        """The state of every path, by its name as the system has it; new contents are given to `keep`.

        `again`: the scan after a command uses the ignore rules from the scan before it, so that changed rules make no file look
        new or deleted. Raises TooMany and OSError.
        """
        found = self._walk(keep)
        if not again and self._seen and _rules_of(found) != _rules_of(self._seen):
            self._left_out, self._rules = set(), {}
            found = self._walk(keep)
        self._seen = found
        return {name: one.state for name, one in found.items()}

    def _walk(self, keep: Keep) -> dict[str, SeenPath]:
        found: dict[str, SeenPath] = {}
        fresh: dict[str, bytes] = {}
        size = 0
        for name, seen, data in self._folder("", (), 1):
            found[name] = seen
            if len(found) > MAX_ENTRIES:
                raise TooMany
            if data is not None:
                fresh[seen.state.digest] = data
                size += len(data)
            if size > _BATCH_BYTES:
                keep(fresh)
                fresh, size = {}, 0
        if fresh:
            keep(fresh)
        return found

    def _folder(self, name: str, above: Rules, level: int) -> Iterator[Looked]:
        """Scan a folder and all below it. `above` are the ignore rules of the folders around it."""
        began = time.time_ns()
        whole = os.path.join(self._root, name) if name else self._root  # noqa: PTH118 - strings all the way
        try:
            with os.scandir(whole) as opened:
                entries = sorted(opened, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError:
            if not name:
                raise
            # it cannot be looked into now: nothing says that anything changed
            yield from ((path, one, None) for path, one in self._seen.items() if path.startswith(f"{name}/"))
            return
        if name not in self._rules:
            there = any(entry.name == ".gitignore" for entry in entries)
            self._rules[name] = (*(above if name else rules_above(whole)), *own_rules(whole, there))
        rules = self._rules[name]
        for entry in entries:
            child = f"{name}/{entry.name}" if name else entry.name
            if entry.name == ".git" or self._leaves_out(child, entry, rules):
                continue
            try:
                st = entry.stat(follow_symlinks=False)
                if not stat.S_ISDIR(st.st_mode):
                    yield from self._file(child, entry.path, st, began)
                    continue
            except FileNotFoundError:
                continue  # gone meanwhile
            yield child, SeenPath(FileState("folder", st.st_mode & 0o7777), (), True), None
            if level < MAX_DEPTH:
                yield from self._folder(child, rules, level + 1)

    def _leaves_out(self, name: str, entry: os.DirEntry[str], rules: Rules) -> bool:
        """Whether an entry is left out: build folders, ignored files, nested repositories, the program's own data. What was kept
        once is kept on."""
        if name in self._left_out:
            return True
        if name in self._seen:
            return False
        folder = entry.is_dir(follow_symlinks=False)
        out = (folder and self._apart_or_usual(entry)) or ignored(entry.path, folder, rules)
        if out:
            self._left_out.add(name)
        return out

    def _apart_or_usual(self, entry: os.DirEntry[str]) -> bool:
        own = entry.name in USUAL or entry.path in self._apart or entry.path in SYSTEM
        return own or os.path.lexists(f"{entry.path}/.git")

    def _file(self, name: str, path: str, st: os.stat_result, began: int) -> Iterator[Looked]:
        """Scan a file or link; nothing for a device or the like. `began` is the time when the scan of its folder began."""
        stamp = (st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino)
        known = self._seen.get(name)
        if known and known.sure and known.stamp == stamp:
            yield name, known, None
        elif looked := state_of(path, st):
            state, data = looked
            if data is None and known and known.state.kept and _same_but_mode(known.stamp, stamp):
                state = msgspec.structs.replace(known.state, mode=state.mode)  # it cannot be read any more
            yield name, SeenPath(state, stamp, began - max(st.st_mtime_ns, st.st_ctime_ns) > _CLOCK_TICK_NS), data


def state_of(path: str, st: os.stat_result) -> tuple[FileState, bytes | None] | None:
    """The state of a path, and its content if that can be kept; None for pipes, sockets and devices. Raises FileNotFoundError."""
    mode = st.st_mode & 0o7777
    if stat.S_ISDIR(st.st_mode):
        return FileState("folder", mode), None
    if stat.S_ISLNK(st.st_mode):
        data = os.fsencode(os.readlink(path))  # noqa: PTH115 - strings all the way, for speed
        return FileState("link", 0, digest_of(data), len(data)), data
    if not stat.S_ISREG(st.st_mode):
        return None
    data = _read_bytes(path) if st.st_size <= MAX_FILE_BYTES else None
    if data is None:
        return FileState("file", mode, f"{st.st_size}.{st.st_mtime_ns}.{st.st_ino}", st.st_size, kept=False), None
    return FileState("file", mode, digest_of(data), len(data)), data


def read_state(path: str) -> tuple[FileState, bytes | None] | None:
    """Like `state_of`, but None if the path does not exist."""
    try:
        return state_of(path, os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_bytes(path: str) -> bytes | None:
    """The content of a file; None if it cannot be read, or is too large by now."""
    try:
        handle = os.open(path, _OPEN)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not is_at(handle, path):
            return None
        data = file.read(min(found.st_size, MAX_FILE_BYTES) + 1) if stat.S_ISREG(found.st_mode) else b""
        data += file.read(MAX_FILE_BYTES) if len(data) > found.st_size else b""  # it grew
    return data if len(data) <= MAX_FILE_BYTES else None


def _same_but_mode(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    return (before[1], before[2], before[4]) == (now[1], now[2], now[4])


def _rules_of(found: Mapping[str, SeenPath]) -> dict[str, FileState]:
    return {name: one.state for name, one in found.items() if name.endswith(".gitignore")}


def named(path: str) -> str:
    """A path in the form of `FileChange`: one that is no UTF-8 as NUL and its bytes in Latin-1."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "\0" + os.fsencode(path).decode("latin-1")
    return path


def written(name: str) -> str:
    """The system's path for a name that `named` returned."""
    return os.fsdecode(name[1:].encode("latin-1")) if name.startswith("\0") else name


def changed(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> list[str]:
    """The names that differ, in order."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
