"""Protects the guarded paths of a workspace from a sandboxed command: lists them before it, and moves new ones away after it.

A mount can only cover a path that exists. Files that a command creates at guarded paths are therefore moved to another folder as
soon as it has ended: nothing is lost, and git, an editor or a shell runs none of them. Knows nothing of how commands are shut in.
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
"""Paths that are mounted one by one; so many take a second, and the time grows with their square."""

_DEPENDENCIES = frozenset({"node_modules", "bower_components", "site-packages"})
"""Folders of installed packages, which nobody opens in an editor: only repositories are guarded in them."""

_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
"""Entries by which git recognises a folder of any name as a repository."""

_GIT_SETTINGS = frozenset({"config", "config.worktree", "hooks", "commondir"})
"""Entries of a repository that decide which programs git starts."""

_COMMIT_FILES = re.compile(
    r"objects|refs|logs|index|HEAD|packed-refs|(ORIG|FETCH|MERGE|CHERRY_PICK|REVERT)_HEAD|(MERGE|SQUASH)_MSG|MERGE_(MODE|RR)"
    r"|AUTO_MERGE|(COMMIT|TAG|NOTES|MERGE)_EDITMSG|shallow|gc\.(log|pid)|(index|HEAD|packed-refs|shallow|next-index-\d+)\.(lock|new)"
)
"""Entries at the top of a repository that commits, branches and stashes write; none of them decides what git runs."""

_NAMES_FILES = re.compile(rb"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(hookspath|path)[ \t]*=[ \t]*\"?([^\"\r\n]+)", re.I | re.M)
"""The lines of a git configuration that name a folder of hooks or an included file."""
_MAX_CONFIGURATION_BYTES = 1_000_000
_MAX_CONFIGURATIONS = 50

_guards = lru_cache(200_000)(guarded)
"""`guarded` with a cache, because it is called for every file of the workspace before and after each command."""


class GuardedPath(msgspec.Struct, frozen=True):
    """A guarded file, folder or link; `link` is the target of a link. `device` and `number` (the inode) stay the same when it is
    moved."""

    path: str
    device: int
    number: int
    link: str = ""
    is_file: bool = False

    @property
    def itself(self) -> tuple[int, int, str]:
        """The identity that it keeps when it is moved. The target belongs to it, because the inode of a deleted link may be
        reused."""
        return self.device, self.number, self.link


class LinkedWorktree(msgspec.Struct, frozen=True):
    """A worktree that belongs to a repository elsewhere: `repository` is that one's `.git`, `own` the worktree's folder in it."""

    own: str
    repository: str


def linked_worktree(folder: str) -> LinkedWorktree | None:
    """The repository of a folder that is a linked worktree, None for any other. The repository has to name the folder too,
    because the folder's own `.git` file could name any repository."""
    try:
        named = _read_file(Path(folder) / ".git").decode().strip()
        own = Path(os.path.realpath(Path(folder) / named.removeprefix("gitdir:").strip()))
        back = Path(_read_file(own / "gitdir").decode().strip())
    except (OSError, ValueError):
        return None
    known = named.startswith("gitdir:") and back == Path(folder) / ".git" and own.parent.name == "worktrees"
    return LinkedWorktree(str(own), str(own.parents[1])) if known else None


