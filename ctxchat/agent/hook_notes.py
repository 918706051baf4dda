"""What hooks tell the model: notes that wait for a place where no call is open, and go into the record there. Knows no hook's
condition and runs nothing.
"""

from __future__ import annotations

import asyncio

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.core.clip import clip
from ctxchat.core.grouping import single
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message


class HookNote(msgspec.Struct, frozen=True):
    """A text on its way into the conversation, in the name of a hook."""

    hook: str
    text: str


class Notes:
    """The notes that wait, in their order. Empty is false."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: list[HookNote] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, hook: str, text: str) -> None:
        """To go with the next request; the same words once, however many calls of a round led to them."""
        if (note := HookNote(hook, text)) not in self._waiting:
            self._waiting.append(note)

    def taken(self) -> list[HookNote]:
        """All that wait; none does then."""
        taken, self._waiting = self._waiting, []
        return taken

    async def write(self, notes: list[HookNote]) -> None:
        """Into the record. Raises StorageError."""
        talk = self._conversation
        await talk.settle()
        groups = [await self._group(note, seq) for seq, note in enumerate(notes, talk.ledger.next_seq)]
        await talk.write(Sealed(tuple(groups)))

    async def _group(self, note: HookNote, seq: int) -> Group:
        """The note as it enters the record; one that is too long keeps head and tail, and the whole in a file."""
        talk = self._conversation
        text = note.text
        cap = max(200, min(talk.options.tool_result_tokens, talk.budget.limit // 4))
        tokens = await asyncio.to_thread(talk.meter.text, text)
        if tokens > cap:
            name = f"tool-results/hook-m{seq}.txt"
            await talk.journal.spill(name, text)
            mark = f"\n[… {{lines}}{{tokens}} tokens left out; full text: {name}, {tokens:,} tokens …]\n"
            text = await asyncio.to_thread(clip, text, cap, talk.meter.text, mark)
        content = f"[note of the hook {note.hook}]\n{text}"
        return single("note", Message(seq, "user", content, at=talk.clock.now()), talk.ledger.turn, f"hook:{note.hook}")
