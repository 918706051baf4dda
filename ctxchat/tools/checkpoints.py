"""What calls do to the files of a workspace, kept so that it can be undone, and the way back. A `core.ports.WorkspaceFiles`.

Contents lie in the session's folder, found by digest: those of the whole folder while the session is open (`base`), those of
what was changed for as long as the session is there (`kept`). Nothing here touches `.git`, follows a link, or leaves the
workspace.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from ctxchat import atomic_write
from ctxchat.core.errors import CtxchatError, ToolError
from ctxchat.core.file_changes import Checkpoint, FileChange, FileState, is_folder, unnamed
from ctxchat.core.permissions import Access
from ctxchat.repository_files import held_folder
from ctxchat.tools.contents import Contents
from ctxchat.tools.diffs import Diff, difference
from ctxchat.tools.encodings import SNIFFED_BYTES, binary_kind, encoding_of
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.text import size
from ctxchat.tools.tree import MAX_ENTRIES, MAX_FILE_BYTES, TooMany, Tree, changed, named, read_state, written

MAX_STORED_BYTES = 1_000_000_000
"""Bytes of contents kept while a session is open; in a larger folder what commands do cannot be kept."""

_MAX_COMPARED_BYTES = 2_000_000  # bytes up to which lines are compared


Left = TypeVar("Left")


class Begun(msgspec.Struct, frozen=True):
    """A call that may change files: what stood there before it. `paths` are those it may touch, None for the whole folder,
    `words` those by which it may name what it changes."""

    id: str
    before: dict[str, FileState]
    paths: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()


class Checkpoints:
    """The files of one session's workspace. `folder` is where it keeps what it needs, `apart` are folders within the workspace
    that are none of its content."""

    def __init__(self, workspace: Path, folder: Path, apart: Collection[str] = ()) -> None:
        self._root = os.path.realpath(workspace)
        self._folder = folder
        self._tree = Tree(self._root, apart)
        self._base = Contents(folder / "base", pack=False)
        self._kept = Contents(folder / "kept")
        self._begun: Begun | None = None
        self._working = threading.Lock()
        self.seen: list[SeenFiles] = []
        """What those have seen whose calls run here: their own changes are no surprise to them."""

    # ── around a call ──

    async def begin_call(self, access: Access, target: str, words: Sequence[str] = ()) -> None:
        """A call is about to run. Raises CtxchatError where what it does cannot be undone, and why."""
        await asyncio.to_thread(self._begin_call, access, target, words)

    async def end_call(self) -> tuple[str, tuple[FileChange, ...], tuple[str, ...]]:
        """An id for the call that began, what it did, and the paths that it does not name; all empty where none began, or nothing
        came of it. Also for one that a kill cut off."""
        return await asyncio.to_thread(self._end_call)

    def _begin_call(self, access: Access, target: str, words: Sequence[str]) -> None:
        with self._working:
            self._begun = None
            self.forget()
            if access == "write" and not Path(target).is_relative_to(self._root):
                return
            with _faults("What this call does to files cannot be undone"):
                paths = self._touched(target) if access == "write" else None
                before = self._scan(paths, again=False)
                self._begun = Begun(secrets.token_hex(6), before, paths, tuple(words))
                self._write_file("begun", _coded(self._begun))

    def _end_call(self) -> tuple[str, tuple[FileChange, ...], tuple[str, ...]]:
        with self._working:
            begun, self._begun = self._begun or self._cut_off(), None
            if begun is None:
                return "", (), ()
            with _faults("What the last call did to files cannot be undone"):
                after = self._scan(begun.paths, again=True)
                for path in changed(begun.before, after):
                    if path not in after and begun.paths is None and (looked := read_state(self._absolute(path))):
                        after[path] = looked[0]  # passed over, not gone
                changes = tuple(self._change(path, begun.before, after) for path in changed(begun.before, after))
                states = (state for c in changes for state in (c.before, c.after) if state and state.kept)
                digests = (state.digest for state in states if state.digest and state.digest not in self._kept)
                self._kept.add_contents(
                    ((d, data) for d in digests if (data := self._base.get(d)) is not None), sync=True
                )
            for seen in self.seen:
                seen.mark_own_changes(self._root, changes)
            if not changes:
                self.forget()  # or what somebody does later would be taken for the call's
                return "", (), ()
            return begun.id, changes, unnamed(changes, begun.words, self._root) if begun.paths is None else ()

    def _cut_off(self) -> Begun | None:
        left = self._left_open("begun", Begun)
        return left and _decoded(left)

    def forget(self) -> None:
        """What `end_call` gave is written down."""
        with suppress(OSError):
            (self._folder / "begun").unlink(missing_ok=True)

    def _touched(self, target: str) -> tuple[str, ...]:
        """The path itself, and the folders that would have to be made for it."""
        path = Path(target)
        above = [p for p in path.parents if p.is_relative_to(self._root) and not os.path.lexists(p)]
        return tuple(str(p.relative_to(self._root)) for p in (path, *above))

    def _scan(self, paths: Sequence[str] | None, *, again: bool) -> dict[str, FileState]:
        """What stands there, its contents in `base`."""
        if paths is None:
            return self._tree.scan(lambda contents: self._save_all(contents, again=again), again=again)
        found = {path: looked for path in paths if (looked := read_state(self._absolute(path)))}
        self._base.add_contents((state.digest, data) for state, data in found.values() if data is not None)
        return {path: state for path, (state, _) in found.items()}

    def _save_all(self, contents: Mapping[str, bytes], *, again: bool) -> None:
        if not again and self._base.size + sum(map(len, contents.values())) > MAX_STORED_BYTES:
            raise TooMany
        self._base.add_contents(contents.items())

    def _change(self, path: str, before: Mapping[str, FileState], after: Mapping[str, FileState]) -> FileChange:
        old, new = before.get(path), after.get(path)
        diff = self._diff(old, new, path)
        return FileChange(named(path), old, new, diff.added, diff.removed)

    # ── reading ──

    async def now(self, paths: Sequence[str]) -> dict[str, FileState | None]:
        """What stands at these paths."""
        return await asyncio.to_thread(lambda: {path: self._state(path) for path in paths})

    async def stored_digests(self, digests: Collection[str]) -> frozenset[str]:
        """Those whose content is there."""
        return await asyncio.to_thread(lambda: frozenset(d for d in digests if d in self._kept or d in self._base))

    async def diff(self, change: FileChange) -> str:
        """The change as a unified diff; in words where it is no text."""
        return await asyncio.to_thread(self._diff_of, change)

    async def texts(self, change: FileChange) -> tuple[str | None, str | None]:
        """The whole text before and after; None for a side that is no text, is large or is not kept, empty for no file."""
        return await asyncio.to_thread(lambda: (self._decoded(change.before), self._decoded(change.after)))

    def _diff_of(self, change: FileChange) -> str:
        before, after = change.before, change.after
        lines = [f"mode {before.mode:o} → {after.mode:o}"] if before and after and before.mode != after.mode else []
        if text := self._diff(before, after, change.name).text:
            return "\n".join([*lines, text])
        if (before is None or after is None or before.digest != after.digest) and not is_folder(change):
            lines.append(f"{self._describe_state(before)} → {self._describe_state(after)}")
        return "\n".join(lines) or change.word

    def _diff(self, before: FileState | None, after: FileState | None, name: str) -> Diff:
        texts = [self._decoded(state) for state in (before, after)]
        same = before and after and before.digest == after.digest
        return Diff("") if same or None in texts else difference(texts[0] or "", texts[1] or "", name)

    def _decoded(self, state: FileState | None) -> str | None:
        """The text of a file; None where it is none."""
        if state is None:
            return ""
        if state.kind != "file" or not state.kept or state.size > _MAX_COMPARED_BYTES:
            return None
        data = self._stored_bytes(state.digest)
        return None if data is None or binary_kind(data[:SNIFFED_BYTES]) else encoding_of(data).decode(data)

    def _describe_state(self, state: FileState | None) -> str:
        if state is None:
            return "nothing"
        if state.kind == "link":
            return f"link to {os.fsdecode(self._stored_bytes(state.digest) or b'?')}"
        return "folder" if state.kind == "folder" else f"{size(state.size)}{'' if state.kept else ', not kept'}"

    def _stored_bytes(self, digest: str) -> bytes | None:
        found = self._kept.get(digest)
        return self._base.get(digest) if found is None else found

    # ── the way back ──

    async def restore(self, checkpoint: Checkpoint, copies: Collection[str] = ()) -> Checkpoint:
        """Bring each path of it from `before`, which must be what stands there now, to `after`; what stood there at `copies` is
        laid beside under a name of its own. A folder that is needed and was removed since comes back; what lies under a file or a
        link that a person put in its folder's place is left out. All the rest or nothing; what was done, as a checkpoint. Raises
        CtxchatError."""
        return await asyncio.to_thread(self._restore, checkpoint, copies)

    async def unfinished(self) -> Checkpoint | None:
        """A restore that a kill cut off, brought to its end now."""
        return await asyncio.to_thread(self._finish)

    def end_restore(self) -> None:
        """The restore is written down."""
        with suppress(OSError):
            (self._folder / "restoring").unlink(missing_ok=True)

    def _restore(self, checkpoint: Checkpoint, copies: Collection[str]) -> Checkpoint:
        with self._working, _faults("Nothing was restored"):
            checkpoint = msgspec.structs.replace(checkpoint, changes=self._placed(checkpoint.changes))
            for change in checkpoint.changes:
                self._save(change)
            extra = tuple(
                self._copy_of(change) for change in checkpoint.changes if change.path in copies and change.before
            )
            checkpoint = msgspec.structs.replace(checkpoint, changes=(*checkpoint.changes, *extra))
            self._write_file("restoring", msgspec.msgpack.encode(checkpoint))
            try:
                self._carry_out(checkpoint.changes)
            except (OSError, CtxchatError):
                self._carry_back(checkpoint.changes)
                self.end_restore()
                raise
            return checkpoint

    def _placed(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """Those whose place is there, and the folders that have to come back for them. Raises ToolError where none has one."""
        after = {c.path: c.after for c in changes}
        needed: dict[str, FileChange] = {}
        placed: list[FileChange] = []
        for change in changes:
            missing: list[str] = []
            for above in reversed(PurePosixPath(written(change.path)).parents[:-1]):
                name = named(str(above))
                state = after[name] if change.after and name in after else self._state(name)
                if state is None:
                    missing.append(name)
                elif state.kind != "folder":
                    break
            else:
                placed.append(change)
                if change.after:
                    new = (name for name in missing if name not in after)
                    needed.update((name, FileChange(name, None, FileState("folder", 0o755))) for name in new)
        if changes and not placed:
            raise ToolError(f"The folder of {changes[0].name} is none any more.", "Nothing was restored.")
        return (*placed, *needed.values())

    def _save(self, change: FileChange) -> None:
        """What stands there now is kept before it goes. Raises ToolError where it is not what was looked at."""
        looked = read_state(self._absolute(written(change.path)))
        state, data = looked or (None, None)
        if state != change.before:
            raise ToolError(f"{change.name} changed just now.", "Nothing was restored; look again.")
        if state and not state.kept:
            raise ToolError(
                f"{change.name} is larger than {size(MAX_FILE_BYTES)}: its present content cannot be kept.",
                "Move it away first.",
            )
        if data is not None and state:
            self._kept.add_contents([(state.digest, data)], sync=True)
        wanted = change.after
        if wanted and wanted.digest and self._stored_bytes(wanted.digest) is None:
            raise ToolError(f"The earlier content of {change.name} is not there any more.", "Nothing was restored.")

    def _copy_of(self, change: FileChange) -> FileChange:
        """A copy of what stands there, under a free name."""
        number, name = 1, f"{change.path}.yours"
        while os.path.lexists(self._absolute(written(name))):
            number += 1
            name = f"{change.path}.yours-{number}"
        return FileChange(name, None, change.before)

    def _finish(self) -> Checkpoint | None:
        checkpoint = self._left_open("restoring", Checkpoint)
        if checkpoint is None:
            return None
        with self._working, _faults("An interrupted restore could not be brought to its end"):
            stand = [(c, self._state(c.path)) for c in checkpoint.changes]
            # Nothing there may be half of a change of kind: a link in place of a folder.
            self._carry_out([c for c, now in stand if now == c.before or (now is None and c.after)])
            done = tuple(c for c in checkpoint.changes if self._state(c.path) == c.after)
            return msgspec.structs.replace(checkpoint, changes=done)

    def _carry_back(self, changes: Sequence[FileChange]) -> None:
        """As it was, as far as the system lets us."""
        back = [FileChange(c.path, c.after, c.before) for c in changes]
        with suppress(OSError, CtxchatError):
            self._carry_out([c for c in back if self._state(c.path) != c.after])

    def _carry_out(self, changes: Sequence[FileChange]) -> None:
        """What goes first, the deepest first; then what comes, folders before what is in them; their modes last."""
        opened: dict[str, int] = {}
        deepest_first = sorted(changes, key=lambda c: -c.path.count("/"))
        try:
            for change in deepest_first:
                if change.before and (change.after is None or change.after.kind != change.before.kind):
                    self._remove(change, opened)
            for change in reversed(deepest_first):
                if change.after:
                    self._restore_file(change.path, change.after, opened)
        finally:
            modes = {
                self._absolute(written(c.path)): c.after.mode for c in changes if c.after and c.after.kind == "folder"
            }
            for path in sorted(opened | modes, reverse=True):
                with suppress(FileNotFoundError):
                    os.chmod(path, modes.get(path, opened.get(path, 0)))  # noqa: PTH101 - strings all the way

    def _remove(self, change: FileChange, opened: dict[str, int]) -> None:
        with self._held(change.path, opened) as (folder, path):
            try:
                if change.before and change.before.kind == "folder":
                    _let_in(self._path(change.path), opened)
                    os.rmdir(path, dir_fd=folder)
                else:
                    os.unlink(path, dir_fd=folder)
            except FileNotFoundError:
                return
            except OSError:
                if change.after is None and self._path(change.path).is_dir():
                    return  # somebody put something into it: that stays, and the folder with it
                raise

    def _restore_file(self, name: str, state: FileState, opened: dict[str, int]) -> None:
        with self._held(name, opened) as (folder, path):
            if state.kind == "folder":
                if not self._path(name).is_dir() or self._path(name).is_symlink():
                    os.mkdir(path, 0o700, dir_fd=folder)
                _let_in(self._path(name), opened)
                return
            stands = self._state(name)
            if stands and stands.kind == state.kind == "file" and stands.digest == state.digest:
                self._path(name).chmod(state.mode)  # whoever has it open goes on with the same file
                return
            data = self._stored_bytes(state.digest)
            if data is None:
                raise ToolError(f"The content of {name} is not there any more.")
            if state.kind == "file":
                atomic_write.write_atomically(path, data, state.mode, folder=folder)
                return
            beside = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}.tmp")
            os.symlink(os.fsdecode(data), beside, dir_fd=folder)
            try:
                os.replace(beside, path, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside, dir_fd=folder)
                raise

    def _path(self, name: str) -> Path:
        """Raises ToolError for what is no file of the workspace."""
        pure = PurePosixPath(written(name))
        if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts:
            raise ToolError(f"{name} is no file of this workspace.")
        return Path(self._root, pure)

    @contextmanager
    def _held(self, name: str, opened: dict[str, int]) -> Generator[tuple[int | None, Path], None, None]:
        """The folder of a file, held so that no link leads out of it, and the file's path in it. The folder is open for writing
        then. Raises ToolError where a link leads out of the way."""
        path = self._path(name)
        elsewhere = ToolError(
            f"{PurePosixPath(written(name)).parent} leads somewhere else than before.", "Nothing was restored."
        )
        if os.path.realpath(path.parent) != str(path.parent):
            raise elsewhere
        _let_in(path.parent, opened)
        with ExitStack() as held:
            try:
                folder = held.enter_context(held_folder(path.parent))
            except NotADirectoryError as error:  # what a link is, where none is followed
                raise elsewhere from error
            yield folder, path if folder is None else Path(path.name)

    def _state(self, name: str) -> FileState | None:
        looked = read_state(self._absolute(written(name)))
        return looked[0] if looked else None

    def _absolute(self, path: str) -> str:
        return os.path.join(self._root, path)  # noqa: PTH118 - strings all the way

    # ── its own files ──

    async def close(self) -> None:
        """The session is left: what only it needs goes."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        with suppress(OSError):
            self._base.drop()

    def _write_file(self, name: str, data: bytes) -> None:
        """Whole or not at all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._folder / f"{name}.new"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        beside.replace(self._folder / name)

    def _left_open(self, name: str, kind: type[Left]) -> Left | None:
        """What a kill left open, None for nothing."""
        try:
            return msgspec.msgpack.decode((self._folder / name).read_bytes(), type=kind)
        except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
            return None


class _faults:
    """What goes wrong within is told with these words before it."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, TooMany):
            raise CtxchatError(
                f"{self._words}: this folder holds more than {MAX_ENTRIES:,} files or {size(MAX_STORED_BYTES)}.",
                "What write_file and edit_file do can.",
            ) from None
        if isinstance(problem, OSError):
            where = f" ({Path(os.fsdecode(problem.filename)).name})" if problem.filename else ""
            raise CtxchatError(f"{self._words}: {problem.strerror or problem}{where}.") from problem


def _let_in(folder: Path, opened: dict[str, int]) -> None:
    """Let us write in a folder, and remember how it was."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o700 != 0o700:
        opened.setdefault(str(folder), mode)
        folder.chmod(mode | 0o700)


def _coded(begun: Begun) -> bytes:
    """As bytes; names that are no UTF-8 in another form."""
    before = {named(path): state for path, state in begun.before.items()}
    paths = begun.paths and tuple(named(path) for path in begun.paths)
    words = tuple(word.encode("utf-8", "replace").decode() for word in begun.words)
    return msgspec.msgpack.encode(Begun(begun.id, before, paths, words))


def _decoded(begun: Begun) -> Begun:
    before = {written(path): state for path, state in begun.before.items()}
    return Begun(begun.id, before, begun.paths and tuple(written(path) for path in begun.paths), begun.words)