class Guarding:
    """The guarded paths of a workspace at the time it is created. Looks at the disk: use it off the event loop."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.sockets: list[str] = []
        """The sockets in the workspace: a read-only mount would not keep a command from connecting to them."""
        self._guarded_places = {place.path: place for place in _guarded_places(workspace, self.sockets)}
        named = {
            os.path.realpath(other) for place in self._guarded_places.values() for other in _repository_paths(place)
        }
        self._named = {path for path in named if path.startswith(f"{workspace}/")}
        self._beside: dict[str, frozenset[str]] = {}
        """Repositories outside the workspace that may be written, each with its paths that commits do not write."""
        self._not_there = {path for path in self._named if not os.path.lexists(path)}
        self._covered: dict[str, tuple[int, int]] = {}
        """The paths mounted read-only, with their identities: the command cannot have created anything in them."""

    def paths(self, allowed: Sequence[str] = ()) -> tuple[str, ...]:
        """The paths that the command must not write, without the folders that were `allowed`. In an allowed repository all but
        the files that commits write stays guarded."""
        found = {path for path, place in self._guarded_places.items() if not place.link}
        found |= {os.path.realpath(path) for path in self._guarded_places} | self._named
        inner = {
            entry.path
            for path in found
            if _is_repository(path)
            for entry in _entries(path)
            if not _is_commit_file(entry)
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
        kept = kept if len(kept) <= MAX_MOUNTS else self._top_folders(kept)
        self._covered = {path: identity for path in kept if (identity := _identity(path))}
        return (*kept, *sorted(path for paths in self._beside.values() for path in paths))

    def take_away(self, folder: str) -> tuple[str, ...]:
        """Move files that were created at guarded paths since into `folder`, and restore links that were there before; the moved
        paths, relative to the workspace. Raises OSError."""
        known = {place.itself for place in self._guarded_places.values()}
        taken: list[str] = []
        taken += [_take_path(path, self._workspace, folder) for path in self._not_there if os.path.lexists(path)]
        for place in _guarded_places(self._workspace):
            before = self._guarded_places.get(place.path)
            # A file that existed was read-only for the command: a program outside, as an editor, has replaced it meanwhile.
            saved = before is not None and before.is_file and place.is_file
            if place.itself in known or saved or self._could_not_write(place.path):
                continue  # it existed before, perhaps below a folder that was renamed
            taken.append(_take_path(place.path, self._workspace, folder))
        for repository, before in self._beside.items():
            for path in set(self._uncommitted(repository, repository)) - before:
                _move(path, Path(folder) / path.lstrip("/"))
                taken.append(path)
        for path, place in self._guarded_places.items():
            if place.link and not os.path.lexists(path) and Path(path).parent.is_dir():
                Path(path).symlink_to(place.link)
        return tuple(taken)

    def _could_not_write(self, path: str) -> bool:
        """Whether a path lies in a folder that was mounted read-only and is still the same: a person, or a program outside the
        sandbox, has created it."""
        above = (str(folder) for folder in Path(path).parents if str(folder) in self._covered)
        return any(self._covered[folder] == _identity(folder) for folder in above)

    def _uncommitted(self, folder: str, repository: str) -> Iterator[str]:
        """The paths in a repository that no commit of this worktree writes."""
        linked = linked_worktree(self._workspace)
        own = linked.own if linked else ""
        for entry in _entries(folder):
            if own and f"{own}/".startswith(f"{entry.path}/") and not entry.is_symlink():
                yield from self._uncommitted(entry.path, repository)
            elif folder not in {repository, own} or not _is_commit_file(entry):
                yield entry.path

    def _top_folders(self, paths: Sequence[str]) -> list[str]:
        """The folders at the top of the workspace that contain these paths; where they are too many as well, the workspace."""
        below = len(self._workspace) + 1
        tops = dict.fromkeys(f"{self._workspace}/{path[below:].partition('/')[0]}" for path in paths)
        return list(tops) if len(tops) <= MAX_MOUNTS else [self._workspace]

    def _other_names(self, paths: Sequence[str]) -> Iterator[str]:
        """Other hard links to files at or below these paths: the same files under names that are not guarded."""
        twice = {identity for path in paths for identity in _hard_linked(Path(path))}
        for _, _, entries in _walk(self._workspace) if twice else ():
            for entry in entries:
                if entry.is_file(follow_symlinks=False) and entry.path not in paths:
                    info = entry.stat(follow_symlinks=False)
                    if (info.st_dev, info.st_ino) in twice:
                        yield entry.path


def _take_path(path: str, workspace: str, folder: str) -> str:
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


def _is_commit_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a repository is one that commits write, and no link."""
    return bool(_COMMIT_FILES.fullmatch(entry.name)) and not entry.is_symlink()


def _guarded_places(workspace: str, sockets: list[str] | None = None) -> Iterator[GuardedPath]:
    for _, among_dependencies, entries in _walk(workspace):
        if sockets is not None:
            sockets += [entry.path for entry in entries if _is_socket(entry)]
        names = {entry.name for entry in entries}
        bare = names >= _REPOSITORY
        if not bare and not any(map(_guards, names)):
            continue
        for entry in entries:
            name = _guards(entry.name)
            of_git = name == ".git" or (bare and (entry.name == "HEAD" or entry.name in _GIT_SETTINGS))
            if of_git or (name and name != "HEAD" and not among_dependencies):
                yield from _guarded_paths(entry)
            if name == ".git" and entry.is_dir(follow_symlinks=False):
                yield from (
                    place
                    for part in _entries(entry.path)
                    if not _is_commit_file(part)
                    for place in _guarded_paths(part)
                )


def _guarded_paths(entry: os.DirEntry[str]) -> Iterator[GuardedPath]:
    try:
        info = entry.stat(follow_symlinks=False)
        link = str(Path(entry.path).readlink()) if entry.is_symlink() else ""
    except OSError:  # gone meanwhile
        return
    yield GuardedPath(entry.path, info.st_dev, info.st_ino, link, stat.S_ISREG(info.st_mode))


def _walk(workspace: str) -> Iterator[tuple[str, bool, list[os.DirEntry[str]]]]:
    """Every folder that is not at or below a guarded name: its path, whether it lies in `_DEPENDENCIES`, and its entries."""
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
    except OSError:  # gone, or not readable for us, and so not for a command
        return []


def _repository_paths(place: GuardedPath) -> Iterator[str]:
    """The paths that a `.git` depends on elsewhere: the real repository, its common folder, hooks and included configurations."""
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
    yield from _configured_paths([*own, *(repository / name for name in ("config", "config.worktree"))], path.parent)


def _configured_paths(configurations: Sequence[Path], top: Path) -> Iterator[str]:
    """The folders of hooks that git configurations name, relative to `top`, and the configurations that they include."""
    waiting, examined = list(configurations), set[Path]()
    while waiting and len(examined) < _MAX_CONFIGURATIONS:
        file = waiting.pop()
        if file in examined:
            continue
        examined.add(file)
        for kind, found in _NAMES_FILES.findall(_read_file(file)):
            named = Path(os.fsdecode(found).strip()).expanduser()
            if kind.lower() == b"path":
                waiting.append(file.parent / named)
                yield str(file.parent / named)
            else:
                yield str(top / named)


def _read_file(file: Path) -> bytes:
    data = read_checked(file, None, _MAX_CONFIGURATION_BYTES).data
    return data if b"\0" not in data else b""  # git's own text files have no NUL


def _hard_linked(path: Path) -> Iterator[tuple[int, int]]:
    """The device and inode of each file at or below a path that has further hard links. Git's objects are left out: their names
    are digests of their contents, and a local clone shares them."""
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
    """Move a path; where `to` is on another file system, rename it where it is to a name that no program looks for."""
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
