"""The queue of texts that hooks have for the model, and how these are written into the record as notes.

The record is everything that was said in a session; a note is a message in it that the program wrote. Notes wait here until no
tool call is without its result.
"""

from __future__ import annotations

import asyncio

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.core.grouping import single
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message


class HookNote(msgspec.Struct, frozen=True):
    """A text for the model from the hook of that name."""

    hook: str
    text: str


class HookNotes:
    """The notes that wait to be written; false while there are none."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: list[HookNote] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add_note(self, hook: str, text: str) -> None:
        """Queue a text for the next request; an equal note that already waits is not queued twice."""
        if (note := HookNote(hook, text)) not in self._waiting:
            self._waiting.append(note)

    def take_all(self) -> list[HookNote]:
        """Remove and return all notes."""
        taken, self._waiting = self._waiting, []
        return taken

    async def write_notes(self, notes: list[HookNote]) -> None:
        """Write these notes into the record. Raises StorageError."""
        conversation = self._conversation
        await conversation.flush()
        groups = [await self._group(note, seq) for seq, note in enumerate(notes, conversation.ledger.next_seq)]
        await conversation.write(Sealed(tuple(groups)))

    async def _group(self, note: HookNote, seq: int) -> Group:
        """The note as a group of the record, with the message number `seq`. Of a long text it has only head and tail; the whole
        is saved as a file."""
        conversation = self._conversation
        text = note.text
        cap = max(200, min(conversation.options.tool_result_tokens, conversation.budget.limit // 4))
        tokens = await asyncio.to_thread(conversation.counter.count_text, text)
        if tokens > cap:
            text = await conversation.put_away(f"tool-results/hook-m{seq}.txt", text, tokens, cap)
        content = f"[note of the hook {note.hook}]\n{text}"
        return single(
            "note",
            Message(seq, "user", content, at=conversation.clock.now()),
            conversation.ledger.turn,
            f"hook:{note.hook}",
        )
