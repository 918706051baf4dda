"""What happened to the files of a folder, as values: states, changes, checkpoints, and what taking some of them back comes to.

A checkpoint is the change one call made; it names contents by digest. Reads no file: the store and the folder are `tools`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ctxchat.core.expressions import expression

FileKind = Literal["file", "link", "folder"]
_PATH_WORD = expression(r"[\w./@+~%-]+")

ChangeWord = Literal["created", "deleted", "changed", "renamed", "mode"]


class FileState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What stands at a path. `mode` are the permission bits, `digest` names the content (of a link: where it points; of a folder:
    empty), `size` is in bytes. A file whose content was not kept has `kept` False; its digest still tells two of them apart."""

    kind: FileKind
    mode: int = 0
    digest: str = ""
    size: int = 0
    kept: bool = True


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One path before and after (None: nothing was there). Lines `added` and `removed` where both sides are text. `path` is
    relative to the workspace, with `/`; one that is no UTF-8 begins with NUL and stands for its bytes in Latin-1."""

    path: str
    before: FileState | None = None
    after: FileState | None = None
    added: int = 0
    removed: int = 0

    @property
    def word(self) -> ChangeWord:
        """What happened, in a word."""
        if self.before is None or self.after is None:
            return "created" if self.before is None else "deleted"
        same = (self.before.kind, self.before.digest) == (self.after.kind, self.after.digest)
        return "mode" if same else "changed"

    @property
    def name(self) -> str:
        """The path for people."""
        return self.path.removeprefix("\0")


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True, tag="checkpoint"):
    """Entry of the journal: a call changed files, or a person took such changes back.

    `seq` is the place in the record where it came about: what has a lower one was said before. `call_id` is the call's, empty
    where it was a person or a call that was cut off. `undoes` are the ids of the checkpoints that
    this one took back; `change` is the rewind it is part of, where there is one. `unnamed` are the paths among its changes that
    the call does not name: a person may have changed them while it ran.
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
    """What several checkpoints come to for one path. `meddled`: a person worked on it between two of them; `unnamed`: one of
    the calls does not name it."""

    change: FileChange
    meddled: bool = False
    unnamed: bool = False


class Mine(msgspec.Struct, frozen=True):
    """A path where a person worked since: `now` is what stands there (None: nothing)."""

    path: str
    now: FileState | None

    @property
    def name(self) -> str:
        """The path for people."""
        return self.path.removeprefix("\0")


class Restoring(msgspec.Struct, frozen=True):
    """What taking back checkpoints would do.

    `undoes` are their ids, oldest first, `first` and `last` the turns they are of. `changes` are from what the turns left to what
    stood there before. `mine` are the paths among them that a person changed since, `unnamed` those of files that would go or
    be overwritten although no call names them, so that a person may have made them while it ran; `lost` are paths that stay as
    they are: their content, the earlier or the present one, is not kept.
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
        """The paths at which something of a person's stands, or may."""
        return frozenset({*(m.path for m in self.mine), *self.unnamed})


Keep = Literal["mine", "copy", "none"]
"""What becomes of files that a person changed, or may have: they stay as they are, are restored with their present version
beside, or are restored."""


def unnamed(changes: Sequence[FileChange], texts: Iterable[str], workspace: str) -> tuple[str, ...]:
    """The paths of files that came about or were changed while a call ran whose `texts` name neither them nor a folder that came
    about with them. Nobody knows who did that: the call, or a person meanwhile."""
    words = {word for text in texts for word in (text, *_PATH_WORD.findall(text))}
    names = {word.removeprefix(f"{workspace}/").removeprefix("./").rstrip("/") for word in words}
    new = {c.path for c in changes if c.before is None and c.after and c.after.kind == "folder"}

    def named(path: str) -> bool:
        parts = path.split("/")
        above = path.rpartition("/")[0]
        return any("/".join(parts[n:]) in names for n in range(len(parts))) or (above in new and named(above))

    return tuple(c.path for c in changes if c.after and c.after.kind != "folder" and not named(c.path))


