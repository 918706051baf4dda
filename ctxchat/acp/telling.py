"""Sends the events of one turn or compaction to the editor, and asks it the questions among them. Knows no prompt and no command.

A question waits in a task of its own, so that other calls go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
from acp.schema import (
    AcceptElicitationResponse,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    ToolCallUpdate,
)

from ctxchat.acp import updates
from ctxchat.acp.asking import answer_to, choices, chosen_id, options
from ctxchat.acp.children import Children
from ctxchat.acp.editor import Editor
from ctxchat.acp.updates import CallIds, SessionUpdate
from ctxchat.acp.wire import JsonObject
from ctxchat.agent.session import Session
from ctxchat.core.automatic import SNOOZE_TURNS
from ctxchat.core.context_usage import ContextUsage
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
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from ctxchat.core.file_changes import FileChange
from ctxchat.core.quantities import percent, short
from ctxchat.core.record import CompactionRecord
from ctxchat.core.sanitize import clean, visible

UPDATE_INTERVAL_S = 0.5
"""Seconds between two updates of what changes all the time: the gauge, and the output of a running call."""

MAX_TAIL_CHARS = 4_000
"""Last characters of a running call's output that are sent."""

OfCall = (
    ToolStarted
    | ToolProgress
    | ToolFinished
    | FilesChanged
    | Delegated
    | ApprovalRequested
    | ApprovalResolved
    | QuestionAsked
)


async def whole_edits(
    session: Session, changes: Iterable[FileChange], workspace: Path
) -> Sequence[updates.ToolCallContentVariant]:
    """Changes to files as whole texts before and after; empty where one of them is not available."""
    mask, edits = session.attachments.mask, list[updates.ToolCallContentVariant]()
    for change in changes:
        texts = await session.files.texts(change) if session.files else (None, None)
        old, new = (text and mask(text) for text in texts)
        if (edit := updates.whole_edit(change, (old, new), workspace)) is None:
            return ()
        edits.append(edit)
    return edits


