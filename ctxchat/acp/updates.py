"""Converts the events of a session, and the items of its record, to the protocol's session updates. Pure: sends nothing.

Texts of tools are shown between fences and never as markup; secrets are masked before they come here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from itertools import count as numbers
from pathlib import Path
from typing import Literal

import msgspec
from acp.helpers import SessionUpdate as Helped
from acp.helpers import (
    ToolCallContentVariant,
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_current_mode,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    Cost,
    PlanEntryStatus,
    SessionInfoUpdate,
    ToolCallLocation,
    ToolCallUpdate,
    ToolKind,
    UnstructuredCommandInput,
    UsageUpdate,
)

from ctxchat.acp.settings import ConfigOption
from ctxchat.acp.wire import JsonObject
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import ApprovalRequested, CompactionStarted, Delegated, FilesChanged, ToolFinished, ToolStarted
from ctxchat.core.file_changes import FileChange
from ctxchat.core.messages import Group, Message, Text, ToolCall, attached, spoken
from ctxchat.core.quantities import made_smaller, short
from ctxchat.core.record import CompactionRecord
from ctxchat.core.sanitize import clean, visible
from ctxchat.core.tooluse import UseKind, use_of
from ctxchat.presentation.compactions import REASONS
from ctxchat.presentation.history import REWOUND, Shown
from ctxchat.presentation.text import cut, one_line
from ctxchat.presentation.tool_words import decoded, ending, key_argument
from ctxchat.tools.todo import Todo, TodoArguments, TodoItem

KINDS: dict[UseKind, ToolKind] = {
    "read": "read",
    "change": "edit",
    "run": "execute",
    "search": "search",
    "fetch": "fetch",
    "ask": "think",
    "other": "other",
}
STATUS: dict[str, PlanEntryStatus] = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}

MAX_WHOLE_CHARS = 400_000
"""Most characters of a file's texts before and after a change, together, for both to be sent whole."""

SessionUpdate = Helped | UsageUpdate | ConfigOptionUpdate

Mask = Callable[[str], str]

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


said = update_agent_message_text
"""A piece of an answer."""

thought = update_agent_thought_text
"""A piece of the model's reasoning, or a remark that is no part of the answer."""

mode = update_current_mode
"""The permission mode in force."""


def remark(text: str) -> SessionUpdate:
    """A remark of ours within the answer, as a quoted paragraph of its own."""
    return said(f"\n\n> {' '.join(clean(text).split())}\n\n")


def fenced(text: str, kind: str = "text") -> ToolCallContentVariant:
    """Foreign text in a code fence, so that it is not shown as markup."""
    return tool_content(text_block(Text(cut(text), kind).words))


# ── calls ──


def started(event: ToolStarted, workspace: Path) -> SessionUpdate:
    """The beginning of a call."""
    call = _call(event)
    return start_tool_call(
        event.call_id,
        _title(event.name, event.arguments),
        kind=_kind(call),
        status="in_progress",
        locations=_locations(call, workspace),
        raw_input=event.arguments,
    )


def waits(event: ApprovalRequested, workspace: Path) -> ToolCallUpdate:
    """A call that waits for approval, with everything the person judges it by, whole and with hidden characters shown."""
    edits = edits_in(event.preview, workspace)
    shell = [fenced(visible(event.preview), "sh" if event.access == "run" else "text")] if event.preview.strip() else []
    return ToolCallUpdate(
        tool_call_id=event.call_id, title=visible(event.summary), status="pending", content=edits or shell
    )


def goes_on(call_id: str) -> SessionUpdate:
    """A call that runs now, after it was allowed."""
    return update_tool_call(call_id, status="in_progress")


def settled(call_id: str, well: bool) -> SessionUpdate:
    """The end of an entry that was only shown as the subject of a question."""
    return update_tool_call(call_id, status="completed" if well else "failed")


def progress(call_id: str, text: str) -> SessionUpdate:
    """The latest output of a running call."""
    return update_tool_call(call_id, status="in_progress", content=[fenced(text)])


