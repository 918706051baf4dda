"""A session for the interface alone: real ledger, view and figures, and turns that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ctxchat.agent.compaction.dry_run import gains
from ctxchat.agent.compaction.preview import Preview, PreviewStep, rewrite_of
from ctxchat.agent.spending_budget import SpendingBudget
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.cache import rewrite
from ctxchat.core.cache_state import NOTHING_KNOWN, NextCall, PrefixRewrite
from ctxchat.core.calibration import Calibration, Mix
from ctxchat.core.changes import UndoPreview, find_change, lost_facts_change, partial_undo, preview_undo, redo_change
from ctxchat.core.context_usage import ContextUsage, Counting, Past, TokenPrice, measure
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.events import Event, Notice, Stamped, Steered, TextDelta, TurnFinished, TurnStarted
from ctxchat.core.facts import Memory
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.head import Head
from ctxchat.core.images import size_in
from ctxchat.core.journal import Changed, Deferred, SessionState, SetupDeferred, Undone, fold
from ctxchat.core.ledger import Change, DeferredKind, Edit, Ledger
from ctxchat.core.messages import Group, Image, Message, Part, Text, attached
from ctxchat.core.options import Options
from ctxchat.core.permissions import Answer, Mode
from ctxchat.core.ports import PersonCommands
from ctxchat.core.record import CompactionRecord, FactCount, SideUsage
from ctxchat.core.search import Hit, Scope
from ctxchat.core.secrets import Masking
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter, rough_count
from ctxchat.core.view import View, compile
from ctxchat.tools.jobs import Jobs

if TYPE_CHECKING:  # a start is measured with these: what they stand for is heavy
    from ctxchat.agent.session import Session
    from ctxchat.agent.turn.turn import NextSteeringMessage
    from ctxchat.config.effective import Loaded
    from ctxchat.importing.outcome import Importable, ImportNews
    from ctxchat.models.discovery import FirstLook, FoundModel, Offer
    from ctxchat.storage.archive import LastSaid
    from ctxchat.storage.loading import JournalNews
    from ctxchat.storage.sessions import SessionRow
    from ctxchat.tools.mcp.host import ShowLogin, ToolReply
    from ctxchat.tools.mcp.protocol import OfferedResource
    from ctxchat.tools.mcp.server import ServerRow

AT = datetime(2026, 11, 21, 14, 2).astimezone().isoformat()  # two minutes past two wherever the tests run
LATER = datetime(2026, 11, 21, 14, 5).astimezone().isoformat()
LATEST = datetime(2026, 11, 21, 14, 9).astimezone().isoformat()


class Pause(msgspec.Struct, frozen=True):
    """The script waits until the test lets it go on."""

    name: str = "go"


class Boundary(msgspec.Struct, frozen=True):
    """Between two rounds: what was said meanwhile joins the turn."""


ScriptStep = Event | Pause | Boundary | Group | float
"""What a scripted turn does: an event, a wait for the test, a boundary, a group into the record, or a sleep in seconds."""


def reply(text: str) -> list[ScriptStep]:
    return [*(TextDelta(text[i : i + 12]) for i in range(0, len(text), 12)), TurnFinished("done", text, 1, 0.5)]


SUMMARY_TOKENS = 900
LABELS = {
    "shrink_tool_results": "old tool results to one line, text kept on disk",
    "summarize": "summary of turns 1–9",
}


class FakeGate(Approvals):
    """Keeps what is said to calls that wait, and lets the script of its session go on."""

    def __init__(self, session: FakeSession) -> None:
        super().__init__(folder="/harbour")
        self._session = session

    def answer(self, call_id: str, answer: Answer) -> None:
        self._session.answers.append((call_id, answer))
        self._session.approvals(f"answer:{call_id}").set()

    def objection(self, call_id: str, rule: str) -> str:
        return "" if "make" in rule and ":" in rule else "This does not cover the call that waits."

    def reply(self, call_id: str, text: str) -> None:
        self._session.replies.append((call_id, text))
        self._session.approvals(f"answer:{call_id}").set()


class FakeSession:
    """Follows `script` for each message: the text in, the steps out. Every change by hand is made as the real one makes it. It is
    its own setup, planner, consent, compaction, changes and attachments; `adapted` counts how often it was told to go by edited
    settings."""

    agent = ""
    address = ""
    effort = ""
    levels = "anthropic/claude-sonnet-4-5 has low and high."

    def __init__(
        self,
        script: Callable[[str], Sequence[ScriptStep]] = lambda text: reply(f"You said: {text}"),
        messages: Sequence[Message] = (),
        *,
        begun: SessionState | None = None,
        id: str = "s1",
        title: str = "",
        window: int = 200_000,
        model: str = "anthropic/claude-sonnet-4-5",
        frame: Head | None = None,
        counter: TokenCounter | None = None,
        calibration: Calibration | None = None,
        read_only: str = "",
        notices: Sequence[str] = (),
    ) -> None:
        self.script, self.id, self.read_only, self.notices = script, id, read_only, tuple(notices)
        self.state = begun or SessionState(ledger=Ledger(groups=group_messages(messages)), title=title, model=model)
        self.frame = frame or Head(system="You help.")
        self.counter = counter or TokenCounter(rough_count)
        self.calibration = calibration or Calibration()
        self.budget = make_budget(Window(window, "catalogue"), 4_096, 0.8, 0.5)
        self.budgets: dict[str, int] = {}
        self.price = TokenPrice()
        self.cache = NOTHING_KNOWN
        self.options = Options()
        self.permissions = FakeGate(self)
        self.files = None
        self.person_commands: PersonCommands | None = None
        self.ghost = 0
        self.seen = True
        self.busy = False
        self.closed = False
        self.at = AT
        self.adapted = 0
        self.interrupted = 0
        self.sent: list[str] = []
        self.sent_along: list[tuple[Part, ...]] = []
        self.saved: dict[str, bytes] = {}
        self.reinserted: list[str] = []
        self.agreed: list[tuple[str, str]] = []
        self.snoozed: list[int] = []
        self.asked: list[tuple[str, int | None]] = []
        self.background: Jobs | None = None
        self.spending = SpendingBudget()
        self.weighed: list[tuple[str, ...]] = []
        self.replies: list[tuple[str, str]] = []
        self.answers: list[tuple[str, Answer]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.answered = asyncio.Event()
        self._stamps = self._changes = 0

    # ── parts ──

    @property
    def policy(self) -> Self:
        return self

    @property
    def planner(self) -> Self:
        return self

    @property
    def setup(self) -> Self:
        return self

    prompts = ()

    def mentioning(self, text: str) -> str:
        return text

    thoughts_lost = 0

    def thoughts_lost_with(self, name: str) -> int:
        return self.thoughts_lost

    read_by_another = NextCall()

    async def price_with(self, name: str) -> NextCall:
        return self.read_by_another

    @property
    def deferred(self) -> SetupDeferred:
        return self.state.setup_deferred

    async def defer_setup(self, **changed: Any) -> SetupDeferred:
        self.state = fold([msgspec.structs.replace(self.deferred, **changed)], self.state)
        return self.deferred

    def check_level(self, level: str) -> None:
        if level not in {"", "low", "high"}:
            raise UsageError(self.levels)

    async def choose_effort(self, level: str) -> None:
        self.effort = level

    async def choose_mode(self, mode: Mode) -> None:
        self.permissions.mode = mode

    @property
    def compaction(self) -> Self:
        return self

    @property
    def changes(self) -> Self:
        return self

    def rewrite_of(self, group_id: str) -> PrefixRewrite:
        place = next(n for n, item in enumerate(self.view.items) if item.group == group_id)
        return rewrite(self.view, place, self.context_usage.used, {group_id})

    def rewrite_all(self, *, head: bool) -> PrefixRewrite:
        return rewrite(self.view, 0 if head else 1, self.context_usage.used)

    @property
    def attachments(self) -> Self:
        return self

    async def unreached(self) -> bool:
        return False

    async def adapt(self) -> ContextUsage:
        self.adapted += 1
        return self.context_usage

    async def switch_agent(self, name: str) -> ContextUsage:
        self.agent = name
        return self.context_usage

    # ── values ──

    @property
    def model(self) -> str:
        return self.state.model

    @property
    def view(self) -> View:
        return compile(self.state.ledger, self.frame, self.counter)

    @property
    def context_usage(self) -> ContextUsage:
        return self._measure(self.view)

    async def seen_view(self) -> View:
        return self.view

    async def measure(self) -> ContextUsage:
        return self.context_usage

    def with_draft(self, text: str, parts: Sequence[Part] = ()) -> ContextUsage:
        return self._measure(self.view, self.counter.count_text(text) + sum(map(self.counter.part, parts)))

    def _measure(self, view: View, draft: int = 0) -> ContextUsage:
        state = self.state
        context_usage = measure(
            view,
            msgspec.structs.replace(self.budget, sections=self.budgets),
            Counting(state.model, self.calibration, price=self.price),
            draft=Mix(draft),
            past=Past(state.fills, len(state.ledger.compactions), state.cost_usd, state.cached),
        )
        return msgspec.structs.replace(context_usage, cache=self.cache)

    def _measured(self, ledger: Ledger) -> tuple[View, ContextUsage]:
        view = compile(ledger, self.frame, self.counter)
        return view, self._measure(view)

    # ── what goes along ──

    def mask(self, text: str) -> str:
        return text

    def count_tokens(self, part: Part) -> int:
        return self.counter.part(part)

    async def carried(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        return tuple(groups)

    async def save(self, name: str, data: bytes) -> Image:
        self.saved[name] = data
        return Image(f"attachments/{name}", *size_in(data), name)

    async def put_away(self, name: str, text: str) -> Text:
        self.saved[name] = text.encode()
        return Text(f"{text[:100]} [full text: tool-results/{name}]", name)

    async def count(self, parts: Sequence[Part]) -> None:
        return None

    # ── verbs ──

    def approvals(self, name: str = "go") -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    def seal(self, *groups: Group) -> None:
        self.state = msgspec.structs.replace(self.state, ledger=self.state.ledger.append(*groups))

    def fold(self, lost: tuple[str, ...] = ()) -> Change:
        """A compaction of all there is before the last message, made after it."""
        ledger = self.state.ledger
        covers = tuple(takewhile(lambda g: g not in ledger.current, (g.id for g in ledger.groups)))
        self.at = LATEST
        note = single("summary", Message(ledger.next_seq + 500, "user", "what was said"), 0, source="k1")
        record = CompactionRecord(
            id="k1",
            reason="manual",
            strategy="summarize",
            outcome="compacted",
            at=LATER,
            before=SideUsage(9_000, 4),
            after=SideUsage(800, 1),
            folded_messages=len(covers),
            facts=FactCount(44, 44 - len(lost)),
            lost=lost,
        )
        change = Change("k1", "compaction", at=LATER, edits=(Edit("digest", covers, note),), record=record)
        self.state = msgspec.structs.replace(self.state, ledger=ledger.apply(change))
        return change

    def lost_facts(self, change_id: str) -> tuple[str, ...]:
        return next(c.record.lost for c in self.state.ledger.changes if c.id == change_id and c.record)

    async def reinsert(self, change_id: str) -> ContextUsage:
        self.reinserted.append(change_id)
        note, change = lost_facts_change(self.state.ledger, change_id, LATEST)
        ledger = self.state.ledger.append(note).apply(change)
        self.state = msgspec.structs.replace(self.state, ledger=ledger)
        return self.context_usage

    async def resume(self, *, next_steering_message: NextSteeringMessage) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("nothing broke off here")
        yield

    async def send(
        self, text: str, attachments: Sequence[Part] = (), *, next_steering_message: NextSteeringMessage
    ) -> AsyncGenerator[Stamped, None]:
        self.sent.append(text)
        self.sent_along.append(tuple(attachments))
        turn = self.state.ledger.turn + 1
        content = (Text(text), *attachments) if attachments else text
        message = Message(seq=self.state.ledger.next_seq, role="user", content=content, at=self.at)
        along = attached(content, [0, *map(self.count_tokens, attachments)] if attachments else [])
        self.seal(single("user", message, turn))
        answer = ""
        self.busy = True
        try:
            yield self._stamp(TurnStarted(turn, message.id, text, attachments=along))
            for step in self.script(text):
                match step:
                    case Pause(name=name):
                        await self.approvals(name).wait()
                    case float():
                        await asyncio.sleep(step)
                    case Group():
                        self.seal(step)
                    case Boundary():
                        while (more := await next_steering_message()) is not None:
                            self.sent.append(more[0])
                            message = Message(seq=self.state.ledger.next_seq, role="user", content=more[0], at=self.at)
                            self.seal(single("user", message, turn))
                            yield self._stamp(Steered(message.id, more[0]))
                    case TurnFinished():
                        answer = self._seal_reply(answer, turn)
                        yield self._stamp(self.context_usage)
                        yield self._stamp(step)
                    case _:
                        answer += step.text if isinstance(step, TextDelta) else ""
                        yield self._stamp(step)
        finally:
            self.busy = False
            if answer:
                self.interrupted += 1
                self._seal_reply(answer, turn, interrupted=True)

    def _seal_reply(self, said: str, turn: int, interrupted: bool = False) -> str:
        if said:
            seq = self.state.ledger.next_seq
            self.seal(
                single(
                    "reply", Message(seq=seq, role="assistant", content=said, at=self.at, interrupted=interrupted), turn
                )
            )
        return ""

    def _stamp(self, event: Event) -> Stamped:
        self._stamps += 1
        return Stamped(self.id, self._stamps, AT, event)

    async def preview(self, instructions: str = "", keep_recent: int | None = None) -> Preview:
        self.asked.append((instructions, keep_recent))
        keep = 6 if keep_recent is None else keep_recent
        before, view = self.context_usage, self.view
        groups = [g.id for g in self.state.ledger.groups if g.kind != "system"]
        foldable = groups[: max(0, len(self.state.ledger.groups) - keep)]
        results = tuple(
            i.group for i in view.items if i.section == "tool_results" and i.tokens > 400 and i.group in foldable
        )
        if not results:
            reason = "Nothing to free: system and tools hold 0.7k of 28k. F4 shows the parts."
            return Preview(before, before, reason=reason, keep_recent=keep)
        shrinks = tuple(Edit("shrink", (g,), _shrunk(self.state.ledger.group(g))) for g in results)
        freed = sum(i.tokens for i in view.items if i.group in results and i.section == "tool_results") * 9 // 10
        folded = sum(i.tokens for i in view.items if i.group in foldable) - freed - SUMMARY_TOKENS
        steps = [Step("shrink_tool_results", freed, len(results), edits=shrinks)]
        if folded > 0:
            steps.append(Step("summarize", folded, len(foldable), fold=tuple(foldable), summary_tokens=SUMMARY_TOKENS))
        plan = Plan("pipeline", tuple(steps), view.raw, view.raw - sum(s.tokens_freed for s in steps), keep)
        return self._previewed(plan, instructions)

    def _previewed(self, plan: Plan, instructions: str) -> Preview:
        before, view = self.context_usage, self.view
        change = apply_plan(
            self.state.ledger, plan, "tried", PlanOptions(self.counter), summary="word " * SUMMARY_TOKENS
        )
        after = self._measured(self.state.ledger.apply(change))[1]
        found = gains(plan, before.used / view.raw, before.used - after.used)
        return Preview(
            before,
            after,
            tuple(
                PreviewStep(s.name, LABELS[s.name], gain, s.groups, s.needs_summary, (1, 30), _touched(s))
                for s, gain in zip(plan.steps, found, strict=True)
            ),
            (PreviewStep("strip_reasoning", "old reasoning", 0, 0, why_nothing="no old reasoning"),),
            plan,
            keep_recent=plan.keep_recent,
            pinned=len(self.state.ledger.pinned),
            facts=FactCount(44, 44),
            seconds=9.0,
            cost_usd=0.04,
            model="claude-haiku-4-5",
            rewrite=rewrite_of(plan, view, before, binds=False),
            instructions=instructions,
        )

    async def with_steps(self, preview: Preview, steps: Sequence[str]) -> Preview:
        assert preview.plan is not None
        self.weighed.append(tuple(steps))
        ticked = tuple(s for s in preview.plan.steps if s.name in steps)
        return self._previewed(msgspec.structs.replace(preview.plan, steps=ticked), preview.instructions)

    async def free_up(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[Stamped, None]:
        yield self._stamp(self.context_usage)

    def agree(self, when: str, instructions: str = "") -> None:
        self.agreed.append((when, instructions))

    def pause_for(self, turns: int) -> None:
        self.snoozed.append(turns)

    async def make_room(self) -> AsyncGenerator[Stamped, None]:
        yield self._stamp(self.context_usage)

    def _apply(self, change: Change) -> ContextUsage:
        self.state = fold([Changed(change)], self.state)
        return self.context_usage

    def _id(self) -> str:
        self._changes += 1
        return f"h{self._changes}"

    async def preview_undo(self, change_id: str = "") -> UndoPreview:
        return preview_undo(self.state.ledger, change_id, self._measured, TokenCounter().count_text, Memory())

    async def undo(self, change_id: str = "", groups: Sequence[str] = ()) -> ContextUsage:
        undone = find_change(self.state.ledger, change_id)
        left = (
            [
                Changed(
                    partial_undo(
                        self.state.ledger, undone.id, groups, self._measured, TokenCounter().count_text, Memory()
                    )
                )
            ]
            if groups
            else []
        )
        self.state = fold([Undone(undone.id), *left], self.state)
        return self.context_usage

    async def redo(self, change_id: str = "") -> ContextUsage:
        return self._apply(redo_change(self.state.undone, self.state.ledger, change_id))

    async def pin(self, group_id: str) -> ContextUsage:
        return self._apply(Change(self._id(), "pin", pins=(group_id,)))

    async def drop(self, group_id: str) -> ContextUsage:
        return self._apply(Change(self._id(), "drop", edits=(Edit("drop", (group_id,)),)))

    async def shrink(self, group_id: str) -> ContextUsage:
        edit = Edit("shrink", (group_id,), _shrunk(self.state.ledger.group(group_id)))
        return self._apply(Change(self._id(), "shrink", edits=(edit,)))

    async def defer(self, group_id: str, kind: DeferredKind) -> ContextUsage:
        self.state = fold([Deferred(group_id, kind)], self.state)
        return self.context_usage

    async def undefer(self, group_id: str) -> ContextUsage:
        self.state = fold([Deferred(group_id)], self.state)
        return self.context_usage

    async def restore(self, group_id: str) -> ContextUsage:
        ledger = self.state.ledger
        text = "\n".join(m.text for m in ledger.group(group_id).messages)
        note = single(
            "note", Message(ledger.next_seq, "user", f"[from earlier]\n{text}"), ledger.turn, f"restore:{group_id}"
        )
        self.state = msgspec.structs.replace(self.state, ledger=ledger.append(note))
        return self._apply(Change(self._id(), "restore", adds=(note.id,)))

    async def rename(self, title: str) -> None:
        self.state = msgspec.structs.replace(self.state, title=title)

    async def switch_model(self, name: str) -> ContextUsage:
        self.state = msgspec.structs.replace(self.state, model=name)
        return self.context_usage

    async def close(self) -> tuple[Notice, ...]:
        self.closed = True
        return ()


def _touched(step: Step) -> frozenset[str]:
    return frozenset((*step.fold, *(covered for e in step.edits for covered in e.covers)))


def _shrunk(group: Group) -> Group:
    messages = tuple(
        msgspec.structs.replace(m, content="[412 lines, kept on disk]") if m.role == "tool" else m
        for m in group.messages
    )
    return msgspec.structs.replace(group, messages=messages)


class FakeServices:
    """What stands beside a few sessions, in memory. `rows` are stored ones, made when they are opened."""

    def __init__(
        self,
        workspace: Path,
        *sessions: FakeSession | Session,
        rows: Sequence[SessionRow] = (),
        models: Sequence[FoundModel] | None = None,
        notices: Sequence[str] = (),
        sandboxed: bool = True,
    ) -> None:
        self.workspace, self.notices, self.sandboxed = workspace, tuple(notices), sandboxed
        self.by_id = {s.id: s for s in sessions}
        self.first = sessions[0] if sessions else FakeSession()
        self.rows = list(rows)
        self.model_rows = models
        self.glanced: list[str] = []
        self.journals: dict[str, JournalNews] = {}
        self.closed = False
        self.warmed = False
        self.forks: list[tuple[str, str]] = []
        self.offered: tuple[Offer, ...] = ()
        self.note = ""
        self.adopted: list[Loaded] = []
        self.masking = Masking(bytes(32))
        self.mcp: Sequence[ServerRow] = ()

    def adopt(self, loaded: Loaded) -> None:
        self.adopted.append(loaded)

    async def branch(self) -> str:
        return ""

    async def open(self, session_id: str = "") -> FakeSession | Session:
        if not session_id:
            return self.first
        row = next((r for r in self.rows if r.id == session_id), None)
        if session_id not in self.by_id and row is None:
            raise CtxchatError(f"There is no session {session_id}.", "ctxchat sessions list shows them.")
        return self.by_id.setdefault(session_id, FakeSession(id=session_id, title=row.title if row else ""))

    async def sessions(self) -> Sequence[SessionRow]:
        from ctxchat.storage.sessions import SessionRow

        stored = {row.id for row in self.rows}
        live = [s for s in self.by_id.values() if s.id not in stored]
        return [
            *(msgspec.structs.replace(r, title=self._title(r.id, r.title)) for r in self.rows),
            *(SessionRow(s.id, s.state.title, AT, AT, 0, s.state.model, 0, 0, "") for s in live),
        ]

    def _title(self, session_id: str, stored: str) -> str:
        session = self.by_id.get(session_id)
        return session.state.title if session else stored

    async def journal_news(self, session_id: str, since: int = 0) -> JournalNews:
        news = self.journals.get(session_id)
        if news is None:
            raise CtxchatError("The data folder is full.")
        new = since < news.last
        return msgspec.structs.replace(news, records=news.records[since:] if new else ())

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        from ctxchat.storage.archive import LastSaid

        self.glanced.append(session_id)
        if all(row.id != session_id for row in self.rows):
            return ()
        asked = f"Where is [b]{session_id}[/]?\n\x1b[31mhere"
        return [LastSaid("user", asked, AT), LastSaid("assistant", "At **Pier 7**.", AT)]

    async def delete(self, session_id: str) -> None:
        self.by_id.pop(session_id, None)
        self.rows = [row for row in self.rows if row.id != session_id]

    async def hand_off(self, session_id: str, title: str) -> str:
        self.by_id["fresh"] = FakeSession(id="fresh", title=title)
        return "fresh"

    async def fork(self, session_id: str, message_id: str = "") -> str:
        self.forks.append((session_id, message_id))
        branch = f"{session_id}-{message_id or 'branch'}"
        row = next((row for row in self.rows if row.id == session_id), None)
        if row is not None:
            self.rows.append(msgspec.structs.replace(row, id=branch, parent=session_id))
        else:
            self.by_id[branch] = FakeSession(id=branch, begun=self.by_id[session_id].state)
        return branch

    async def models(self) -> Sequence[FoundModel]:
        from ctxchat.models.discovery import FoundModel

        if self.model_rows is not None:
            return self.model_rows
        return [FoundModel("anthropic/claude-sonnet-4-5", "anthropic", True, 200_000, "catalogue")]

    async def indexed(self) -> float:
        return 1.0

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        return []

    async def group(self, session_id: str, message_id: str) -> Group:
        raise CtxchatError(f"There is no message {message_id}.")

    async def mcp_servers(self) -> Sequence[ServerRow]:
        return self.mcp

    async def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        return {}

    async def read_resource(self, server: str, uri: str) -> ToolReply:
        raise CtxchatError(f"There is no MCP server {server}.")

    async def switch_server(self, name: str) -> ServerRow:
        raise CtxchatError(f"There is no MCP server {name}.")

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        raise CtxchatError(f"There is no MCP server {name}.")

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        return ()

    async def first_found(self) -> Sequence[Importable]:
        return ()

    async def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
        for news in ():
            yield news

    async def following(self) -> AsyncGenerator[ImportNews, None]:
        for news in ():
            yield news

    async def may_offer_following(self) -> bool:
        return False

    async def following_answered(self) -> None: ...

    async def first_look(self) -> FirstLook:
        from ctxchat.models.discovery import FirstLook

        return FirstLook(self.offered, self.note)

    async def warm_up(self, model: str = "") -> None:
        self.warmed = True

    async def close(self) -> None:
        self.closed = True
