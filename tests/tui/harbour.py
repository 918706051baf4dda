"""A conversation to look at: real groups, ledgers and records about a tide gauge, made with the core, and sessions over it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxchat.core.calibration import level
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.head import ContextBlock, Head, ToolSpec
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Group, Message, Reasoning, ToolCall
from ctxchat.core.record import CompactionRecord, FactCount, SideUsage, StepGain
from ctxchat.core.tokens import TokenCounter
from ctxchat.storage.sessions import SessionRow
from tests.tui.fakes import FakeSession

LOG = "\n".join(
    f"2026-11-21T0{n % 10}:{n % 60:02d}:07Z tide-gauge-7 level={2.4 + n % 9 / 10:.2f} m ok" for n in range(400)
)


SUMMARY_A = "## Goal\nFind why the tide gauge at Pier 7 goes silent.\n\n## Decisions\n- Poll every 90 s (settled)\n"


SUMMARY_B = (
    "## Goal\nFind why the tide gauge at Pier 7 goes silent at night.\n\n"
    "## Decisions\n- Poll every 90 s (settled)\n- Restart Cormorant at 02:00 (open)\n"
)


TOOLS = (
    ToolSpec(
        "read",
        "Read a file, whole or a range of lines.",
        {"type": "object", "properties": {"path": {"type": "string"}}},
    ),
    ToolSpec(
        "run", "Run a command in the workspace.", {"type": "object", "properties": {"command": {"type": "string"}}}
    ),
    ToolSpec("grep", "Find text in files.", {"type": "object", "properties": {"pattern": {"type": "string"}}}),
)


FRAME = Head(
    system="You are a careful assistant for the harbour's instruments. " * 12,
    tools=TOOLS,
    memory=(ContextBlock("AGENTS.md", "Always answer with paths and lines. Times are UTC. " * 8),),
    context=(ContextBlock("date", "Saturday, 21 November 2026"),),
)


def at(minute: int) -> str:
    """A moment of the demo day."""
    return f"2026-11-21T{10 + minute // 60:02d}:{minute % 60:02d}:00.000Z"


def turn(number: int, seq: int, *, log: str = LOG, reasoning: bool = False) -> list[Message]:
    """A question, a call with its result, an answer: four messages."""
    call = ToolCall(f"c{number}", "run", '{"command": "journalctl -u cormorant --since today"}')
    if number % 3 == 0:
        call = ToolCall(f"c{number}", "read", '{"path": "var/log/tide-7.log", "lines": "1-400"}')
    thought = Reasoning("The gauge reports every 90 s; a gap of 180 s is a missed report. " * 4) if reasoning else None
    when = at(number * 7)
    return [
        Message(seq, "user", f"How often did the gauge at Pier 7 fail on day {number}?", at=when),
        Message(seq + 1, "assistant", "I look at the log.", calls=(call,), reasoning=thought, at=when),
        Message(seq + 2, "tool", log[: 400 + 700 * (number % 5)], call_id=call.id, name=call.name, at=when),
        Message(
            seq + 3, "assistant", f"It failed {number % 4} times on day {number} (tide-7.log:{number}2). " * 3, at=when
        ),
    ]


def history(turns: int, **options: object) -> tuple[Group, ...]:
    """Groups of a conversation with so many turns."""
    messages = [m for n in range(turns) for m in turn(n + 1, 4 * n + 1, **options)]  # type: ignore[arg-type]
    return group_messages(messages)


def digest(
    ledger: Ledger, change: str, covers: Sequence[str], summary: str, *, minute: int, **fields: object
) -> Change:
    """A compaction of these groups into a summary, with its record."""
    note = single("summary", Message(ledger.next_seq + 1000 + minute, "user", summary, at=at(minute)), 0, source=change)
    record = CompactionRecord(
        id=change,
        reason="auto",
        strategy="summarize",
        outcome="compacted",
        at=at(minute),
        steps=(StepGain("summarize", 9_000, len(covers)),),
        model="claude-haiku-4-5",
        before=SideUsage(24_400, 4 * len(covers)),
        after=SideUsage(9_200, 12),
        folded=tuple(covers),
        folded_messages=4 * len(covers),
        keep_recent=6,
        facts=FactCount(44, 41),
        seconds=8.7,
        cost_usd=0.04,
        attempts=1,
        summary=summary,
        evidence="commands\n- journalctl -u cormorant --since today (exit 0)\nnumbers\n- reporting interval: 90 s",
    )
    record = msgspec.structs.replace(record, **fields)
    edit = Edit("digest", tuple(covers), msgspec.structs.replace(note, id=f"s-{change}"))
    return Change(change, "compaction", at=at(minute), edits=(edit,), record=record)


def recorded(change: Change) -> CompactionRecord:
    """The record of a compaction that was made."""
    assert change.record is not None
    return change.record


def failed(id: str, minute: int = 51) -> CompactionRecord:
    """The record of a compaction that changed nothing."""
    side = SideUsage(24_400, 72)
    detail = "The summary came back empty. Nothing was changed."
    return CompactionRecord(
        id,
        "auto",
        "summarize",
        "failed",
        at(minute),
        before=side,
        after=side,
        seconds=8.7,
        cost_usd=0.04,
        detail=detail,
    )


def state(turns: int = 12, *, passes: int = 2, title: str = "harbour-logger") -> SessionState:
    """A session with so many turns, and two compactions where asked for: the second covers what the first covered, and more."""
    ledger = Ledger(groups=history(turns))
    ids = [g.id for g in ledger.groups]
    done: list[CompactionRecord] = []
    if passes:
        first = digest(ledger, "k1", ids[:9], SUMMARY_A, minute=30)
        ledger = ledger.apply(first)
        done.append(recorded(first))
    if passes > 1:
        second = digest(ledger, "k2", ids[:18], SUMMARY_B, minute=47, reason="manual", cost_usd=0.05)
        ledger = ledger.apply(second)
        done += [recorded(second), failed("k3")]
    fills = tuple(min(30_000, 4_000 + 2_700 * (n % 9)) for n in range(turns))
    return SessionState(
        ledger=ledger,
        title=title,
        model="claude-sonnet-4-5",
        fills=fills,
        cost_usd=1.27,
        cached=6_000,
        compactions=tuple(done),
    )


class HarbourSession(FakeSession):
    """The double over this conversation: counted as a request is, by a server whose counting is known."""

    def __init__(self, begun: SessionState | None = None, *, window: int = 32_000, frame: Head = FRAME) -> None:
        known = level(1.08, band=0.04, samples=6)
        super().__init__(begun=begun or state(), window=window, frame=frame, counter=TokenCounter(), calibration=known)


ROW = SessionRow("s1", "harbour-logger", at(0), at(90), 48, "claude-sonnet-4-5", 18_400, 2, "")
"""It as a stored session."""
