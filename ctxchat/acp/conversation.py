"""One session as an editor drives it: a prompt is a turn, whose events become updates, and whose questions go to the person.

Knows no wire and no other session. What runs is cancelled by ending its task, which closes the turn in good order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Any

from acp import Client
from acp.schema import (
    AcceptElicitationResponse,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    StopReason,
    ToolCallUpdate,
)

from ctxchat.acp import updates
from ctxchat.acp.asking import answer_to, choices, chosen, options
from ctxchat.acp.prompts import Block, message
from ctxchat.acp.updates import SessionUpdate
from ctxchat.agent.session import Session
from ctxchat.bootstrap.program import Program
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    CompactionStarted,
    CompactionSuggested,
    Delegated,
    Event,
    Failed,
    FilesChanged,
    Notice,
    QuestionAsked,
    ReasoningDelta,
    Retry,
    Stamped,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
)
from ctxchat.core.figures import Figures
from ctxchat.core.record import CompactionRecord
from ctxchat.core.sanitize import clean, visible
from ctxchat.core.words import percent, short
from ctxchat.headless import without_secrets
from ctxchat.storage import sessions
from ctxchat.tools.todo import last_list
from ctxchat.tui.reading.figures_text import PARTS, gauge_words, sentence
from ctxchat.tui.reading.history import items

COMMANDS = (
    ("compact", "Compact now: make room in the context window.", "what the summary should keep"),
    ("context", "What fills the context window, part by part.", ""),
)

OFTEN = 0.5
"""Seconds between two updates of what changes all the time: the gauge, and what a call has shown."""

TAIL = 4_000
"""Characters of what a call at work has shown that are told."""

SNOOZE = 3
"""Turns for which `later` puts the question to make room off."""

STOP_REASONS: dict[str, StopReason] = {
    "done": "end_turn",
    "cancelled": "cancelled",
    "max_rounds": "max_turn_requests",
}


class Conversation:
    """`renew` takes over edited settings, `forms` says that the editor can ask in words."""

    def __init__(
        self, program: Program, session: Session, editor: Client, renew: Callable[[], Awaitable[bool]], forms: bool
    ) -> None:
        self.session, self.program = session, program
        self._editor, self._workspace, self._renew, self._forms = editor, program.workspace, renew, forms
        self._noticed: set[str] = set()
        self._title = ""
        self._work: asyncio.Task[StopReason] | None = None
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._shown: dict[str, str] = {}  # what each call at work has shown, its end
        self._lists: dict[str, SessionUpdate] = {}
        self._passes: set[str] = set()
        self._said: dict[str, float] = {}  # when what comes often was told last
        self._failed: Failed | None = None

    async def tell(self, update: SessionUpdate) -> None:
        """One update to the editor."""
        await self._editor.session_update(self.session.id, update)

    # ── what an editor asks ──

    async def prompt(self, blocks: Sequence[Block]) -> StopReason:
        """One turn, or a command. A prompt that follows a cancel waits for the end of what was cancelled. Raises CtxchatError."""
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
        """End what is under way, if anything is; what exists is kept."""
        if self._work and not self._work.done():
            self._work.cancel()
            await asyncio.wait({self._work})

    async def retell(self) -> None:
        """All of the record, as it was told when it happened."""
        state = self.session.state
        mask = self.session.attachments.mask
        for shown in items(state.ledger, state.checkpoints):
            for update in updates.retold(shown, self._workspace, mask):
                await self.tell(update)
        if todo := last_list(state.ledger.groups):
            await self.tell(updates.plan(todo))

    async def tell_figures(self) -> None:
        """The gauge as it is."""
        await self.tell(updates.usage(await self.session.measure()))

    async def close(self) -> None:
        """End what is under way, and give the session free. Raises CtxchatError."""
        await self.cancel()
        await self.session.close()

    # ── a turn ──

    async def _answer(self, blocks: Sequence[Block]) -> StopReason:
        try:
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
                case _:
                    return await self._run(self.session.send(text, parts))
        finally:
            await self._settle()

    async def _prepare(self) -> None:
        """Take in what changed since the last turn (settings, servers), and say what is to be said of it, each once."""
        if await self._renew():
            before = self.session.mode
            await self.session.setup.adapt()
            if self.session.mode != before:
                await self.tell(updates.mode(self.session.mode))
        missing = await self.program.servers_awaited()
        for notice in (*self.program.notices, *self.session.notices, *missing):
            if notice not in self._noticed:
                self._noticed.add(notice)
                await self.tell(updates.remark(notice))

    async def _run(self, events: AsyncGenerator[Stamped, None]) -> StopReason:
        """Tell what happens until its end. Raises CtxchatError where it came to none."""
        self._failed = None
        reason: StopReason = "end_turn"
        mask = self.session.attachments.mask
        async with aclosing(events):
            async for stamped in events:
                event = without_secrets(stamped.event, mask)
                if isinstance(event, TurnFinished):
                    reason = STOP_REASONS.get(event.status, "end_turn")
                await self._take(event)
        await self.tell(updates.usage(self.session.figures))
        await self._name()
        if self._failed:
            raise CtxchatError(self._failed.text, self._failed.hint)
        return reason

    async def _name(self) -> None:
        """The session's title, where it has another one now."""
        database = self.program.database
        row = await database.run(sessions.row, database, self.session.id)
        if row.title and row.title != self._title:
            self._title = row.title
            await self.tell(updates.named(row.title, row.updated))

    async def _settle(self) -> None:
        """No question outlives what asked it."""
        asked = list(self._asked.values())
        for task in asked:
            task.cancel()
        if asked:
            await asyncio.wait(asked)
        for known in (self._asked, self._shown, self._lists, self._said):
            known.clear()

    async def _take(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                await self.tell(updates.said(text))
            case ReasoningDelta(text=text):
                await self.tell(updates.thought(text))
            case ToolStarted():
                if todo := updates.listed(event):
                    self._lists[event.call_id] = todo
                await self.tell(updates.started(event, self._workspace))
            case ToolProgress():
                await self._progress(event)
            case ToolFinished():
                await self._finished(event)
            case ApprovalRequested():
                self._ask(event.call_id, self._approve(event))
            case ApprovalResolved(verdict=verdict) if verdict != "deny":
                await self.tell(updates.goes_on(event.call_id))
            case FilesChanged():
                await self.tell(updates.touched(event, self._workspace))
            case Delegated():
                if self._due(event.call_id):
                    await self.tell(updates.delegated(event))
            case QuestionAsked():
                self._ask(event.call_id, self._question(event))
            case CompactionSuggested():
                self._ask("compaction", self._suggest(event))
            case CompactionStarted():
                self._passes.add(event.id)
                await self.tell(updates.making_room(event))
            case CompactionRecord():
                await self.tell(updates.compacted(event, begun=event.id in self._passes))
                self._passes.discard(event.id)
            case Figures():
                if self._due("figures"):
                    await self.tell(updates.usage(event))
            case Retry():
                await self.tell(updates.remark(f"{event.cause} Trying again in {event.after_seconds:.0f} s."))
            case Notice():
                await self.tell(updates.remark(event.text))
            case Failed():
                self._failed = event
            case _:
                pass

    async def _progress(self, event: ToolProgress) -> None:
        shown = self._shown[event.call_id] = (self._shown.get(event.call_id, "") + event.text)[-TAIL:]
        if self._due(event.call_id):
            await self.tell(updates.progress(event.call_id, shown))

    async def _finished(self, event: ToolFinished) -> None:
        if task := self._asked.pop(event.call_id, None):
            task.cancel()
        await self.tell(updates.finished(event, self._workspace))
        if (todo := self._lists.pop(event.call_id, None)) and event.status == "ok":
            await self.tell(todo)

    def _due(self, what: str) -> bool:
        now = monotonic()
        due = now - self._said.get(what, 0.0) >= OFTEN
        if due:
            self._said[what] = now
        return due

    # ── questions ──

    def _ask(self, id: str, question: Coroutine[Any, Any, None]) -> None:
        """Beside what goes on meanwhile."""
        self._asked[id] = asyncio.create_task(question, name=f"question {id}")

    async def _approve(self, event: ApprovalRequested) -> None:
        offered = choices(event)
        taken = await self._chosen(updates.waits(event, self._workspace), options(offered))
        self.session.answer(event.call_id, answer_to(offered, taken))

    async def _question(self, event: QuestionAsked) -> None:
        """A question of the model's: one of its options, or a word where the editor has a form for it. Else nobody answered, and
        the model is told so."""
        said = ""
        if event.options:
            rows = [
                PermissionOption(option_id=str(n), name=visible(option), kind="allow_once")
                for n, option in enumerate(event.options)
            ]
            none = PermissionOption(option_id="none", name="No answer", kind="reject_once")
            call = ToolCallUpdate(tool_call_id=event.call_id, title=clean(event.text), status="pending")
            taken = await self._chosen(call, [*rows, none])
            said = next((o for n, o in enumerate(event.options) if taken == str(n)), "")
        elif self._forms:
            said = await self._word(event)
        self.session.reply(event.call_id, said)

    async def _suggest(self, event: CompactionSuggested) -> None:
        """Whether to make room, where the settings want a person to say so."""
        title = f"The context is {percent(event.pressure)} full. Make room ({short(event.used)} → ~{short(event.after_used)})?"
        rows = [
            PermissionOption(option_id="now", name="Make room now", kind="allow_once"),
            PermissionOption(option_id="after", name="After this task", kind="allow_once"),
            PermissionOption(option_id="later", name=f"Not for {SNOOZE} turns", kind="reject_once"),
        ]
        call = ToolCallUpdate(tool_call_id="compaction-suggested", title=title, kind="think", status="pending")
        match await self._chosen(call, rows):
            case "now":
                self.session.compaction.agree("now")
            case "after":
                self.session.compaction.agree("after")
            case _:
                self.session.compaction.snooze(SNOOZE)

    async def _chosen(self, call: ToolCallUpdate, rows: list[PermissionOption]) -> str:
        """The option a person took; empty where they took none, or where the editor cannot ask them."""
        try:
            return chosen(await self._editor.request_permission(self.session.id, call, rows))
        except Exception as problem:  # whatever an editor answers, it is no yes
            await self.tell(updates.remark(f"The editor could not ask you: {problem}"))
            return ""

    async def _word(self, event: QuestionAsked) -> str:
        form = ElicitationSchema(
            type="object",
            properties={"answer": ElicitationStringPropertySchema(type="string", title="Answer")},
            required=["answer"],
        )
        mode = ElicitationFormSessionMode(session_id=self.session.id, tool_call_id=event.call_id, requested_schema=form)
        try:
            answer = await self._editor.create_elicitation(clean(event.text), mode)
        except Exception as problem:
            await self.tell(updates.remark(f"The editor could not ask you: {problem}"))
            return ""
        given = answer.content if isinstance(answer, AcceptElicitationResponse) else None
        return str((given or {}).get("answer", ""))

    # ── commands ──

    async def _compact(self, instructions: str) -> StopReason:
        """Make room now, with all that the plan holds."""
        preview = await self.session.compaction.preview(instructions)
        if preview.plan is None:
            await self.tell(updates.said(clean(preview.reason or "There is nothing to free.")))
            return "end_turn"
        return await self._run(self.session.compaction.free_up(preview))

    async def _context(self) -> StopReason:
        """The gauge in words, and its parts as a table."""
        figures = await self.session.measure()
        rows = [f"| {PARTS[s.name].label} | {short(s.tokens)} |" for s in figures.sections if s.tokens]
        table = "\n".join(["| part | tokens |", "|---|---:|", *rows])
        await self.tell(updates.said(f"{gauge_words(figures)[0]} tokens. {sentence(figures)}\n\n{table}\n"))
        await self.tell(updates.usage(figures))
        return "end_turn"
