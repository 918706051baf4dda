"""A conversation to look at: real ledgers, views and figures made with the core, and a session over them without a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import msgspec

from ctxchat.agent.preview import Preview, PreviewStep
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.calibration import level
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import CompactionFinished, Stamped
from ctxchat.core.figures import Counting, Figures, Past, Pending, TokenPrice, measure
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.journal import Changed, SessionState, Undone, fold
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Group, Image, Message, Part, Reasoning, Text, ToolCall
from ctxchat.core.permissions import Mode, Verdict
from ctxchat.core.record import CompactionRecord, FactCount, SideFigures, StepGain
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.tokens import Meter
from ctxchat.core.undo import Undoing, found, in_part, look, redone
from ctxchat.core.view import Frame, Insert, ToolSpec, View, compile
from ctxchat.models.discovery import FirstLook, FoundModel
from ctxchat.storage.glance import Said
from ctxchat.storage.sessions import SessionRow
from tests.tui.parts import OfOnePiece

LOG = "\n".join(
    f"2026-11-21T0{n % 10}:{n % 60:02d}:07Z tide-gauge-7 level={2.4 + n % 9 / 10:.2f} m ok" for n in range(400)
)
SUMMARY_A = "## Goal\nFind why the tide gauge at Pier 7 goes silent.\n\n## Decisions\n- Poll every 90 s (settled)\n"
SUMMARY_B = (
    "## Goal\nFind why the tide gauge at Pier 7 goes silent at night.\n\n"
    "## Decisions\n- Poll every 90 s (settled)\n- Restart Cormorant at 02:00 (open)\n"
)
SUMMARY_TOKENS = 900
LABELS = {
    "shrink_tool_results": "old tool results to one line, text kept on disk",
    "summarize": "summary of turns 1–9",
}
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
FRAME = Frame(
    system="You are a careful assistant for the harbour's instruments. " * 12,
    tools=TOOLS,
    memory=(Insert("AGENTS.md", "Always answer with paths and lines. Times are UTC. " * 8),),
    injected=(Insert("date", "Saturday, 21 November 2026"),),
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
        before=SideFigures(24_400, 4 * len(covers)),
        after=SideFigures(9_200, 12),
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


def finished(change: Change) -> CompactionFinished:
    """The event that ended the pass of this change."""
    record = change.record
    assert record is not None
    return CompactionFinished(
        outcome=record.outcome,
        id=record.id,
        reason=record.reason,
        strategy=record.strategy,
        steps=record.steps,
        before=record.before,
        after=record.after,
        folded_messages=record.folded_messages,
        folded_groups=len(record.folded),
        facts=record.facts,
        seconds=record.seconds,
        cost_usd=record.cost_usd,
        detail=record.detail,
    )


def state(turns: int = 12, *, passes: int = 2, title: str = "harbour-logger") -> SessionState:
    """A session with so many turns, and two compactions where asked for: the second covers what the first covered, and more."""
    ledger = Ledger(groups=history(turns))
    ids = [g.id for g in ledger.groups]
    done: list[CompactionFinished] = []
    if passes:
        first = digest(ledger, "k1", ids[:9], SUMMARY_A, minute=30)
        ledger = ledger.apply(first)
        done.append(finished(first))
    if passes > 1:
        second = digest(ledger, "k2", ids[:18], SUMMARY_B, minute=47, reason="manual", cost_usd=0.05)
        ledger = ledger.apply(second)
        done.append(finished(second))
        done.append(
            msgspec.structs.replace(
                finished(second),
                id="k3",
                outcome="failed",
                reason="auto",
                detail="The summary came back empty. Nothing was changed.",
            )
        )
    fills = tuple(min(30_000, 4_000 + 2_700 * (n % 9)) for n in range(turns))
    return SessionState(
        ledger=ledger,
        title=title,
        model="claude-sonnet-4-5",
        fills=fills,
        cost_usd=1.27,
        cached=6_000,
        passes=tuple(done),
    )


ROW = SessionRow("s1", "harbour-logger", at(0), at(90), 48, "claude-sonnet-4-5", 18_400, 2, "")


class Desk(OfOnePiece):
    """A ChatSession on the core alone: every verb changes the ledger as the real one does; there is no model behind it."""

    id = "s1"
    busy = False
    read_only = ""
    notices: Sequence[str] = ()

    def __init__(self, begun: SessionState | None = None, *, window: int = 32_000, frame: Frame = FRAME) -> None:
        self.state = begun or state()
        self.frame = frame
        self.meter = Meter()
        self.budget = make_budget(Window(window, "catalogue"), 4_096, 0.8, 0.5)
        self.mode: Mode = "ask"
        self.asked: list[tuple[str, int | None]] = []
        self.budgets: dict[str, int] = {}
        self.price = TokenPrice()
        self._changes = self.adapted = 0

    @property
    def view(self) -> View:
        return compile(self.state.ledger, self.frame, self.meter)

    @property
    def figures(self) -> Figures:
        return self._figures(self.view)

    def _figures(self, view: View, draft: int = 0) -> Figures:
        state = self.state
        return measure(
            view,
            msgspec.structs.replace(self.budget, sections=self.budgets),
            Counting(state.model, level(1.08, band=0.04, samples=6), price=self.price),
            pending=Pending(draft),
            past=Past(state.fills, len(state.ledger.compactions), state.cost_usd, state.cached),
        )

    def _apply(self, change: Change) -> Figures:
        self.state = fold([Changed(change)], self.state)
        return self.figures

    def _id(self) -> str:
        self._changes += 1
        return f"h{self._changes}"

    async def measure(self) -> Figures:
        return self.figures

    def with_draft(self, text: str, attachments: Sequence[Part] = ()) -> Figures:
        return self._figures(self.view, self.meter.text(text))

    @property
    def attachments(self) -> Desk:
        return self

    seen = True

    def weigh(self, part: Part) -> int:
        return self.meter.part(part)

    async def carried(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        return tuple(groups)

    async def count(self, parts: Sequence[Part]) -> None:
        return None

    async def put_away(self, name: str, text: str) -> Text:
        raise CtxchatError("nothing is saved here")

    async def save(self, name: str, data: bytes) -> Image:
        raise CtxchatError("nothing is saved here")

    async def preview(self, instructions: str = "", keep_recent: int | None = None) -> Preview:
        self.asked.append((instructions, keep_recent))
        keep = 6 if keep_recent is None else keep_recent
        before, view = self.figures, self.view
        foldable = [g.id for g in self.state.ledger.groups if g.kind != "system"][
            : max(0, len(self.state.ledger.groups) - keep)
        ]
        results = tuple(
            i.group for i in view.items if i.section == "tool_results" and i.tokens > 400 and i.group in foldable
        )
        if not results:
            reason = "Nothing to free: system and tools hold 0.7k of 28k. F4 shows the parts."
            return Preview(before, before.used, (), None, reason=reason, keep_recent=keep)
        shrinks = tuple(Edit("shrink", (g,), _shrunk(self.state.ledger.group(g))) for g in results)
        freed = sum(i.tokens for i in view.items if i.group in results and i.section == "tool_results") * 9 // 10
        folded = sum(i.tokens for i in view.items if i.group in foldable) - freed - SUMMARY_TOKENS
        scale = before.used / view.raw
        steps = [Step("shrink_tool_results", freed, len(results), edits=shrinks)]
        if folded > 0:
            steps.append(Step("summarize", folded, len(foldable), fold=tuple(foldable), summary_tokens=SUMMARY_TOKENS))
        shown = tuple(
            PreviewStep(s.name, LABELS[s.name], round(s.tokens_freed * scale), s.groups, s.needs_summary) for s in steps
        )
        gone = sum(s.tokens_freed for s in steps)
        return Preview(
            before,
            before.used - round(gone * scale),
            shown,
            Plan("pipeline", tuple(steps), view.raw, view.raw - gone, keep),
            keep_recent=keep,
            pinned=len(self.state.ledger.pinned),
            facts=44,
            seconds=9.0,
            cost_usd=0.04,
            model="claude-haiku-4-5",
            cache_lost=before.cached,
            instructions=instructions,
        )

    def _measured(self, ledger: Ledger) -> tuple[View, Figures]:
        view = compile(ledger, self.frame, self.meter)
        return view, self._figures(view)

    async def undoing(self, change_id: str = "") -> Undoing:
        return look(self.state.ledger, change_id, self._measured)

    async def undo(self, change_id: str = "", groups: Sequence[str] = ()) -> Figures:
        undone = found(self.state.ledger, change_id)
        left = [Changed(in_part(self.state.ledger, undone.id, groups, self._measured))] if groups else []
        self.state = fold([Undone(undone.id), *left], self.state)
        return self.figures

    async def redo(self, change_id: str = "") -> Figures:
        return self._apply(redone(self.state.undone, self.state.ledger, change_id))

    async def pin(self, group_id: str) -> Figures:
        return self._apply(Change(self._id(), "pin", pins=(group_id,)))

    async def drop(self, group_id: str) -> Figures:
        return self._apply(Change(self._id(), "drop", edits=(Edit("drop", (group_id,)),)))

    async def shrink(self, group_id: str) -> Figures:
        edit = Edit("shrink", (group_id,), _shrunk(self.state.ledger.group(group_id)))
        return self._apply(Change(self._id(), "shrink", edits=(edit,)))

    async def restore(self, group_id: str) -> Figures:
        ledger = self.state.ledger
        text = "\n".join(m.text for m in ledger.group(group_id).messages)
        note = single(
            "note", Message(ledger.next_seq, "user", f"[from earlier]\n{text}"), ledger.turn, f"restore:{group_id}"
        )
        self.state = msgspec.structs.replace(self.state, ledger=ledger.append(note))
        return self._apply(Change(self._id(), "restore", adds=(note.id,)))

    async def rename(self, title: str) -> None:
        self.state = msgspec.structs.replace(self.state, title=title)

    async def switch_model(self, name: str) -> Figures:
        self.state = msgspec.structs.replace(self.state, model=name)
        return self.figures

    def answer(self, call_id: str, verdict: Verdict, reason: str = "") -> None:
        raise CtxchatError("nothing waits for an answer")

    async def send(self, text: str, attachments: Sequence[Part] = ()) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("there is no model here")
        yield

    async def resume(self) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("there is no model here")
        yield

    async def free_up(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("there is no model here")
        yield

    async def close(self) -> None:
        return None


class Doors:
    """Services over a few stored sessions and models, held in memory."""

    sandboxed = True
    notices: Sequence[str] = ()

    def __init__(self, workspace: Path, sessions: Sequence[SessionRow] = (), models: Sequence[FoundModel] = ()) -> None:
        self.workspace = workspace
        self.rows = list(sessions)
        self.model_rows = list(models)
        self.desks: dict[str, Desk] = {}
        self.glanced: list[str] = []

    def adopt(self, loaded: object) -> None:
        return None

    async def open(self, session_id: str = "") -> Desk:
        return self.desks.setdefault(session_id, Desk(state(2, passes=0)))

    async def sessions(self) -> Sequence[SessionRow]:
        titled = {i: d.state.title for i, d in self.desks.items()}
        return [msgspec.structs.replace(r, title=titled.get(r.id, r.title)) for r in self.rows]

    async def glance(self, session_id: str) -> Sequence[Said]:
        self.glanced.append(session_id)
        return [
            Said("user", f"Where is [b]{session_id}[/]?\n\x1b[31mhere", at(0)),
            Said("assistant", "At Pier 7.", at(1)),
        ]

    async def delete(self, session_id: str) -> None:
        self.rows = [r for r in self.rows if r.id != session_id]

    async def fork(self, session_id: str, message_id: str = "") -> str:
        old = next(r for r in self.rows if r.id == session_id)
        new = msgspec.structs.replace(old, id=f"{session_id}-{message_id or 'fork'}", parent=session_id)
        self.rows.append(new)
        return new.id

    async def models(self) -> Sequence[FoundModel]:
        return self.model_rows

    async def first_look(self) -> FirstLook:
        return FirstLook()

    async def warm_up(self, model: str = "") -> None:
        return None

    async def close(self) -> None:
        return None


def _shrunk(group: Group) -> Group:
    messages = tuple(
        msgspec.structs.replace(m, content="[412 lines, kept on disk]") if m.role == "tool" else m
        for m in group.messages
    )
    return msgspec.structs.replace(group, messages=messages)