def touched(event: FilesChanged, workspace: Path) -> SessionUpdate:
    """The files that a call changed."""
    places = [
        ToolCallLocation(path=str(workspace / change.path)) for change in event.changes if "\0" not in change.path
    ]
    return update_tool_call(event.call_id, locations=places)


def delegated(event: Delegated) -> SessionUpdate:
    """How full the window of a sub-agent is."""
    name = one_line(event.agent, 40) or "sub-agent"
    return update_tool_call(event.call_id, title=f"{name}: {short(event.used)} of {short(event.limit)} tokens")


def finished(event: ToolFinished, workspace: Path, edits: Sequence[ToolCallContentVariant] = ()) -> SessionUpdate:
    """The end of a call; `edits` are its changes as whole texts, where known."""
    status = "completed" if event.status == "ok" else "failed"
    code = {"exit_code": event.exit_code} if event.exit_code is not None else None
    content = list(edits) if event.status == "ok" else []
    return update_tool_call(
        event.call_id, status=status, content=content or _content(event, workspace), raw_output=code
    )


def cut_off(call_id: str) -> SessionUpdate:
    """A call that was cancelled: the protocol has no status of its own for it."""
    return update_tool_call(call_id, status="failed", content=[tool_content(text_block("Cancelled."))])


def whole_edit(
    change: FileChange, texts: tuple[str | None, str | None], workspace: Path
) -> ToolCallContentVariant | None:
    """A change with the whole text of the file before and after, from which an editor can tell line numbers; None where either is
    missing, or both are too long."""
    old, new = texts
    if old is None or new is None or "\0" in change.path or len(old) + len(new) > MAX_WHOLE_CHARS:
        return None
    return tool_diff_content(str(workspace / change.path), new, old if change.before else None)


def _content(event: ToolFinished, workspace: Path) -> list[ToolCallContentVariant]:
    if event.diff and event.status == "ok":
        return edits_in(event.diff, workspace) or [fenced(event.diff, "diff")]
    return [fenced(event.output)] if event.output.strip() else []


def edits_in(diff: str, workspace: Path) -> list[ToolCallContentVariant]:
    """A unified diff as the protocol's diffs, one for each hunk; empty for a text that is not a complete diff."""
    name, hunks, last = "", list[tuple[bool, list[str], list[str]]](), list[list[str]]()
    for line in diff.split("\n"):
        if not hunks and line.startswith("+++ "):
            name = line.removeprefix("+++ ")
        elif found := _HUNK.match(line):
            hunks.append((found[1] == "0", [], []))
        elif hunks and line[:1] in {" ", "-", "+"}:
            last = [lines for sign, lines in zip("-+", hunks[-1][1:], strict=True) if line[0] in {" ", sign}]
            for lines in last:
                lines.append(f"{line[1:]}\n")
        elif line.startswith("\\"):  # "No newline at end of file": the line before ends without one
            for lines in last:
                lines[-1] = lines[-1].removesuffix("\n")
        elif hunks and line:
            return []  # the diff was cut off
    path = str(workspace / name)
    return [tool_diff_content(path, "".join(new), None if fresh else "".join(old)) for fresh, old, new in hunks if name]


def _call(event: ToolStarted) -> ToolCall:
    written = event.arguments if isinstance(event.arguments, str) else msgspec.json.encode(event.arguments).decode()
    return ToolCall(event.call_id, event.name, written)


def _title(name: str, arguments: dict[str, object] | str) -> str:
    return f"{one_line(name, 60)} {key_argument(arguments)}".rstrip()


def _kind(call: ToolCall) -> ToolKind:
    return "think" if call.name == Todo.name else KINDS[use_of(call).kind]


def _locations(call: ToolCall, workspace: Path) -> list[ToolCallLocation] | None:
    """The file and line of a call, so that the editor can follow the agent; None for other calls."""
    use, fields = use_of(call), decoded(call.arguments)
    if use.kind not in {"read", "change"} or "\0" in use.target:
        return None
    line = fields.get("start_line") if isinstance(fields, dict) else None
    line = line if isinstance(line, int) and line > 0 else None
    return [ToolCallLocation(path=str(workspace / use.target), line=line)]


