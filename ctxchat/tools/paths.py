"""Resolves the paths a model writes, and opens them: a path is resolved, then permission is decided, then it is looked at again
when it is opened."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.guarded import guarded, new_at_the_top
from ctxchat.core.patterns import escaped
from ctxchat.core.ports import ToolContext
from ctxchat.own_processes import own_places
from ctxchat.repository_files import is_at
from ctxchat.tools.resemblance import same_name
from ctxchat.tools.walking import SYSTEM

MAX_BYTES = 20_000_000
"""The largest file, in bytes, that is read whole, written or edited."""

SPILLED = "tool-results"
"""The folder of a session where large results are kept; reachable under this name from every workspace."""

SANDBOX_TMP = "/tmp"
"""In the sandbox commands have a folder of their own here, and tools do not see what is in it."""

_DRIVE = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)")


class ResolvedPath(msgspec.Struct, frozen=True):
    """A path after following links. `path` has no symbolic link and no `..` in it; `shown` is relative to the workspace if it
    lies inside, else absolute. `inside` is True in the workspace and for the session's spilled results."""

    path: Path
    shown: str
    inside: bool

    @property
    def guarded(self) -> str:
        """The guarded place it leads to if it is written; empty for none. What this program is made of is one, and so is what
        would be new and hidden at the top of the workspace. Looks at the disk."""
        if hit := guarded(self.shown):
            return hit
        if self.inside and any(self.path.is_relative_to(place) for place in own_places()):
            return "ctxchat itself"
        return new_and_hidden(self.path, self.shown) if self.inside else ""


def new_and_hidden(path: Path, shown: str) -> str:
    """The name of the hidden file or folder that would be new at the top of a workspace, were the `path` written that lies at
    `shown` in it; empty for none. Looks at the disk."""
    name = new_at_the_top(shown)
    top = path.parents[len(Path(shown).parts) - 1] / name if name else None
    return name if top and not os.path.lexists(top) else ""


def locate(written: str, context: ToolContext, *, spilled: bool = True) -> ResolvedPath:
    """Resolve a path as a model wrote it. `spilled` False: `tool-results/…` means the workspace's own (for writing).

    Raises ToolError for what is no usable path, for devices and the like, and where it leads elsewhere than when the call was
    judged: a command at work may exchange a link at any moment.
    """
    place = _located(written, context, spilled)
    if context.target and str(place.path) != context.target:
        raise ToolError(f"{written} leads somewhere else than a moment ago; nothing was done.")
    return place


def _located(written: str, context: ToolContext, spilled: bool) -> ResolvedPath:
    _check(written)
    root = Path(os.path.realpath(context.workspace))
    kept = Path(os.path.realpath(Path(context.session_folder, SPILLED))) if context.session_folder and spilled else None
    path = _resolve(written, root)
    if kept and not path.exists() and path.is_relative_to(root / SPILLED):
        path = Path(os.path.realpath(kept / path.relative_to(root / SPILLED)))
    if any(path.is_relative_to(folder) for folder in SYSTEM):
        raise ToolError(f"{path} is a device or a view of the system, not a file to work with.")
    if kept and path.is_relative_to(kept):
        return ResolvedPath(path, f"{SPILLED}/{path.relative_to(kept).as_posix()}".removesuffix("/."), True)
    inside = path.is_relative_to(root)
    return ResolvedPath(path, path.relative_to(root).as_posix() if inside else str(path), inside)


def _check(written: str) -> None:
    if not written.strip():
        raise ToolError("The path is empty.")
    if "\0" in written:
        raise ToolError("The path holds a NUL character.")
    if os.name != "nt" and _DRIVE.match(written):
        raise ToolError(f"{written} is a Windows path.", "Use a path relative to the workspace, with forward slashes.")
    try:
        os.fsencode(written)
    except UnicodeEncodeError as error:
        raise ToolError("The path holds characters no file name can have.") from error


