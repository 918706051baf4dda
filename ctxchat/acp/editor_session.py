"""One session driven by an editor: runs each prompt as a turn or a command, and sends its events as they happen.

Knows no wire and no other session. A turn is cancelled by cancelling its task, which closes it in good order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from acp.schema import StopReason

from ctxchat.acp import updates
from ctxchat.acp.children import Children
from ctxchat.acp.editor import Editor
from ctxchat.acp.prompts import Block, message
from ctxchat.acp.telling import EventSender, whole_edits
from ctxchat.acp.updates import SessionUpdate
from ctxchat.acp.wire import JsonObject
from ctxchat.agent.session import Session
from ctxchat.bootstrap.program import Program
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.events import Stamped, TurnFinished
from ctxchat.core.quantities import short
from ctxchat.core.sanitize import clean
from ctxchat.core.tooluse import use_of
from ctxchat.headless import without_secrets
from ctxchat.presentation.history import items
from ctxchat.presentation.usage_text import PARTS, gauge_words, sentence
from ctxchat.storage import archive, sessions
from ctxchat.tools.todo import last_list

COMMANDS = (
    ("compact", "Compact now: make room in the context window.", "what the summary should keep"),
    ("context", "What fills the context window, part by part.", ""),
    ("undo", "Take back the last compaction, pin, drop or rewind.", ""),
    ("archive", "The compactions of this session, and the messages they replaced.", ""),
)

STOP_REASONS: dict[str, StopReason] = {
    "done": "end_turn",
    "cancelled": "cancelled",
    "max_rounds": "max_turn_requests",
}


class EditorSession:
    """A session opened by an editor. `renew` adopts edited settings, and is true where there were any."""

    def __init__(
        self, program: Program, session: Session, editor: Editor, renew: Callable[[], Awaitable[bool]]
    ) -> None:
        self.session, self.program = session, program
        self._editor, self._workspace, self._renew = editor, program.workspace, renew
        self._children = Children(program, editor, session.id)
        self._noticed: set[str] = set()
        self._commands: Sequence[tuple[str, str, str]] = ()
        self._title = ""
        self._work: asyncio.Task[StopReason] | None = None
        self._ids = updates.CallIds()

    async def tell(self, update: SessionUpdate | JsonObject) -> None:
        """Send one update to the editor."""
        await self._editor.tell(self.session.id, update)

    # ── requests of the editor ──

    async def prompt(self, blocks: Sequence[Block]) -> StopReason:
        """Run one turn, or a command. After a cancel it first waits for the cancelled turn to end. Raises CtxchatError."""
        if self._work and self._work.cancelling():
            await asyncio.wait({self._work})
        if self._work and not self._work.done():
            raise UsageError("A turn is under way in this session.", "Wait for its end, or cancel it.")
        work = self._work = asyncio.create_task(self._answer(blocks), name=f"turn of {self.session.id}")
        try:
            await asyncio.wait({work})
        finally:
            await self.cancel()
        return "cancelled" if work.cancelled() else work.result()

    async def cancel(self) -> None:
        """Cancel the turn under way, if any, and wait for its end; what exists of it is kept."""
        if self._work and not self._work.done():
            if not self._work.cancelling():  # a second cancel would interrupt the sealing of the turn
                self._work.cancel()
            await asyncio.wait({self._work})

    async def retell(self) -> None:
        """Send the whole record again, with the updates that were sent when it happened."""
        state = self.session.state
        mask = self.session.attachments.mask
        changed = {(c.turn, c.call_id): c.changes for c in state.checkpoints if c.call_id}
        for shown in items(state.ledger, state.checkpoints):
            calls = shown.group.first.calls if shown.group and shown.group.kind == "round" else ()
            edits = {
                call.id: await whole_edits(self.session, changed[shown.group.turn, call.id], self._workspace)
                for call in calls
                if shown.group and (shown.group.turn, call.id) in changed and use_of(call).kind == "change"
            }
            compactions = self._editor.able.compactions
            for update in updates.retold(shown, self._workspace, self._ids, mask, edits, compactions):
                await self.tell(update)
            if shown.group and shown.group.kind == "round":
                await self._children.retell(shown.group)
        if todo := last_list(state.ledger.groups):
            await self.tell(updates.plan(todo))

    async def tell_commands(self) -> None:
        """Send the list of our commands, and of the skills, command files and prompts of servers that can be called, if it has
        changed."""
        own = {name for name, _, _ in COMMANDS}
        called = [
            (p.name, clean(p.description), clean(p.hint)) for p in self.session.setup.prompts if p.name not in own
        ]
        if self._commands != (offered := [*COMMANDS, *called]):
            self._commands = offered
            await self.tell(updates.commands(offered))

    async def tell_figures(self) -> None:
        """Send the gauge, measured now."""
        await self.tell(updates.usage(await self.session.measure()))

    async def close(self) -> None:
        """Cancel the turn under way, and release the session. Raises CtxchatError."""
        await self.cancel()
        self._children.forget()
        await self.session.close()

    # ── a turn ──

    async def _answer(self, blocks: Sequence[Block]) -> StopReason:
        await self._prepare()
        left: list[str] = []
        text, parts = await message(blocks, self.session, self._workspace, left.append)
        for remark in left:
            await self.tell(updates.remark(remark.removeprefix("! ")))
        match text.split(maxsplit=1):
            case ["/compact", *instructions] if not parts:
                return await self._compact(" ".join(instructions))
            case ["/context"] if not parts:
                return await self._context()
            case ["/undo"] if not parts:
                return await self._undo()
            case ["/archive"] if not parts:
                return await self._archive()
            case _:
                return await self._run(self.session.send(text, parts))

    async def _prepare(self) -> None:
        """Adopt settings and servers that changed since the last turn, and send notices about them, each once."""
        if await self._renew():
            before = self.session.permissions.mode
            await self.session.setup.adapt()
            if self.session.permissions.mode != before:
                await self.tell(updates.mode(self.session.permissions.mode))
        await self.tell_notices(await self.program.servers_awaited())
        await self.tell_commands()

    async def tell_notices(self, more: Sequence[str] = ()) -> None:
        """Send the notices about session and settings, each once."""
        for notice in (self.session.read_only, *self.program.notices, *self.session.notices, *more):
            if notice and notice not in self._noticed:
                self._noticed.add(notice)
                await self.tell(updates.remark(notice))

    async def _run(self, events: AsyncGenerator[Stamped, None]) -> StopReason:
        """Send the events of a turn or compaction until its end. Raises CtxchatError where it failed."""
        reason: StopReason = "end_turn"
        mask = self.session.attachments.mask
        telling = EventSender(self.session, self._editor, self._workspace, self._ids, self._children)
        try:
            async with aclosing(events):
                async for stamped in events:
                    event = without_secrets(stamped.event, mask)
                    if isinstance(event, TurnFinished):
                        reason = STOP_REASONS.get(event.status, "end_turn")
                    await telling.send_event(event)
        finally:
            await telling.close()
        await self.tell(updates.usage(self.session.context_usage))
        await self._name()
        if telling.failed:
            raise CtxchatError(telling.failed.text, telling.failed.hint)
        return reason

    async def _name(self) -> None:
        """Send the session's title if it has changed."""
        database = self.program.database
        row = await database.run(sessions.row, database, self.session.id)
        if row.title and row.title != self._title:
            self._title = row.title
            await self.tell(updates.named(row.title, row.updated))

    # ── commands ──

    async def _compact(self, instructions: str) -> StopReason:
        """Run a compaction now, with all steps of its plan."""
        preview = await self.session.preview(instructions)
        if preview.plan is None:
            await self.tell(updates.said(clean(preview.reason or "There is nothing to free.")))
            return "end_turn"
        return await self._run(self.session.free_up(preview))

    async def _context(self) -> StopReason:
        """Send the gauge in words, and its sections as a table."""
        context_usage = await self.session.measure()
        rows = [f"| {PARTS[s.name].label} | {short(s.tokens)} |" for s in context_usage.sections if s.tokens]
        table = "\n".join(["| part | tokens |", "|---|---:|", *rows])
        await self.tell(updates.said(f"{gauge_words(context_usage)[0]} tokens. {sentence(context_usage)}\n\n{table}\n"))
        await self.tell(updates.usage(context_usage))
        return "end_turn"

    async def _undo(self) -> StopReason:
        """Undo the newest change. Raises CtxchatError where there is none."""
        context_usage = await self.session.changes.undo()
        await self.tell(updates.said(f"Taken back: {gauge_words(context_usage)[0]} tokens now.\n"))
        await self.tell(updates.usage(context_usage))
        return "end_turn"

    async def _archive(self) -> StopReason:
        """Send the compactions of this session as a table."""
        database = self.program.database
        rows = await database.run(archive.compactions, database, self.session.id)
        lines = [
            f"| {row.id} | {row.at[:16].replace('T', ' ')} | {row.before:,} → {row.after:,} | {row.messages} |"
            for row in rows
        ]
        table = ["| compaction | when | tokens | messages |", "|---|---|---:|---:|", *lines]
        await self.tell(updates.said("\n".join(table) + "\n" if rows else "Nothing was compacted in this session.\n"))
        return "end_turn"
