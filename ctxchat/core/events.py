"""Everything that can happen while ctxchat works, as a closed union of frozen, JSON-ready values.

Terminal, headless mode and tests read the same stream. No callback, future, class or widget is ever inside an event.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Literal

import msgspec

from ctxchat.core.cache_state import CacheState
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.file_changes import FileChange
from ctxchat.core.messages import Attached
from ctxchat.core.permissions import Access, Grant, Verdict
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.times import epoch

ToolStatus = Literal["ok", "error", "denied", "cancelled", "timeout"]
TurnStatus = Literal["done", "cancelled", "error", "max_rounds"]


class TurnStarted(msgspec.Struct, frozen=True, tag="turn_started"):
    """The user's message is in the record. `resumed`: there is none, the turn before goes on; `message` is where it stopped."""

    turn: int
    message: str
    text: str
    resumed: bool = False
    attachments: tuple[Attached, ...] = ()


class Steered(msgspec.Struct, frozen=True, tag="steered"):
    """Something the user said while the turn ran is in the record, and in the next request."""

    message: str
    text: str
    attachments: tuple[Attached, ...] = ()


class TextDelta(msgspec.Struct, frozen=True, tag="text_delta"):
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag="reasoning_delta"):
    text: str


class ToolStarted(msgspec.Struct, frozen=True, tag="tool_started"):
    """`arguments` is the decoded object, or the text as the model wrote it where that is no JSON object."""

    call_id: str
    name: str
    arguments: dict[str, object] | str


class ToolProgress(msgspec.Struct, frozen=True, tag="tool_progress"):
    """Output of a tool that is still at work."""

    call_id: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, tag="tool_finished", omit_defaults=True):
    """`output` is what the model sees. `diff` is for people."""

    call_id: str
    name: str
    status: ToolStatus
    output: str
    tokens: int
    seconds: float
    diff: str = ""
    exit_code: int | None = None
    spilled: str = ""


class FilesChanged(msgspec.Struct, frozen=True, tag="files_changed"):
    """What a call did to files of the workspace, told right before it is said to have finished. `id` is the checkpoint's,
    `unnamed` the paths of which nobody can tell whether it was the call or a person who changed them meanwhile."""

    id: str
    call_id: str
    changes: tuple[FileChange, ...]
    unnamed: tuple[str, ...] = ()


class ApprovalRequested(msgspec.Struct, frozen=True, tag="approval_requested", omit_defaults=True):
    """A call waits for a person. `rules` are what `session` and `always` could allow from now on, as they would be stored, from
    this very call to the widest. `allowance` is what could be allowed this command beyond its sandbox. `harms` says what it would
    destroy; then there are no rules."""

    call_id: str
    name: str
    summary: str
    access: Access = "none"
    preview: str = ""
    rules: tuple[str, ...] = ()
    allowance: Grant = Grant()
    harms: tuple[str, ...] = ()


class ApprovalResolved(msgspec.Struct, frozen=True, tag="approval_resolved"):
    """`rule` names what decided: a rule, the mode, or the person."""

    call_id: str
    verdict: Verdict
    rule: str


class QuestionAsked(msgspec.Struct, frozen=True, tag="question_asked"):
    """A call waits for a person's word: one of the `options`, or anything where there are none. It waits until it is
    answered or the call ends. `server` is the name of the MCP server that wants to know, where it is one: the answer goes
    there."""

    call_id: str
    text: str
    options: tuple[str, ...] = ()
    server: str = ""


class Delegated(msgspec.Struct, frozen=True, tag="delegated"):
    """The gauge of a sub-agent at work for a call: tokens `used` of its `limit`. `sub_session` is where its record lies,
    `cost_usd` what this task has cost so far, in US dollars."""

    call_id: str
    agent: str
    sub_session: str
    model: str
    used: int
    limit: int
    cost_usd: float


