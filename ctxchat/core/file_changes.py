"""Values and pure functions for undoing what the agent did to files.

A `Checkpoint` records the files that one tool call changed, each by its state before and after; contents are named by digest.
`net` joins several checkpoints into one change for each path, and `restoring` works out what taking them back would do, given
what is on the disk now. Reads no file: `tools.checkpoints` has the contents, `agent.file_undo` carries out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ctxchat.core.expressions import expression

FileKind = Literal["file", "link", "folder"]
_PATH_WORD = expression(r"[\w./@+~%-]+")
"""Matches what may be a path in a command line."""

ChangeWord = Literal["created", "deleted", "changed", "renamed", "mode"]


class FileState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is at a path at some moment.

    `mode` is the permission bits, `digest` names the content (of a link: its target; empty for a folder), `size` is in bytes.
    `kept` is False where the store has no copy of the content, because it is too large or could not be read; the digest still
    tells versions apart.
    """

    kind: FileKind
    mode: int = 0
    digest: str = ""
    size: int = 0
    kept: bool = True


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The state of one path before and after (None: nothing was there).

    `added` and `removed` count lines, where both sides are text. `path` is relative to the workspace, with `/`; a path that is
    not UTF-8 begins with NUL, and each character behind that is a byte (Latin-1).
    """

    path: str
    before: FileState | None = None
    after: FileState | None = None
    added: int = 0
    removed: int = 0

    @property
    def word(self) -> ChangeWord:
        """What happened to the path, as one word (a rename is two changes; see `pairs`)."""
        if self.before is None or self.after is None:
            return "created" if self.before is None else "deleted"
        same = (self.before.kind, self.before.digest) == (self.after.kind, self.after.digest)
        return "mode" if same else "changed"

    @property
    def name(self) -> str:
        """The path for people."""
        return self.path.removeprefix("\0")


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True, tag="checkpoint"):
    """A journal entry: a tool call changed files, or a person took such changes back (or redid them).

    `seq` is the number that the next message had then, so it tells which messages came before. `call_id` is empty for a person's
    undo and for a call that was cut off. `undoes` are the ids of the checkpoints that this one took back, and `change` the id of
    the rewind of the conversation it is part of, if any; `at` is a time (ISO 8601). `unnamed` are the changed paths that the call
    does not mention: a person may have changed them while it ran.
    """

    id: str
    turn: int
    changes: tuple[FileChange, ...]
    call_id: str = ""
    seq: int = 0
    undoes: tuple[str, ...] = ()
    change: str = ""
    at: str = ""
    unnamed: tuple[str, ...] = ()


class Net(msgspec.Struct, frozen=True):
    """What several checkpoints together did to one path. `meddled`: somebody else changed it between two of them; `unnamed`: at
    least one of the calls does not mention it."""

    change: FileChange
    meddled: bool = False
    unnamed: bool = False


class Mine(msgspec.Struct, frozen=True):
    """A path that a person has changed since the agent did; `now` is what is there (None: nothing)."""

    path: str
    now: FileState | None

    @property
    def name(self) -> str:
        """The path for people."""
        return self.path.removeprefix("\0")


class Restoring(msgspec.Struct, frozen=True):
    """What taking back some checkpoints would do.

    `undoes` are their ids, oldest first, `first` and `last` the numbers of their turns. `changes` lead from what is on the disk
    now to what was there before the checkpoints. `mine` are the paths among them that a person has changed since. `unnamed` are
    those that would be removed or overwritten although a call that changed them does not mention them, so they may be a person's.
    `lost` are paths that cannot be taken back and stay as they are, because the store lacks their earlier or their present
    content.
    """

    undoes: tuple[str, ...]
    first: int
    last: int
    changes: tuple[FileChange, ...]
    mine: tuple[Mine, ...] = ()
    lost: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()

    @property
    def doubtful(self) -> frozenset[str]:
        """The paths whose present content is a person's work, or may be."""
        return frozenset({*(m.path for m in self.mine), *self.unnamed})


