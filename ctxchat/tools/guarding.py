"""Guarded places of a workspace around a sandboxed command: which there are before it, and what is new there after it.

A mount can only cover what exists. What a command puts in such a place anew is therefore taken away as soon as it has ended, and
kept elsewhere: nothing is lost, and nothing of it is run by git, an editor or a shell. Knows nothing of how commands are shut in.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from ctxchat.core.guarded import guarded
from ctxchat.repository_files import read_checked

MAX_MOUNTS = 300
"""Places mounted one by one, which takes a second; the time grows with their square."""

_DEPENDENCIES = frozenset({"node_modules", "bower_components", "site-packages"})
"""Folders full of other people's projects, which nobody opens: only repositories count in there."""

_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
"""What makes git take a folder for a repository, whatever it is called."""

_RUNS = frozenset({"config", "config.worktree", "hooks", "commondir"})
"""What in a repository decides which programs git starts."""

_COMMITTED = re.compile(
    r"objects|refs|logs|index|HEAD|packed-refs|(ORIG|FETCH|MERGE|CHERRY_PICK|REVERT)_HEAD|(MERGE|SQUASH)_MSG|MERGE_(MODE|RR)"
    r"|AUTO_MERGE|(COMMIT|TAG|NOTES|MERGE)_EDITMSG|shallow|gc\.(log|pid)|(index|HEAD|packed-refs|shallow|next-index-\d+)\.(lock|new)"
)
"""What commits, branches and stashes are written to, at the top of a repository: none of it says what git runs."""

_NAMES_FILES = re.compile(rb"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(hookspath|path)[ \t]*=[ \t]*\"?([^\"\r\n]+)", re.I | re.M)
"""Where a configuration says that hooks, or more of the configuration, are."""
_MAX_CONFIGURATION_BYTES = 1_000_000
_MAX_CONFIGURATIONS = 50

_guards = lru_cache(200_000)(guarded)
"""It is asked of every file of the workspace, before and after each command."""


class GuardedPath(msgspec.Struct, frozen=True):
    """A guarded file, folder or link; `link` is where a link leads. What is moved keeps its `device` and `number`."""

    path: str
    device: int
    number: int
    link: str = ""
    is_file: bool = False

    @property
    def itself(self) -> tuple[int, int, str]:
        """What makes it the same wherever it is moved; the number of a link that is gone may be given to something else."""
        return self.device, self.number, self.link


class LinkedWorktree(msgspec.Struct, frozen=True):
    """A worktree that belongs to a `repository` somewhere else (its `.git`); `own` is its part of that."""

    own: str
    repository: str


def linked_worktree(folder: str) -> LinkedWorktree | None:
    """What a folder is a linked worktree of, where the repository says so too: a file of the folder could name any."""
    try:
        named = _read_file(Path(folder) / ".git").decode().strip()
        own = Path(os.path.realpath(Path(folder) / named.removeprefix("gitdir:").strip()))
        back = Path(_read_file(own / "gitdir").decode().strip())
    except (OSError, ValueError):
        return None
    known = named.startswith("gitdir:") and back == Path(folder) / ".git" and own.parent.name == "worktrees"
    return LinkedWorktree(str(own), str(own.parents[1])) if known else None