def plan(items: Iterable[TodoItem]) -> SessionUpdate:
    """The to-do list."""
    return update_plan([plan_entry(one_line(item.text, 400), status=STATUS[item.status]) for item in items])


def todo_update(event: ToolStarted) -> SessionUpdate | None:
    """The to-do list that a call writes; None for any other call."""
    if event.name != Todo.name or isinstance(event.arguments, str):
        return None
    try:
        return plan(msgspec.convert(event.arguments, TodoArguments).items)
    except msgspec.ValidationError:
        return None


# ── the window ──


def usage(context_usage: ContextUsage) -> SessionUpdate:
    """The gauge as far as the protocol can hold it: tokens used, the window in tokens, and the session's cost."""
    cost = Cost(amount=round(context_usage.cost_usd, 6), currency="USD") if context_usage.cost_usd else None
    return UsageUpdate(
        session_update="usage_update", used=max(0, context_usage.used), size=max(0, context_usage.window), cost=cost
    )


def compaction_begun(event: CompactionStarted) -> JsonObject:
    """The beginning of a compaction, for an editor that shows compactions as such."""
    return _compaction(event.id, "in_progress", {})


def compaction_over(record: CompactionRecord, mask: Mask) -> JsonObject:
    """The outcome of a compaction, for an editor that shows compactions as such, with its summary if there is one."""
    well = record.outcome in {"compacted", "noop"}
    more: JsonObject = {"_meta": {"ctxchat": compaction_words(record)}}
    if well and record.summary.strip():
        more["summary"] = [{"type": "text", "text": mask(clean(record.summary))}]
    elif not well:
        more["error"] = compaction_words(record)
    return _compaction(record.id, "completed" if well else "failed", more)


def compaction_cut_off(id: str) -> JsonObject:
    """A cancelled compaction, for an editor that shows compactions as such."""
    return _compaction(id, "cancelled", {})


def _compaction(id: str, status: str, more: JsonObject) -> JsonObject:
    return {"sessionUpdate": "compaction_update", "compactionId": id, "status": status, **more}


def child(session: str, state: Literal["running", "idle"], name: str = "", stop: str = "") -> JsonObject:
    """The state of a sub-agent as a child session; the first one announces it. `stop` is the reason why its work ended."""
    now = {"state": state, "stopReason": stop} if stop else {"state": state}
    told: JsonObject = {"sessionUpdate": "subagent_update", "sessionId": session, "state": now}
    return told | ({"title": one_line(name, 80)} if name else {})


def task(parent: str, session: str, message: str, text: str) -> JsonObject:
    """The task of a sub-agent, as a message (with the id `message`) from the session that delegated it."""
    return {
        "sessionUpdate": "session_message",
        "messageId": message,
        "senderSessionId": parent,
        "recipientSessionId": session,
        "content": [{"type": "text", "text": text}],
    }


def making_room(event: CompactionStarted) -> SessionUpdate:
    """The beginning of a compaction, shown as a tool call."""
    return start_tool_call(
        compaction_id(event.id),
        f"Making room in the context ({REASONS[event.reason]})",
        kind="think",
        status="in_progress",
    )


def compacted(record: CompactionRecord, begun: bool) -> SessionUpdate:
    """The outcome of a compaction, shown as a tool call; `begun`: its beginning was sent already."""
    words = [tool_content(text_block(compaction_words(record)))]
    status = "completed" if record.outcome in {"compacted", "noop"} else "failed"
    if begun:
        return update_tool_call(compaction_id(record.id), status=status, content=words)
    title = f"Compaction ({REASONS[record.reason]})"
    return start_tool_call(compaction_id(record.id), title, kind="think", status=status, content=words)