class Usage(msgspec.Struct, frozen=True, tag="usage"):
    """A server's own count for one request, in tokens. `prompt` includes `cached`, what came from its cache, and `written`, what
    went into it, of which `written_long` is kept for the longer life it offers; `completion` includes `reasoning`. `estimated` is
    True where the server sent none and the figures are ours."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0
    cost_usd: float = 0.0
    estimated: bool = False
    written: int = 0
    written_long: int = 0


class CompactionStarted(msgspec.Struct, frozen=True, tag="compaction_started"):
    id: str
    reason: Reason
    strategy: str


class SummaryDelta(msgspec.Struct, frozen=True, tag="summary_delta"):
    """The summary of a running compaction, as it is written."""

    id: str
    text: str


class CompactionSuggested(msgspec.Struct, frozen=True, tag="compaction_suggested"):
    """The trigger is reached and `auto_compact` is `ask`: a person may compact now, after this task, or later.

    `used`, `limit` and `after_used` (what would be used after the compaction) in tokens, `pressure` is used / limit.
    """

    used: int
    limit: int
    pressure: float
    after_used: int


class Retry(msgspec.Struct, frozen=True, tag="retry"):
    """A request goes out again after `after_seconds`: the same one, or a smaller one. What its first try had said is void."""

    attempt: int
    after_seconds: float
    cause: str


Level = Literal["info", "warning", "error"]


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    level: Level
    text: str


class Failed(msgspec.Struct, frozen=True, tag="error"):
    """A turn cannot go on. `kind` as in ModelError, `hint` is the remedy."""

    kind: str
    text: str
    hint: str = ""


class TurnFinished(msgspec.Struct, frozen=True, tag="turn_finished"):
    """`text` is the last reply, `rounds` the model calls made, `seconds` the wall time."""

    status: TurnStatus
    text: str
    rounds: int
    seconds: float


Event = (
    TurnStarted
    | Steered
    | TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | FilesChanged
    | ApprovalRequested
    | ApprovalResolved
    | QuestionAsked
    | Delegated
    | Usage
    | ContextUsage
    | CacheState
    | CompactionStarted
    | SummaryDelta
    | CompactionRecord
    | CompactionSuggested
    | Retry
    | Notice
    | Failed
    | TurnFinished
)


class Stamped(msgspec.Struct, frozen=True):
    """An event with its place: the session, its number in it, and when (ISO 8601, UTC)."""

    session: str
    seq: int
    at: str
    event: Event

    def json(self) -> bytes:
        """One JSON line: type, session, seq, at, then the event's own fields."""
        head = {"type": type(self.event).__struct_config__.tag, "session": self.session, "seq": self.seq, "at": self.at}
        return msgspec.json.encode(head | fields(self.event, self.at))


def fields(event: Event, at: str) -> dict[str, object]:
    """The fields of an event, JSON-ready, as programs are told them at that time."""
    if isinstance(event, CompactionRecord):
        return event.as_json()
    if isinstance(event, CacheState):
        return event.as_json(epoch(at))
    body: dict[str, object] = msgspec.to_builtins(event)
    if isinstance(event, ContextUsage):
        body["cache"] = event.cache.as_json(epoch(at))
    return {name: value for name, value in body.items() if name != "type"}


_NAMES = frozenset(
    {
        "id",
        "call_id",
        "message",
        "name",
        "status",
        "kind",
        "strategy",
        "access",
        "verdict",
        "model",
        "agent",
        "level",
        "state",
    }
)
_UNLOGGED = (TextDelta, ReasoningDelta, ToolProgress, SummaryDelta)
_IN_WORDS = (Failed, Notice, Retry)


def log_line(event: Event, at: str = "") -> str:
    """The event for a log, at that time: its kind, its names, its figures. Of any other text only the length in characters, of a
    list how many there are: nothing of what was said stands there, but what ctxchat said of a fault. Empty for a piece of a text.
    """
    if isinstance(event, _UNLOGGED):
        return ""
    told = [
        f"{name}={_logged(name, value, in_words=isinstance(event, _IN_WORDS))}"
        for name, value in fields(event, at).items()
    ]
    return " ".join([str(type(event).__struct_config__.tag), *told])


def _logged(name: str, value: object, *, in_words: bool) -> object:
    if isinstance(value, str):
        return value if name in _NAMES or in_words else f"<{len(value)}>"
    return f"<{len(value)}>" if isinstance(value, Sized) else value