class Guarding:
    """The guarded places of a workspace as they are now. Looks at the disk: off the event loop."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.sockets: list[str] = []
        """Those in the workspace: a mount keeps nobody from speaking to them."""
        self._places = {place.path: place for place in _places(workspace, self.sockets)}
        named = {os.path.realpath(other) for place in self._places.values() for other in _led_to(place)}
        self._named = {path for path in named if path.startswith(f"{workspace}/")}
        self._beside: dict[str, frozenset[str]] = {}
        """Repositories outside the workspace that may be written, with what in them no commit writes."""
        self._not_there = {path for path in self._named if not os.path.lexists(path)}
        self._covered: dict[str, tuple[int, int]] = {}
        """What is mounted read-only: nothing that comes to lie in there was put there by the command."""

    def paths(self, allowed: Sequence[str] = ()) -> tuple[str, ...]:
        """What must not be written, but for the folders that were `allowed`: of a repository that is, all but what is committed
        stays guarded."""
        found = {path for path, place in self._places.items() if not place.link}
        found |= {os.path.realpath(path) for path in self._places} | self._named
        inner = {
            entry.path for path in found if _is_repository(path) for entry in _entries(path) if not _committed(entry)
        }
        kept: list[str] = []
        for path in sorted(path for path in found | inner if path.startswith(f"{self._workspace}/")):
            opened = (
                any(f"{path}/".startswith(f"{folder}/") for folder in allowed)
                and path not in inner
                and path not in self._named
            )
            covered = any(path.startswith(f"{other}/") for other in kept)
            if not opened and not covered and not Path(path).is_symlink():
                kept.append(path)
        kept += self._other_names(kept)
        beside = [path for path in allowed if not f"{path}/".startswith(f"{self._workspace}/") and _is_repository(path)]
        self._beside = {path: frozenset(self._uncommitted(path, path)) for path in beside}
        kept = kept if len(kept) <= MAX_MOUNTS else self._wider(kept)
        self._covered = {path: identity for path in kept if (identity := _identity(path))}
        return (*kept, *sorted(path for paths in self._beside.values() for path in paths))

    def take_away(self, folder: str) -> tuple[str, ...]:
        """Move what has come to guarded places since into `folder`; the paths in the workspace. A link that was there before is
        put back. Raises OSError."""
        known = {place.itself for place in self._places.values()}
        gone: list[str] = []
        gone += [_taken(path, self._workspace, folder) for path in self._not_there if os.path.lexists(path)]
        for place in _places(self._workspace):
            before = self._places.get(place.path)
            # A file that was there could not be written in there: an editor outside has saved it meanwhile.
            saved = before is not None and before.is_file and place.is_file
            if place.itself in known or saved or self._could_not_write(place.path):
                continue  # it was there, perhaps below a folder that is called otherwise now
            gone.append(_taken(place.path, self._workspace, folder))
        for repository, before in self._beside.items():
            for path in set(self._uncommitted(repository, repository)) - before:
                _move(path, Path(folder) / path.lstrip("/"))
                gone.append(path)
        for path, place in self._places.items():
            if place.link and not os.path.lexists(path) and Path(path).parent.is_dir():
                Path(path).symlink_to(place.link)
        return tuple(gone)

    def _could_not_write(self, path: str) -> bool:
        """It lies in what was mounted read-only, and is the same now: a person, or a program of theirs, has put it there."""
        above = (str(folder) for folder in Path(path).parents if str(folder) in self._covered)
        return any(self._covered[folder] == _identity(folder) for folder in above)

    def _uncommitted(self, folder: str, repository: str) -> Iterator[str]:
        """What in a repository is written by no commit of this worktree."""
        linked = linked_worktree(self._workspace)
        own = linked.own if linked else ""
        for entry in _entries(folder):
            if own and f"{own}/".startswith(f"{entry.path}/") and not entry.is_symlink():
                yield from self._uncommitted(entry.path, repository)
            elif folder not in {repository, own} or not _committed(entry):
                yield entry.path

    def _wider(self, paths: Sequence[str]) -> list[str]:
        """The whole folders at the top of the workspace in which they lie; where these are too many as well, the workspace."""
        below = len(self._workspace) + 1
        tops = dict.fromkeys(f"{self._workspace}/{path[below:].partition('/')[0]}" for path in paths)
        return list(tops) if len(tops) <= MAX_MOUNTS else [self._workspace]

    def _other_names(self, paths: Sequence[str]) -> Iterator[str]:
        """Hard links: the same file under a name that nobody guards."""
        twice = {identity for path in paths for identity in _linked(Path(path))}
        for _, _, entries in _walk(self._workspace) if twice else ():
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and entry.path not in paths:
                    info = entry.stat(follow_symlinks=False)
                    if (info.st_dev, info.st_ino) in twice:
                        yield entry.path


def _taken(path: str, workspace: str, folder: str) -> str:
    name = os.path.relpath(path, workspace)
    _move(path, Path(folder) / name)
    return name


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = Path(path).lstat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _is_repository(path: str) -> bool:
    return {entry.name for entry in _entries(path)} >= {"HEAD", "objects"} or _guards(Path(path).name) == ".git"


def _committed(entry: os.DirEntry[str]) -> bool:
    """Whether it is what commits are written to, and leads nowhere else."""
    return bool(_COMMITTED.fullmatch(entry.name)) and not entry.is_symlink()


def _places(workspace: str, sockets: list[str] | None = None) -> Iterator[GuardedPath]:
    for _, among_dependencies, entries in _walk(workspace):
        if sockets is not None:
            sockets += [entry.path for entry in entries if _is_socket(entry)]
        names = {entry.name for entry in entries}
        bare = names >= _REPOSITORY
        if not bare and not any(map(_guards, names)):
            continue
        for entry in entries:
            name = _guards(entry.name)
            of_git = name == ".git" or (bare and (entry.name == "HEAD" or entry.name in _RUNS))
            if of_git or (name and name != "HEAD" and not among_dependencies):
                yield from _guarded_paths(entry)
            if name == ".git" and entry.is_dir(follow_symlinks=False):
                yield from (
                    place for part in _entries(entry.path) if not _committed(part) for place in _guarded_paths(part)
                )


def _guarded_paths(entry: os.DirEntry[str]) -> Iterator[GuardedPath]:
    try:
        info = entry.stat(follow_symlinks=False)
        link = str(Path(entry.path).readlink()) if entry.is_symlink() else ""
    except OSError:  # gone meanwhile
        return
    yield GuardedPath(entry.path, info.st_dev, info.st_ino, link, stat.S_ISREG(info.st_mode))


def _walk(workspace: str) -> Iterator[tuple[str, bool, list[os.DirEntry[str]]]]:
    """Every folder, but those below a guarded name, whether it lies among dependencies, and what is in it."""
    waiting = [(workspace, False)]
    while waiting:
        folder, among = waiting.pop()
        entries = _entries(folder)
        yield folder, among, entries
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                name = _guards(entry.name)
                if not name or name == "HEAD" or (among and name != ".git"):
                    waiting.append((entry.path, among or entry.name in _DEPENDENCIES))


def _is_socket(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False) or entry.is_symlink():
        return False
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as opened:
            return list(opened)
    except OSError:  # gone, or not ours to read: a command cannot either
        return []


def _led_to(place: GuardedPath) -> Iterator[str]:
    """Where the repository of a `.git` really lies, what it shares, and where its hooks are."""
    path = Path(place.path)
    if _guards(path.name) != ".git":
        return
    repository = path
    if path.is_file() and (named := _read_file(path).strip()).startswith(b"gitdir:"):
        repository = path.parent / os.fsdecode(named[7:].strip())
        yield str(repository)
    if common := _read_file(repository / "commondir").strip():
        repository = repository / os.fsdecode(common)
        yield str(repository)
    home = Path.home()
    own = [home / ".gitconfig", home / ".config/git/config"]
    yield from _named_by([*own, *(repository / name for name in ("config", "config.worktree"))], path.parent)


def _named_by(configurations: Sequence[Path], top: Path) -> Iterator[str]:
    """The folders of hooks that they name, from `top` on, and the files that belong to them, wherever they say so."""
    waiting, known = list(configurations), set[Path]()
    while waiting and len(known) < _MAX_CONFIGURATIONS:
        file = waiting.pop()
        if file in known:
            continue
        known.add(file)
        for kind, found in _NAMES_FILES.findall(_read_file(file)):
            named = Path(os.fsdecode(found).strip()).expanduser()
            if kind.lower() == b"path":
                waiting.append(file.parent / named)
                yield str(file.parent / named)
            else:
                yield str(top / named)


def _read_file(file: Path) -> bytes:
    data = read_checked(file, None, _MAX_CONFIGURATION_BYTES).data
    return data if b"\0" not in data else b""  # none of git's own


def _linked(path: Path) -> Iterator[tuple[int, int]]:
    """The files at or below a place that have another name somewhere, but for git's objects: those are called after what is in
    them, and a local clone shares them."""
    if path.is_file():
        files = [path]
    else:
        files: list[Path] = []
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if name != "objects"]
            files += [Path(folder) / name for name in names]
    for file in files:
        try:
            info = file.lstat()
        except OSError:
            continue
        if info.st_nlink > 1 and stat.S_ISREG(info.st_mode):
            yield info.st_dev, info.st_ino


def _move(path: str, to: Path) -> None:
    """On another file system only the name changes: to one that means nothing."""
    to.parent.mkdir(parents=True, exist_ok=True)
    above = Path(path).parent
    mode = above.stat().st_mode
    above.chmod(mode | stat.S_IRWXU)
    try:
        Path(path).rename(to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        Path(path).rename(f"{path}.taken-away-{to.parts[-1].strip('.')}-{os.getpid()}")
    finally:
        above.chmod(mode)
