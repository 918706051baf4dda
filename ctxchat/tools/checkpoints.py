"""Checkpoints of a workspace: records what each tool call changes in its files, and restores earlier states. Fulfils
`core.ports.WorkspaceFiles`.

Contents are stored by digest in the session's folder: those of the whole workspace while the session is open (`base`), those of
changed files for as long as the session exists (`kept`). Nothing here touches `.git`, follows a link, or leaves the workspace.
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
"""Bytes of contents kept while a session is open; in a larger workspace the changes of commands cannot be undone."""

_MAX_COMPARED_BYTES = 2_000_000  # bytes up to which lines are compared


Left = TypeVar("Left")


class Begun(msgspec.Struct, frozen=True):
    """A call that may change files, recorded before it runs. `before` are the files by path, `paths` those that it may touch
    (None for the whole workspace), `words` the words of the call, in which it may name the paths it changes."""

    id: str
    before: dict[str, FileState]
    paths: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()


class Checkpoints:
    """The checkpoints of one session's workspace. `folder` is where they are stored, `apart` are folders inside the workspace
    that are not part of its content."""

    def __init__(self, workspace: Path, folder: Path, apart: Collection[str] = ()) -> None:
        self._root = os.path.realpath(workspace)
        self._folder = folder
        self._tree = Tree(self._root, apart)
        self._base = Contents(folder / "base", pack=False)
        self._kept = Contents(folder / "kept")
        self._begun: Begun | None = None
        self._working = threading.Lock()
        self.seen: list[SeenFiles] = []
        """Records of the files that the agents working here have seen; their own changes are entered there."""

    # ── around a call ──

    async def begin_call(self, access: Access, target: str, words: Sequence[str] = ()) -> None:
        """Record the files before a call runs. `target` is the path that it writes, for an `access` of "write". Raises
        CtxchatError with the reason where its changes could not be undone."""
        await asyncio.to_thread(self._begin_call, access, target, words)

    async def end_call(self) -> tuple[str, tuple[FileChange, ...], tuple[str, ...]]:
        """An id for the call that began, the changes it made, and the changed paths that it does not name; all empty where no
        call began or it changed nothing. A call that was interrupted when the program was killed is ended too."""
        return await asyncio.to_thread(self._end_call)

    def _begin_call(self, access: Access, target: str, words: Sequence[str]) -> None:
        with self._working:
            self._begun = None
            self.forget()
            if access == "write" and not Path(target).is_relative_to(self._root):
                return
            with _explained_faults("What this call does to files cannot be undone"):
                paths = self._touched(target) if access == "write" else None
                before = self._scan(paths, again=False)
                self._begun = Begun(secrets.token_hex(6), before, paths, tuple(words))
                self._write_file("begun", _encode_begun(self._begun))

    def _end_call(self) -> tuple[str, tuple[FileChange, ...], tuple[str, ...]]:
        with self._working:
            begun, self._begun = self._begun or self._unfinished_call(), None
            if begun is None:
                return "", (), ()
            with _explained_faults("What the last call did to files cannot be undone"):
                after = self._scan(begun.paths, again=True)
                for path in changed(begun.before, after):
                    if path not in after and begun.paths is None and (looked := read_state(self._absolute(path))):
                        after[path] = looked[0]  # the scan left it out; it still exists
                changes = tuple(self._change(path, begun.before, after) for path in changed(begun.before, after))
                states = (state for c in changes for state in (c.before, c.after) if state and state.kept)
                digests = (state.digest for state in states if state.digest and state.digest not in self._kept)
                self._kept.add_contents(
                    ((d, data) for d in digests if (data := self._base.get(d)) is not None), sync=True
                )
            for seen in self.seen:
                seen.mark_own_changes(self._root, changes)
            if not changes:
                self.forget()  # or later changes of a person would count as the call's
                return "", (), ()
            return begun.id, changes, unnamed(changes, begun.words, self._root) if begun.paths is None else ()

    def _unfinished_call(self) -> Begun | None:
        left = self._read_unfinished("begun", Begun)
        return left and _decoded(left)

    def forget(self) -> None:
        """Delete the record of the call that began, once the result of `end_call` is in the journal."""
        with suppress(OSError):
            (self._folder / "begun").unlink(missing_ok=True)

    def _touched(self, target: str) -> tuple[str, ...]:
        """The path of a file to be written, and the folders that would have to be created for it, relative to the workspace."""
        path = Path(target)
        above = [p for p in path.parents if p.is_relative_to(self._root) and not os.path.lexists(p)]
        return tuple(str(p.relative_to(self._root)) for p in (path, *above))

    def _scan(self, paths: Sequence[str] | None, *, again: bool) -> dict[str, FileState]:
        """The files that exist now at `paths` (None for the whole workspace), with their contents saved in `base`. `again`: the
        second scan, after a call."""
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
        """The present state of the files at these paths; None where there is none."""
        return await asyncio.to_thread(lambda: {path: self._state(path) for path in paths})

    async def stored_digests(self, digests: Collection[str]) -> frozenset[str]:
        """The digests whose content is stored."""
        return await asyncio.to_thread(lambda: frozenset(d for d in digests if d in self._kept or d in self._base))

    async def diff(self, change: FileChange) -> str:
        """A change as a unified diff; for anything but text, as a description."""
        return await asyncio.to_thread(self._diff_of, change)

    async def texts(self, change: FileChange) -> tuple[str | None, str | None]:
        """The whole text before and after a change; None for a side that is no text, is too large or is not kept, empty for no
        file."""
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
        """The text of a file in this state, empty for no file; None where it is no text, is too large or is not kept."""
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
        """Bring each path of a checkpoint from `before`, which must be its present state, to `after`. The present files at
        `copies` are copied beside them under new names. A needed folder that was removed since is created again; a path whose
        folder a person replaced by a file or a link is left out. All other paths are restored, or none. Returns what was done as
        a checkpoint. Raises CtxchatError."""
        return await asyncio.to_thread(self._restore, checkpoint, copies)

    async def unfinished(self) -> Checkpoint | None:
        """Complete a restore that was interrupted when the program was killed; what was done, None where there is none."""
        return await asyncio.to_thread(self._finish)

    def end_restore(self) -> None:
        """Delete the record of the restore under way, once it is in the journal."""
        with suppress(OSError):
            (self._folder / "restoring").unlink(missing_ok=True)

    def _restore(self, checkpoint: Checkpoint, copies: Collection[str]) -> Checkpoint:
        with self._working, _explained_faults("Nothing was restored"):
            checkpoint = msgspec.structs.replace(checkpoint, changes=self._placeable_changes(checkpoint.changes))
            for change in checkpoint.changes:
                self._save(change)
            extra = tuple(
                self._copy_change(change) for change in checkpoint.changes if change.path in copies and change.before
            )
            checkpoint = msgspec.structs.replace(checkpoint, changes=(*checkpoint.changes, *extra))
            self._write_file("restoring", msgspec.msgpack.encode(checkpoint))
            try:
                self._apply_changes(checkpoint.changes)
            except (OSError, CtxchatError):
                self._revert_changes(checkpoint.changes)
                self.end_restore()
                raise
            return checkpoint

    def _placeable_changes(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The changes whose folder exists or can be created, and changes that create such folders. Raises ToolError where no
        change is left."""
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
        """Store the present content of a path before it is replaced. Raises ToolError where the path has changed since the
        restore was planned, where its content cannot be kept, or where the content to restore is missing."""
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

    def _copy_change(self, change: FileChange) -> FileChange:
        """The change that copies the present file of a path to a free name beside it."""
        number, name = 1, f"{change.path}.yours"
        while os.path.lexists(self._absolute(written(name))):
            number += 1
            name = f"{change.path}.yours-{number}"
        return FileChange(name, None, change.before)

    def _finish(self) -> Checkpoint | None:
        checkpoint = self._read_unfinished("restoring", Checkpoint)
        if checkpoint is None:
            return None
        with self._working, _explained_faults("An interrupted restore could not be brought to its end"):
            states = [(c, self._state(c.path)) for c in checkpoint.changes]
            # A missing path may be the first half of a change of kind, as from a folder to a link: the rest of it is done now.
            self._apply_changes([c for c, now in states if now == c.before or (now is None and c.after)])
            done = tuple(c for c in checkpoint.changes if self._state(c.path) == c.after)
            return msgspec.structs.replace(checkpoint, changes=done)

    def _revert_changes(self, changes: Sequence[FileChange]) -> None:
        """Undo changes that were applied in part, as far as the system allows."""
        reversed_changes = [FileChange(c.path, c.after, c.before) for c in changes]
        with suppress(OSError, CtxchatError):
            self._apply_changes([c for c in reversed_changes if self._state(c.path) != c.after])

    def _apply_changes(self, changes: Sequence[FileChange]) -> None:
        """Apply changes to the disk: first removals, the deepest first; then new contents, folders before the files in them; the
        modes of folders last. Raises OSError and CtxchatError."""
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
        with self._held_folder(change.path, opened) as (folder, path):
            try:
                if change.before and change.before.kind == "folder":
                    _make_writable(self._path(change.path), opened)
                    os.rmdir(path, dir_fd=folder)
                else:
                    os.unlink(path, dir_fd=folder)
            except FileNotFoundError:
                return
            except OSError:
                if change.after is None and self._path(change.path).is_dir():
                    return  # a person put a file into the folder: both stay
                raise

    def _restore_file(self, name: str, state: FileState, opened: dict[str, int]) -> None:
        with self._held_folder(name, opened) as (folder, path):
            if state.kind == "folder":
                if not self._path(name).is_dir() or self._path(name).is_symlink():
                    os.mkdir(path, 0o700, dir_fd=folder)
                _make_writable(self._path(name), opened)
                return
            stands = self._state(name)
            if stands and stands.kind == state.kind == "file" and stands.digest == state.digest:
                self._path(name).chmod(state.mode)  # a program that has it open keeps the same file
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
        """The absolute path for a name. Raises ToolError for one outside the workspace or in `.git`."""
        pure = PurePosixPath(written(name))
        if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts:
            raise ToolError(f"{name} is no file of this workspace.")
        return Path(self._root, pure)

    @contextmanager
    def _held_folder(self, name: str, opened: dict[str, int]) -> Generator[tuple[int | None, Path], None, None]:
        """A descriptor of the folder of a file (None where the system has none), held open so that no link can lead elsewhere,
        and the file's path relative to it. The folder is made writable. Raises ToolError where a link in the path leads
        elsewhere."""
        path = self._path(name)
        elsewhere = ToolError(
            f"{PurePosixPath(written(name)).parent} leads somewhere else than before.", "Nothing was restored."
        )
        if os.path.realpath(path.parent) != str(path.parent):
            raise elsewhere
        _make_writable(path.parent, opened)
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
        """Delete the contents that are needed only while the session is open."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        with suppress(OSError):
            self._base.drop()

    def _write_file(self, name: str, data: bytes) -> None:
        """Write a file in the session's folder, whole or not at all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._folder / f"{name}.new"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        beside.replace(self._folder / name)

    def _read_unfinished(self, name: str, kind: type[Left]) -> Left | None:
        """The record of an operation that was interrupted when the program was killed; None for none."""
        try:
            return msgspec.msgpack.decode((self._folder / name).read_bytes(), type=kind)
        except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
            return None


class _explained_faults:
    """Context manager that turns TooMany and OSError into a CtxchatError whose message begins with `words`."""

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


def _make_writable(folder: Path, opened: dict[str, int]) -> None:
    """Make a folder writable for us, and note its earlier mode in `opened`."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o700 != 0o700:
        opened.setdefault(str(folder), mode)
        folder.chmod(mode | 0o700)


def _encode_begun(begun: Begun) -> bytes:
    """A begun call as bytes; file names that are not UTF-8 are encoded as `named` does."""
    before = {named(path): state for path, state in begun.before.items()}
    paths = begun.paths and tuple(named(path) for path in begun.paths)
    words = tuple(word.encode("utf-8", "replace").decode() for word in begun.words)
    return msgspec.msgpack.encode(Begun(begun.id, before, paths, words))


def _decoded(begun: Begun) -> Begun:
    before = {written(path): state for path, state in begun.before.items()}
    return Begun(begun.id, before, begun.paths and tuple(written(path) for path in begun.paths), begun.words)
