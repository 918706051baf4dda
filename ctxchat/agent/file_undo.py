"""Records what turns did to files, and takes it back: undo and redo of the last turn, and rewind to before any message.

Each is one journal transaction, written once the files are in the state it records. Knows neither disks nor screens.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.session_lock import SessionLock
from ctxchat.core import file_changes
from ctxchat.core.changes import rewind_change
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import FilesChanged
from ctxchat.core.file_changes import Checkpoint, FileChange, Keep, Restoring
from ctxchat.core.grouping import single
from ctxchat.core.journal import Changed, Record, Sealed, Undone
from ctxchat.core.messages import Message
from ctxchat.core.ports import WorkspaceFiles

MAX_NAMED_FILES = 20
"""Files that a note to the model names one by one."""


class Files:
    """The file changes of one session. Previews change nothing; the others do everything or, raising CtxchatError, nothing."""

    def __init__(self, conversation: Conversation, lock: SessionLock, port: WorkspaceFiles) -> None:
        self._conversation = conversation
        self._lock = lock
        self._port = port

    # ── what calls did ──

    async def recover(self) -> str:
        """Record what a killed process left open: a running call, or a restore under way. Returns sentences on it, empty for
        nothing."""
        try:
            restored = await self._port.unfinished()
            if restored:
                await self._conversation.write(restored)
                self._port.end_restore()
            changed = await self._finish_call()
            await self._port.close()
        except CtxchatError as problem:
            return str(problem)
        sentences = (
            [f"An interrupted restore was brought to its end: {file_changes.files_words(restored.changes)}."]
            if restored
            else []
        )
        if changed:
            words = file_changes.files_words(changed.changes)
            sentences.append(
                f"The call that was cut off last time had an effect: {words}. /diff shows it, /undo takes it back."
            )
        return " ".join(sentences)

    async def finish_cancelled_call(self) -> None:
        """After a cancel: record what the cancelled call did to files. Raises nothing, since the turn still has to be sealed."""
        with suppress(CtxchatError):
            await self._finish_call()

    async def _finish_call(self) -> Checkpoint | None:
        """Record what a call that was cut off did to files; None where there is nothing to record."""
        name, changes, unnamed = await self._port.end_call()
        if not name or any(c.id == name for c in self._conversation.state.checkpoints):
            return None
        checkpoint = self._checkpoint(name, changes, unnamed=unnamed)
        await self._conversation.write_or_owe(checkpoint)
        self._port.forget()
        return checkpoint

    def add_change(self, event: FilesChanged) -> None:
        """Record the files that a call of the turn under way changed; written together with its result."""
        self._conversation.apply_now_write_later(
            self._checkpoint(event.id, event.changes, event.call_id, event.unnamed)
        )

    def _checkpoint(
        self, name: str, changes: tuple[FileChange, ...], call_id: str = "", unnamed: tuple[str, ...] = ()
    ) -> Checkpoint:
        """The journal entry for changes of files at this point of the record."""
        conversation, turn = self._conversation, self._conversation.ledger.turn
        return Checkpoint(
            name, turn, changes, call_id, conversation.ledger.next_seq, at=conversation.clock.now(), unnamed=unnamed
        )

    def mark_written(self) -> None:
        """The change added last is in the journal, so the port may drop its own note of it."""
        self._port.forget()

    async def close(self) -> None:
        """Close the port: the session ends."""
        await self._port.close()

    # ── previews ──

    async def preview_undo(self) -> Restoring:
        """What undoing the last turn that changed files would do."""
        return await self._snapshot(
            file_changes.last_turn(self._checkpoints) if file_changes.checkpoints_in_force(self._checkpoints) else ()
        )

    async def redoing(self) -> Restoring:
        """What redoing the change that was undone last would do."""
        last = file_changes.redoable(self._checkpoints)
        return await self._snapshot((last,) if last else ())

    async def rewinding(self, group_id: str) -> Restoring:
        """What undoing all file changes since this user message would do."""
        seq = self._conversation.ledger.group(group_id).first.seq
        return await self._snapshot(file_changes.since(self._checkpoints, seq))

    async def unrewinding(self, change_id: str) -> Restoring:
        """What undoing the file part of a rewind would do; nothing where it had none."""
        gone = file_changes.taken_back(self._checkpoints)
        return await self._snapshot([c for c in self._checkpoints if c.change == change_id and c.id not in gone])

    async def diff(self, change: FileChange) -> str:
        """A change as a unified diff, or described in words where there is no text to compare."""
        return await self._port.diff(change)

    async def texts(self, change: FileChange) -> tuple[str | None, str | None]:
        """The whole text before and after; None for a side that is not text, is too large or was not kept, empty for no file."""
        return await self._port.texts(change)

    async def _snapshot(self, checkpoints: Sequence[Checkpoint]) -> Restoring:
        now = await self._port.now([c.path for checkpoint in checkpoints for c in checkpoint.changes])
        digests = {c.before.digest for checkpoint in checkpoints for c in checkpoint.changes if c.before}
        return file_changes.restoring(checkpoints, now, await self._port.stored_digests(digests))

    @property
    def _checkpoints(self) -> tuple[Checkpoint, ...]:
        return self._conversation.state.checkpoints

    # ── changing ──

    async def restore(self, wanted: Restoring, keep: Keep = "mine") -> Checkpoint:
        """Carry out a preview, and tell the model by a note. `keep` decides on files that a person changed, or may have: `mine`
        leaves them, the others restore them, with a copy beside or without. A replaced content can always be had by a redo."""
        async with self._lock.alone():
            return await self._carry_out(wanted, keep, tell=True)

    async def rewind(
        self, group_id: str, wanted: Restoring | None, keep: Keep = "mine"
    ) -> tuple[Checkpoint, ContextUsage]:
        """Rewind the conversation to before a user message, and with a preview in `wanted` the files too. One undo reverts
        both."""
        async with self._lock.alone():
            change = rewind_change(self._conversation.ledger, group_id, self._conversation.clock.now())
            self._conversation.ledger.apply(change)  # raises before anything is written
            done = await self._carry_out(wanted, keep, Changed(change, self._conversation.as_counted), change=change.id)
            return done, await self._conversation.refresh()

    async def unrewind(self, change_id: str, wanted: Restoring, keep: Keep = "mine") -> ContextUsage:
        """Undo a rewind: conversation and files."""
        async with self._lock.alone():
            conversation = self._conversation
            await self._carry_out(wanted, keep, Undone(change_id, conversation.clock.now(), conversation.as_counted))
            return await self._conversation.refresh()

    async def _carry_out(
        self, wanted: Restoring | None, keep: Keep, *records: Record, change: str = "", tell: bool = False
    ) -> Checkpoint:
        """Restore the files of a preview, and write that into the journal together with further `records`. Where writing fails,
        the files are put back. `change` is the id of the rewind it is part of; `tell`: a note tells the model."""
        conversation = self._conversation
        await conversation.flush()
        planned = file_changes.changes_to_make(wanted, keep) if wanted else ()
        undoes = wanted.undoes if wanted else ()
        name = f"files-{len(self._checkpoints) + 1}"
        checkpoint = msgspec.structs.replace(self._checkpoint(name, planned), undoes=undoes, change=change)
        if not undoes:
            await conversation.write(*records)
            return checkpoint
        beside = wanted.doubtful if wanted and keep == "copy" else ()
        done = await self._port.restore(checkpoint, beside)
        note = (Sealed((self._note(done),)),) if tell and done.changes else ()
        try:
            await conversation.write(done, *records, *note)
        except CtxchatError:
            await self._port.restore(msgspec.structs.replace(done, changes=_back(done.changes)))
            self._port.end_restore()
            raise
        self._port.end_restore()
        return done

    def _note(self, done: Checkpoint):
        """The note by which the model learns that files have changed."""
        conversation = self._conversation
        names = [c.name for c in done.changes]
        more = f" and {len(names) - MAX_NAMED_FILES} more" if len(names) > MAX_NAMED_FILES else ""
        what = (
            "brought back changes to files that had been taken back"
            if file_changes.is_redo(done, self._checkpoints)
            else "took changes to files back, so these are no longer as you left them"
        )
        named = ", ".join(names[:MAX_NAMED_FILES])
        text = f"[The user {what}: {named}{more}. Read a file again before you rely on what it holds.]"
        message = Message(conversation.ledger.next_seq, "user", text, at=conversation.clock.now())
        return single("note", message, conversation.ledger.turn, "files")


def _back(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    return tuple(FileChange(c.path, c.after, c.before) for c in changes)