def compaction_words(record: CompactionRecord) -> str:
    """The outcome of a compaction in a sentence or two."""
    if record.outcome != "compacted":
        return clean(record.detail or "Nothing was compacted.")
    told = clean(record.detail) or made_smaller(record.folded_messages, record.shortened)
    return f"{short(record.before.used)} → {short(record.after.used)} tokens: {told}"


def compaction_id(id: str) -> str:
    """The id of a compaction as the call it is shown as."""
    return f"compaction-{id}"


def named(title: str, at: str) -> SessionUpdate:
    """The session's title, and the time of its last message."""
    return SessionInfoUpdate(session_update="session_info_update", title=one_line(title), updated_at=at)


def config(rows: list[ConfigOption]) -> SessionUpdate:
    """The options of a session, with their present values."""
    return ConfigOptionUpdate(session_update="config_option_update", config_options=rows)


def commands(offered: Iterable[tuple[str, str, str]]) -> SessionUpdate:
    """The slash commands, each as name, description, and a hint at its argument (empty for none)."""
    rows = [
        AvailableCommand(
            name=name,
            description=about,
            input=AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None,
        )
        for name, about, hint in offered
    ]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=rows)


# ── the record ──


class CallIds:
    """Gives calls unique ids for the editor: a server may use an id again, which an editor would take for the same call."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._used: set[str] = set()

    def begin(self, call_id: str) -> str:
        """A new id for a call that begins."""
        names = chain([call_id], (f"{call_id}.{number}" for number in numbers(2)))
        name = self._now[call_id] = next(name for name in names if name not in self._used)
        self._used.add(name)
        return name

    def of(self, call_id: str) -> str:
        """The editor's id of the newest call with the server's id `call_id`; empty where none has begun."""
        return self._now.get(call_id, "")


Edits = Mapping[str, Sequence[ToolCallContentVariant]]
"""The file changes of calls, by the server's call id."""


def retold(
    shown: Shown, workspace: Path, ids: CallIds, mask: Mask, edits: Edits, compactions: bool = False
) -> Iterator[SessionUpdate | JsonObject]:
    """The updates for one item of the record, as they were sent when it happened. `mask` masks texts that are stored unmasked;
    `compactions`: the editor shows compactions as such."""
    if shown.change and shown.change.kind == "rewind":
        yield thought(REWOUND)
    elif shown.change:
        record = shown.change.record or CompactionRecord(shown.change.id, "manual", "", "compacted")
        yield compaction_over(record, mask) if compactions else compacted(record, begun=False)
    elif shown.group and shown.group.kind == "user":
        yield update_user_message_text(mask(question_text(shown.group.first)))
    elif shown.group and shown.group.kind in {"reply", "round"}:
        yield from _round(shown.group, workspace, ids, mask, edits)
    elif shown.group:
        yield thought(shown.group.first.text)


def question_text(message: Message) -> str:
    """The text of a person's message, with the names of its attachments."""
    names = "".join(f"\n[{clean(each.name)}]" for each in attached(message.content))
    return f"{spoken(message)}{names}"


def _round(group: Group, workspace: Path, ids: CallIds, mask: Mask, edits: Edits) -> Iterator[SessionUpdate]:
    message = group.first
    if message.reasoning and message.reasoning.text.strip():
        yield thought(message.reasoning.text)
    if message.text.strip():
        yield said(message.text)
    if message.interrupted:
        yield remark("This reply was interrupted.")
    results = [m for m in group.messages[1:] if m.role == "tool"]
    for place, call in enumerate(message.calls):
        shown = ToolCall(ids.begin(call.id), call.name, mask(call.arguments))
        result = results[place] if place < len(results) else None
        yield from _called(shown, result, workspace, edits.get(call.id, ()))


def _called(
    call: ToolCall, result: Message | None, workspace: Path, edits: Sequence[ToolCallContentVariant]
) -> Sequence[SessionUpdate]:
    status, code = ending(call, result)
    over = ToolFinished(call.id, call.name, status, result.text if result else "", 0, 0.0, exit_code=code)
    return started(ToolStarted(call.id, call.name, decoded(call.arguments)), workspace), finished(
        over, workspace, edits
    )