def _resolve(written: str, root: Path) -> Path:
    try:
        wanted = Path(written).expanduser() if written.startswith("~") else Path(written)
    except RuntimeError as error:
        raise ToolError(f"{written}: there is no such user.") from error
    path = Path(os.path.realpath(root / wanted))
    return path if os.path.lexists(path) else Path(os.path.realpath(_as_spelled(path)))


def _as_spelled(path: Path) -> Path:
    """The path by the names that are there, where these differ only in how letters are composed or in the kind of blank: a model
    writes neither as they are. The path itself where none or several are."""
    above = next(folder for folder in path.parents if folder.exists())
    at = above
    for name in path.relative_to(above).parts:
        names = [other for other in _names(at) if same_name(other) == same_name(name)]
        if len(names) != 1:
            return path
        at /= names[0]
    return at


def _names(folder: Path) -> list[str]:
    """The names in a folder, of a huge one only some; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(5000), strict=False)]
    except OSError:
        return []


def patterns(place: ResolvedPath) -> tuple[str, ...]:
    """The rules a file can be given: itself, its folder, and all below that. None for a name no rule can be written with."""
    shown = place.shown
    if not shown.isprintable() or shown != shown.strip():
        return ()
    folder = escaped(shown.rpartition("/")[0])
    wider = (f"{folder}/*", f"{folder}/**") if folder else () if shown.startswith("/") else ("*",)
    return (escaped(shown), *wider)


def open_file(place: ResolvedPath) -> BinaryIO:
    """Open for reading, provided that the path still leads where it was judged to. Never blocks on a pipe.

    Raises ToolError (missing, a folder, not a plain file, moved meanwhile) or OSError.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if place.path.is_dir():
        raise ToolError(f"{place.shown} is a folder.", f"Use list_files with path={place.shown!r}.")
    if _is_database_in_use(place.path):
        raise ToolError(
            f"{place.shown} is a database that ctxchat has open; it was not read.", "Use recall for what was said."
        )
    try:
        handle = os.open(place.path, flags)
    except FileNotFoundError as error:
        raise missing(place) from error
    file = os.fdopen(handle, "rb")
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{place.shown} is not a plain file (a pipe, a socket or a device).")
        if not is_at(handle, str(place.path)):
            raise ToolError(f"{place.shown} leads somewhere else than a moment ago; it was not read.")
    except BaseException:
        file.close()
        raise
    return file


def _is_database_in_use(path: Path) -> bool:
    """Whether it is a file of a database this process has open: to open and close it here would drop SQLite's locks on it."""
    if not path.name.endswith((".db", ".db-wal", ".db-shm")):
        return False
    with contextlib.suppress(OSError):
        wanted = path.stat()
        for handle in Path("/dev/fd").iterdir():
            with contextlib.suppress(OSError):  # the one that listed them is closed by now
                if os.path.samestat(os.fstat(int(handle.name)), wanted):
                    return True
    return False


def unmoved(path: Path) -> bool:
    """True while a resolved path still resolves to itself: nobody put a link in the way."""
    return Path(os.path.realpath(path)) == path


def missing(place: ResolvedPath) -> ToolError:
    """The error for a file that is not there, naming what resembles it."""
    parent = place.path.parent
    if place.path.is_relative_to(SANDBOX_TMP) and not place.inside:
        return ToolError(
            f"{place.shown} does not exist.",
            f"In the sandbox commands have a {SANDBOX_TMP} of their own, which only they see: look at it with shell, or write "
            "into the workspace instead.",
        )
    if not parent.is_dir():
        return ToolError(f"{place.shown} does not exist, nor does its folder.", "Find it with glob or list_files.")
    names = _names(parent)
    if place.path.name in names:  # in a circle: any other link was resolved
        return ToolError(f"{place.shown} is a link that leads nowhere.")
    folded = {name.lower(): name for name in names}
    near = [folded[name] for name in difflib.get_close_matches(place.path.name.lower(), folded, 3)]
    beside = Path(place.shown).parent
    hint = f"Did you mean {', '.join((beside / name).as_posix() for name in near)}?" if near else "Find it with glob."
    return ToolError(f"{place.shown} does not exist.", hint)
