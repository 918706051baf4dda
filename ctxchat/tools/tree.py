"""A workspace as it stands: every file, link and folder with its mode and the digest of its content, links never followed.

A second look reads only what changed since. Knows what is left out; keeps no content itself. Synchronous.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Mapping

import msgspec

from ctxchat.core.files import FileState
from ctxchat.tools.contents import digest_of
from ctxchat.tools.walking import DEEPEST, SYSTEM, Rules, ignored, own_rules, rules_above

MOST = 50_000
"""Files and folders that are looked at; in a larger folder what commands do cannot be kept."""

LARGEST = 10_000_000
"""Bytes of a file whose content is kept."""

_USUAL = """node_modules .venv venv __pycache__ target dist .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis
.gradle .terraform .next .cache"""
USUAL = frozenset(_USUAL.split())
"""Folders left out whatever the ignore rules say: what is in them is made anew."""

_BATCH = 4_000_000  # bytes gathered before they are handed on
_SURE = 2_000_000_000  # nanoseconds: a file touched later before a look may change again within one tick of its clock
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Keep = Callable[[Mapping[str, bytes]], None]
"""Takes contents to keep, by digest. Raises OSError."""


class TooMany(Exception):
    """The folder holds more than MOST files."""


class SeenPath(msgspec.Struct, frozen=True, gc=False):
    """What stood at a path, and the stamp by which a change would show; `sure` that it would."""

    state: FileState
    stamp: tuple[int, ...]
    sure: bool


class Tree:
    """Looks at one folder again and again. `apart` are folders that are none of its content, absolute."""

    def __init__(self, root: str, apart: Collection[str] = ()) -> None:
        self._root = root
        self._apart = frozenset(apart)
        self._seen: dict[str, SeenPath] = {}
        self._left_out: set[str] = set()
        self._rules: dict[str, Rules] = {}

    def look(self, keep: Keep, *, again: bool = False) -> dict[str, FileState]:
        """Every path, as the system has it, with what stands there; `keep` is handed the contents that were not known.

        `again`: the second look at what a command did goes by the ignore rules of the first, so that nothing is taken for new
        or gone because the rules are other ones. Raises TooMany and OSError.
        """
        found = self._walk(keep)
        if not again and self._seen and _rules_of(found) != _rules_of(self._seen):
            self._left_out, self._rules = set(), {}
            found = self._walk(keep)
        self._seen = found
        return {name: one.state for name, one in found.items()}

    def _walk(self, keep: Keep) -> dict[str, SeenPath]:
        if "" not in self._rules:
            self._rules[""] = rules_above(self._root)
        look = _Walk(self, keep)
        look.folder("", self._rules[""], 1)
        look.hand_on()
        return look.found

    # ── for the look ──

    def known(self, name: str) -> SeenPath | None:
        """What stood there at the look before."""
        return self._seen.get(name)

    def below(self, name: str) -> dict[str, SeenPath]:
        """All that stood in a folder then."""
        return {path: one for path, one in self._seen.items() if path.startswith(f"{name}/")}

    def rules_in(self, name: str, above: Rules, there: bool) -> Rules:
        """The rules that hold in a folder, read once."""
        key = f"{name}/"
        if key not in self._rules:
            self._rules[key] = (*above, *own_rules(self.absolute(name), there))
        return self._rules[key]

    def leaves_out(self, name: str, entry: os.DirEntry[str], rules: Rules) -> bool:
        """Not ours to keep: build folders, what is ignored, repositories within, the program's own data. What was kept once
        is kept on."""
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

    def absolute(self, name: str) -> str:
        """The whole path of a name."""
        return os.path.join(self._root, name) if name else self._root  # noqa: PTH118 - strings all the way


class _Walk:
    """One walk over the tree."""

    def __init__(self, tree: Tree, keep: Keep) -> None:
        self._tree, self._keep = tree, keep
        self._now = time.time_ns()
        self._gathered: dict[str, bytes] = {}
        self._bytes = 0
        self.found: dict[str, SeenPath] = {}

    def folder(self, name: str, above: Rules, level: int) -> None:
        try:
            with os.scandir(self._tree.absolute(name)) as entries:
                here = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError:
            if not name:
                raise
            self.found |= self._tree.below(name)  # it cannot be looked into now: nothing says that anything changed
            return
        rules = self._tree.rules_in(name, above, any(entry.name == ".gitignore" for entry in here))
        for entry in here:
            if entry.name == ".git":
                continue
            child = f"{name}/{entry.name}" if name else entry.name
            if self._tree.leaves_out(child, entry, rules):
                continue
            try:
                self._entry(child, entry.path, entry.stat(follow_symlinks=False), rules, level)
            except FileNotFoundError:
                continue  # gone meanwhile
            if len(self.found) > MOST:
                raise TooMany

    def _entry(self, name: str, path: str, st: os.stat_result, rules: Rules, level: int) -> None:
        if stat.S_ISDIR(st.st_mode):
            self.found[name] = SeenPath(FileState("folder", st.st_mode & 0o7777), (), True)
            if level < DEEPEST:
                self.folder(name, rules, level + 1)
            return
        stamp = (st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino)
        known = self._tree.known(name)
        if known and known.sure and known.stamp == stamp:
            self.found[name] = known
            return
        looked = state_of(path, st)
        if looked is None:
            return
        state, data = looked
        if data is None and known and known.state.kept and _same_but_mode(known.stamp, stamp):
            state = msgspec.structs.replace(known.state, mode=state.mode)  # it cannot be read any more
        self.found[name] = SeenPath(state, stamp, self._now - max(st.st_mtime_ns, st.st_ctime_ns) > _SURE)
        if data is not None:
            self._gathered[state.digest] = data
            self._bytes += len(data)
            if self._bytes > _BATCH:
                self.hand_on()

    def hand_on(self) -> None:
        """What was read, to be kept."""
        if self._gathered:
            self._keep(self._gathered)
        self._gathered, self._bytes = {}, 0


def state_of(path: str, st: os.stat_result) -> tuple[FileState, bytes | None] | None:
    """What stands at a path, with its content where that can be kept; None for pipes, sockets and devices. Raises
    FileNotFoundError."""
    mode = st.st_mode & 0o7777
    if stat.S_ISDIR(st.st_mode):
        return FileState("folder", mode), None
    if stat.S_ISLNK(st.st_mode):
        data = os.fsencode(os.readlink(path))  # noqa: PTH115 - strings all the way, for speed
        return FileState("link", 0, digest_of(data), len(data)), data
    if not stat.S_ISREG(st.st_mode):
        return None
    data = _content(path) if st.st_size <= LARGEST else None
    if data is None:
        return FileState("file", mode, f"{st.st_size}.{st.st_mtime_ns}.{st.st_ino}", st.st_size, kept=False), None
    return FileState("file", mode, digest_of(data), len(data)), data


def look_at(path: str) -> tuple[FileState, bytes | None] | None:
    """As `state_of`, None too where nothing stands."""
    try:
        return state_of(path, os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _content(path: str) -> bytes | None:
    """None where it cannot be read, or is too large by now."""
    try:
        handle = os.open(path, _OPEN)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        data = file.read(min(found.st_size, LARGEST) + 1) if stat.S_ISREG(found.st_mode) else b""
        data += file.read(LARGEST) if len(data) > found.st_size else b""  # it grew
    return data if len(data) <= LARGEST else None


def _same_but_mode(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    return (before[1], before[2], before[4]) == (now[1], now[2], now[4])


def _rules_of(found: Mapping[str, SeenPath]) -> dict[str, FileState]:
    return {name: one.state for name, one in found.items() if name.endswith(".gitignore")}


def named(path: str) -> str:
    """A path of the system as in FileChange: what is no UTF-8 as NUL and its bytes in Latin-1."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "\0" + os.fsencode(path).decode("latin-1")
    return path


def written(name: str) -> str:
    """The path of the system for such a name."""
    return os.fsdecode(name[1:].encode("latin-1")) if name.startswith("\0") else name


def changed(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> list[str]:
    """The names that differ, in order."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