Keep = Literal["mine", "copy", "none"]
"""What to do with doubtful files: keep them as they are (`mine`), restore them and keep a copy of the present version beside
(`copy`), or just restore them (`none`)."""


def unnamed(changes: Sequence[FileChange], texts: Iterable[str], workspace: str) -> tuple[str, ...]:
    """The changed files that a call does not mention: neither they nor a new folder around them stands in `texts`, the texts of
    its arguments. They may have been changed by the call or by a person while it ran; nobody knows."""
    words = {word for text in texts for word in (text, *_PATH_WORD.findall(text))}
    mentioned = {word.removeprefix(f"{workspace}/").removeprefix("./").rstrip("/") for word in words}
    new_folders = {c.path for c in changes if c.before is None and c.after and c.after.kind == "folder"}

    def named(path: str) -> bool:
        parts = path.split("/")
        parent = path.rpartition("/")[0]
        by_name = any("/".join(parts[n:]) in mentioned for n in range(len(parts)))
        return by_name or (parent in new_folders and named(parent))

    return tuple(c.path for c in changes if c.after and c.after.kind != "folder" and not named(c.path))


def checkpoints_in_force(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """The checkpoints of calls whose changes hold: never taken back, or redone since."""
    undone = taken_back(checkpoints)
    return tuple(c for c in checkpoints if not c.undoes and c.id not in undone)


def redoable(checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    """The newest undo that holds, which is the one a redo would reverse; None where there is none."""
    undone = taken_back(checkpoints)
    return next(
        (c for c in reversed(checkpoints) if c.undoes and c.id not in undone and not is_redo(c, checkpoints)), None
    )


def taken_back(checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
    """The ids of checkpoints that were taken back and not redone since, undone undos included."""
    by_id = {c.id: c for c in checkpoints}
    undone: set[str] = set()
    for checkpoint in checkpoints:
        for taken in checkpoint.undoes:
            undone.add(taken)
            if taken in by_id:  # it was an undo itself, so what it took back holds again
                undone.difference_update(by_id[taken].undoes)
    return frozenset(undone)


def is_redo(checkpoint: Checkpoint, among: Sequence[Checkpoint]) -> bool:
    """True for a redo: a checkpoint that took back another one which is an undo."""
    return any(c.undoes for c in among if c.id in checkpoint.undoes)


def last_turn(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """The checkpoints in force of the newest turn that has any."""
    holding = checkpoints_in_force(checkpoints)
    return tuple(c for c in holding if c.turn == holding[-1].turn)


def since(checkpoints: Sequence[Checkpoint], seq: int) -> tuple[Checkpoint, ...]:
    """The checkpoints in force that were made after the message numbered `seq`."""
    return tuple(c for c in checkpoints_in_force(checkpoints) if c.seq > seq)


def net(checkpoints: Iterable[Checkpoint]) -> dict[str, Net]:
    """What some checkpoints, oldest first, together did, by path. A path that is in the end as it was before is left out, unless
    a person worked on it meanwhile."""
    nets: dict[str, Net] = {}
    for checkpoint in checkpoints:
        for change in checkpoint.changes:
            earlier = nets.get(change.path)
            unnamed_here = change.path in checkpoint.unnamed
            nets[change.path] = (
                _join_change(earlier, change, unnamed_here) if earlier else Net(change, unnamed=unnamed_here)
            )
    return {path: each for path, each in nets.items() if each.meddled or each.change.before != each.change.after}


def _join_change(earlier: Net, change: FileChange, unnamed: bool) -> Net:
    """Two successive changes of a path as one. Where the second does not start from what the first left, somebody meddled."""
    first = earlier.change
    meddled = earlier.meddled or first.after != change.before
    joined = FileChange(
        change.path, first.before, change.after, first.added + change.added, first.removed + change.removed
    )
    return Net(joined, meddled, earlier.unnamed or unnamed)


def restoring(
    checkpoints: Sequence[Checkpoint], now: Mapping[str, FileState | None], kept: Iterable[str] = ()
) -> Restoring:
    """What taking these checkpoints back would do. `now` is the present state of each of their paths (None or absent: nothing is
    there); `kept` are the digests of the contents that the store has."""
    stored = frozenset(kept)
    changes: list[FileChange] = []
    mine: list[Mine] = []
    lost: list[str] = []
    unnamed_paths: list[str] = []
    for path, each in net(checkpoints).items():
        left, wanted = each.change.after, each.change.before
        present = now.get(path)
        if present == wanted:
            continue
        missing = wanted is not None and wanted.digest and (not wanted.kept or wanted.digest not in stored)
        if missing or (present is not None and not present.kept):  # unkept: what is there now could not be brought back
            lost.append(path)
            continue
        changes.append(FileChange(path, present, wanted, each.change.removed, each.change.added))
        if present != left or each.meddled:
            mine.append(Mine(path, present))
        elif each.unnamed and present is not None:
            unnamed_paths.append(path)
    turns = [c.turn for c in checkpoints] or [0]
    ids = tuple(c.id for c in checkpoints)
    return Restoring(ids, min(turns), max(turns), tuple(changes), tuple(mine), tuple(lost), tuple(unnamed_paths))


def changes_to_make(wanted: Restoring, keep: Keep) -> tuple[FileChange, ...]:
    """The changes that are carried out: where `keep` is `mine`, without the doubtful files and without removing folders that hold
    some."""
    if keep != "mine":
        return wanted.changes
    kept_paths = wanted.doubtful
    return tuple(
        c
        for c in wanted.changes
        if c.path not in kept_paths
        and not (c.after is None and any(path.startswith(f"{c.path}/") for path in kept_paths))
    )


def made_last(checkpoints: Sequence[Checkpoint]) -> str:
    """The time of the newest checkpoint that can be taken back; empty where there is none."""
    holding = checkpoints_in_force(checkpoints)
    return holding[-1].at if holding else ""


def files_words(changes: Iterable[FileChange]) -> str:
    """Changes in a few words for a person: `2 files changed +10 −3`, `1 file created +4 −0`; empty for none. Folders count only
    where nothing else changed."""
    counted = list(changes)
    counted = [c for c in counted if not is_folder(c)] or counted
    if not counted:
        return ""
    words = {c.word for c in counted}
    word = {"mode": "changed"}.get(only, only) if len(words) == 1 and (only := next(iter(words))) else "changed"
    thing = "folder" if all(is_folder(c) for c in counted) else "file"
    added, removed = sum(c.added for c in counted), sum(c.removed for c in counted)
    lines = f" +{added} −{removed}" if added or removed else ""
    return f"{len(counted):,} {thing}{'' if len(counted) == 1 else 's'} {word}{lines}"


def is_folder(change: FileChange) -> bool:
    """True where the path was and is a folder, as far as something is there at all."""
    return all(state is None or state.kind == "folder" for state in (change.before, change.after))


def pairs(changes: Sequence[FileChange]) -> list[tuple[FileChange, str]]:
    """The changes as a list shows them, each with the path it was moved from (empty where it was not moved).

    A file that was deleted and one that was created with the same content are one row, a move. Folders are left out where files
    changed.
    """
    deleted = {c.before.digest: c for c in changes if c.after is None and c.before and c.before.kind == "file"}
    moved: dict[str, FileChange] = {}
    for change in changes:
        if change.before is None and change.after and change.after.kind == "file" and change.after.digest in deleted:
            moved[change.path] = deleted.pop(change.after.digest)
    sources = {c.path for c in moved.values()}
    shown = [c for c in changes if c.path not in sources]
    shown = [c for c in shown if not is_folder(c)] or shown
    return [(c, moved[c.path].name if c.path in moved else "") for c in shown]