def checkpoints_in_force(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Those of calls that are in force: not taken back, or brought back since."""
    gone = taken_back(checkpoints)
    return tuple(c for c in checkpoints if not c.undoes and c.id not in gone)


def redoable(checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    """The last taking back that is in force, None for none."""
    gone = taken_back(checkpoints)
    return next(
        (c for c in reversed(checkpoints) if c.undoes and c.id not in gone and not is_redo(c, checkpoints)), None
    )


def taken_back(checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
    """Ids of what was taken back and not brought back since."""
    known = {c.id: c for c in checkpoints}
    gone: set[str] = set()
    for checkpoint in checkpoints:
        for name in checkpoint.undoes:
            gone.add(name)
            if name in known:
                gone.difference_update(known[name].undoes)
    return frozenset(gone)


def is_redo(checkpoint: Checkpoint, among: Sequence[Checkpoint]) -> bool:
    """It brought back what another one had taken back."""
    return any(c.undoes for c in among if c.id in checkpoint.undoes)


def last_turn(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Those in force of the newest turn that has any."""
    found = checkpoints_in_force(checkpoints)
    return tuple(c for c in found if c.turn == found[-1].turn)


def since(checkpoints: Sequence[Checkpoint], seq: int) -> tuple[Checkpoint, ...]:
    """Those in force that came about after this place in the record."""
    return tuple(c for c in checkpoints_in_force(checkpoints) if c.seq > seq)


def net(checkpoints: Iterable[Checkpoint]) -> dict[str, Net]:
    """What these come to, path by path. What was created and deleted again is not among them, unless a person worked on it."""
    found: dict[str, Net] = {}
    for checkpoint in checkpoints:
        for change in checkpoint.changes:
            earlier = found.get(change.path)
            new = change.path in checkpoint.unnamed
            found[change.path] = _merged_change(earlier, change, new) if earlier else Net(change, unnamed=new)
    return {path: one for path, one in found.items() if one.meddled or one.change.before != one.change.after}


def _merged_change(earlier: Net, change: FileChange, unnamed: bool) -> Net:
    first = earlier.change
    meddled = earlier.meddled or first.after != change.before
    joined = FileChange(
        change.path, first.before, change.after, first.added + change.added, first.removed + change.removed
    )
    return Net(joined, meddled, earlier.unnamed or unnamed)


def restoring(
    checkpoints: Sequence[Checkpoint], now: Mapping[str, FileState | None], kept: Iterable[str] = ()
) -> Restoring:
    """What taking these back would do where this stands at their paths `now`. `kept` are digests the store has."""
    has = frozenset(kept)
    changes: list[FileChange] = []
    mine: list[Mine] = []
    lost: list[str] = []
    doubtful: list[str] = []
    for path, one in net(checkpoints).items():
        left, wanted = one.change.after, one.change.before
        stands = now.get(path)
        if stands == wanted:
            continue
        missing = wanted is not None and wanted.digest and (not wanted.kept or wanted.digest not in has)
        if missing or (stands is not None and not stands.kept):
            lost.append(path)
            continue
        changes.append(FileChange(path, stands, wanted, one.change.removed, one.change.added))
        if stands != left or one.meddled:
            mine.append(Mine(path, stands))
        elif one.unnamed and stands is not None:
            doubtful.append(path)
    turns = [c.turn for c in checkpoints] or [0]
    names = tuple(c.id for c in checkpoints)
    return Restoring(names, min(turns), max(turns), tuple(changes), tuple(mine), tuple(lost), tuple(doubtful))


def changes_to_make(wanted: Restoring, keep: Keep) -> tuple[FileChange, ...]:
    """What is done of what was looked at: without a person's files where they keep them, and without folders these lie in."""
    if keep != "mine":
        return wanted.changes
    stays = wanted.doubtful
    return tuple(
        c
        for c in wanted.changes
        if c.path not in stays and not (c.after is None and any(path.startswith(f"{c.path}/") for path in stays))
    )


def made_last(checkpoints: Sequence[Checkpoint]) -> str:
    """When files were changed last that can be taken back; empty where none were."""
    found = checkpoints_in_force(checkpoints)
    return found[-1].at if found else ""


def files_words(changes: Iterable[FileChange]) -> str:
    """`2 files changed +10 −3`, `1 file created +4 −0`, empty for nothing. Folders do not count where files do."""
    told = list(changes)
    told = [c for c in told if not is_folder(c)] or told
    if not told:
        return ""
    words = {c.word for c in told}
    word = {"mode": "changed"}.get(only, only) if len(words) == 1 and (only := next(iter(words))) else "changed"
    thing = "folder" if all(is_folder(c) for c in told) else "file"
    added, removed = sum(c.added for c in told), sum(c.removed for c in told)
    lines = f" +{added} −{removed}" if added or removed else ""
    return f"{len(told):,} {thing}{'' if len(told) == 1 else 's'} {word}{lines}"


def is_folder(change: FileChange) -> bool:
    """Nothing but folders is concerned."""
    return all(state is None or state.kind == "folder" for state in (change.before, change.after))


def pairs(changes: Sequence[FileChange]) -> list[tuple[FileChange, str]]:
    """The changes for a list, folders left out where they hold files; what was only moved once, with where it came from (empty
    for the others)."""
    gone = {c.before.digest: c for c in changes if c.after is None and c.before and c.before.kind == "file"}
    moved: dict[str, FileChange] = {}
    for change in changes:
        if change.before is None and change.after and change.after.kind == "file" and change.after.digest in gone:
            moved[change.path] = gone.pop(change.after.digest)
    sources = {c.path for c in moved.values()}
    shown = [c for c in changes if c.path not in sources]
    shown = [c for c in shown if not is_folder(c)] or shown
    return [(c, moved[c.path].name if c.path in moved else "") for c in shown]