class EventSender:
    """Sends the events of one turn or compaction, with those of its sub-agents. `failed` is the error that ended it, if any."""

    def __init__(self, session: Session, editor: Editor, workspace: Path, ids: CallIds, children: Children) -> None:
        self._session, self._editor, self._workspace = session, editor, workspace
        self._ids, self._children = ids, children
        self.failed: Failed | None = None
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._shown: dict[str, str] = {}  # the last output of each running call
        self._lists: dict[str, SessionUpdate] = {}
        self._below: dict[
            str, str
        ] = {}  # ids for the editor of sub-agents' calls that wait for approval, by the call's id
        self._compactions: set[str] = set()
        self._in_vain = ""  # why the last compaction freed nothing
        self._open: dict[str, str] = {}  # ids for the editor of running calls, by the call's id
        self._changes: dict[str, Sequence[FileChange]] = {}
        self._said: dict[str, float] = {}  # monotonic time in seconds at which each frequent update was last sent

    async def close(self) -> None:
        """Cancel open questions, and report everything still running as cancelled."""
        asked = list(self._asked.values())
        for task in asked:
            task.cancel()
        if asked:
            await asyncio.wait(asked)
        cut_off = [*self._open.values(), *self._below.values()]
        with suppress(ConnectionError):
            await self._children.close()
            for call_id in cut_off:
                await self.tell(updates.cut_off(call_id))
            for id in self._compactions:
                own = self._editor.able.compactions
                await self.tell(updates.compaction_cut_off(id) if own else updates.cut_off(updates.compaction_id(id)))

    async def tell(self, update: SessionUpdate | JsonObject) -> None:
        """Send one update to the editor."""
        await self._editor.tell(self._session.id, update)

    async def send_event(self, event: Event) -> None:
        """Send one event; to be called in the order in which they happen."""
        if isinstance(event, OfCall):
            await self._of_call(event)
            return
        match event:
            case TextDelta(text=text):
                await self.tell(updates.said(text))
            case ReasoningDelta(text=text):
                await self.tell(updates.thought(text))
            case CompactionSuggested():
                self._ask("compaction", self._suggest(event))
            case CompactionStarted():
                self._compactions.add(event.id)
                own = self._editor.able.compactions
                await self.tell(updates.compaction_begun(event) if own else updates.making_room(event))
            case CompactionRecord() if self._editor.able.compactions:
                await self.tell(updates.compaction_over(event, self._session.attachments.mask))
                self._compactions.discard(event.id)
                self._in_vain = "" if event.outcome == "compacted" else event.detail
            case CompactionRecord():
                await self.tell(updates.compacted(event, begun=event.id in self._compactions))
                self._compactions.discard(event.id)
                self._in_vain = "" if event.outcome == "compacted" else event.detail
            case ContextUsage():
                if self._is_due("context_usage"):
                    await self.tell(updates.usage(event))
            case Retry():
                await self.tell(updates.remark(f"{event.cause} Trying again in {event.after_seconds:.0f} s."))
            case Notice():
                if rest := event.text.removeprefix(self._in_vain).strip():  # the compaction's update said it already
                    await self.tell(updates.remark(rest))
            case Failed():
                self.failed = event
            case _:
                pass

    async def _of_call(self, event: OfCall) -> None:
        call_id = event.call_id
        named = self._ids.begin(call_id) if isinstance(event, ToolStarted) else self._ids.of(call_id)
        told = msgspec.structs.replace(event, call_id=named)
        if not named and not isinstance(event, ApprovalRequested | ApprovalResolved):
            return  # of a sub-agent's call, which is not shown as a call of this session
        match told:
            case ToolStarted():
                self._open[call_id] = named
                if todo := updates.todo_update(told):
                    self._lists[call_id] = todo
                await self.tell(updates.started(told, self._workspace))
            case ToolProgress(text=text):
                shown = self._shown[call_id] = (self._shown.get(call_id, "") + text)[-MAX_TAIL_CHARS:]
                if self._is_due(call_id):
                    await self.tell(updates.progress(named, shown))
            case ToolFinished():
                if task := self._asked.pop(call_id, None):
                    task.cancel()
                self._open.pop(call_id, None)
                await self._children.end(call_id, told.status)
                edits = await self._edits(call_id) if told.diff else ()
                await self.tell(updates.finished(told, self._workspace, edits))
                if (todo := self._lists.pop(call_id, None)) and told.status == "ok":
                    await self.tell(todo)
            case FilesChanged(changes=changes):
                self._changes[call_id] = changes
                await self.tell(updates.touched(told, self._workspace))
            case Delegated():
                await self._children.begin(call_id, told.sub_session, told.agent)
                if self._is_due(call_id):
                    await self.tell(updates.delegated(told))
            case ApprovalRequested():
                if not named:
                    named = self._below[call_id] = self._ids.begin(call_id)
                    told = msgspec.structs.replace(told, call_id=named)
                self._ask(call_id, self._approve(call_id, told))
            case ApprovalResolved(verdict=verdict):
                if below := self._below.pop(call_id, ""):
                    await self.tell(updates.settled(below, verdict != "deny"))
                elif named and verdict != "deny":
                    await self.tell(updates.goes_on(named))
            case QuestionAsked():
                self._ask(call_id, self._question(call_id, told))

    async def _edits(self, call_id: str) -> Sequence[updates.ToolCallContentVariant]:
        return await whole_edits(self._session, self._changes.pop(call_id, ()), self._workspace)

    def _is_due(self, what: str) -> bool:
        now = monotonic()
        due = now - self._said.get(what, 0.0) >= UPDATE_INTERVAL_S
        if due:
            self._said[what] = now
        return due

    # ── questions ──

    def _ask(self, id: str, question: Coroutine[Any, Any, None]) -> None:
        """Ask a question in a task of its own, so that events go on meanwhile."""
        self._asked[id] = asyncio.create_task(question, name=f"question {id}")

    async def _approve(self, call_id: str, event: ApprovalRequested) -> None:
        offered = choices(event)
        taken = await self._chosen(updates.waits(event, self._workspace), options(offered))
        self._session.permissions.answer(call_id, answer_to(offered, taken))

    async def _question(self, call_id: str, event: QuestionAsked) -> None:
        """Ask a question of the model: by its options, or as free text where the editor supports forms. Otherwise it counts as
        not answered."""
        reply = ""
        if event.options:
            rows = [
                PermissionOption(option_id=str(n), name=visible(option), kind="allow_once")
                for n, option in enumerate(event.options)
            ]
            none = PermissionOption(option_id="none", name="No answer", kind="reject_once")
            call = ToolCallUpdate(tool_call_id=event.call_id, title=clean(event.text), status="pending")
            taken = await self._chosen(call, [*rows, none])
            reply = next((o for n, o in enumerate(event.options) if taken == str(n)), "")
        elif self._editor.able.forms:
            reply = await self._word(event)
        self._session.permissions.reply(call_id, reply)

    async def _suggest(self, event: CompactionSuggested) -> None:
        """Ask whether to compact, where the settings want the person to decide."""
        title = f"The context is {percent(event.pressure)} full. Make room ({short(event.used)} → ~{short(event.after_used)})?"
        rows = [
            PermissionOption(option_id="now", name="Make room now", kind="allow_once"),
            PermissionOption(option_id="after", name="After this task", kind="allow_once"),
            PermissionOption(option_id="later", name=f"Not for {SNOOZE_TURNS} turns", kind="reject_once"),
        ]
        named = self._ids.begin("compaction-suggested")
        call = ToolCallUpdate(tool_call_id=named, title=title, kind="think", status="pending")
        taken = await self._chosen(call, rows)
        match taken:
            case "now":
                self._session.policy.agree("now")
            case "after":
                self._session.policy.agree("after")
            case _:
                self._session.policy.pause_for(SNOOZE_TURNS)
        await self.tell(updates.settled(named, taken in {"now", "after"}))

    async def _chosen(self, call: ToolCallUpdate, rows: list[PermissionOption]) -> str:
        """The id of the chosen option; empty where none was chosen, or the editor cannot ask."""
        try:
            return chosen_id(await self._editor.client.request_permission(self._session.id, call, rows))
        except Exception as problem:  # an error of the editor never counts as approval
            await self.tell(updates.remark(f"The editor could not ask you: {problem}"))
            return ""

    async def _word(self, event: QuestionAsked) -> str:
        form = ElicitationSchema(
            type="object",
            properties={"answer": ElicitationStringPropertySchema(type="string", title="Answer")},
            required=["answer"],
        )
        mode = ElicitationFormSessionMode(
            session_id=self._session.id, tool_call_id=event.call_id, requested_schema=form
        )
        try:
            answer = await self._editor.client.create_elicitation(clean(event.text), mode)
        except Exception as problem:
            await self.tell(updates.remark(f"The editor could not ask you: {problem}"))
            return ""
        given = answer.content if isinstance(answer, AcceptElicitationResponse) else None
        return str((given or {}).get("answer", ""))
