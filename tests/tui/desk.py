"""A conversation to look at: real ledgers, views and figures made with the core, and a session over them without a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from ctxchat.agent.preview import Preview, PreviewStep, cache_lost
from ctxchat.agent.trial import gains
from ctxchat.agent.turn import Meanwhile
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.calibration import level
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Stamped
from ctxchat.core.figures import Counting, Figures, Past, Pending, TokenPrice, measure
from ctxchat.core.grouping import single
from ctxchat.core.journal import Changed, SessionState, Undone, fold
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Group, Image, Message, Part, Text
from ctxchat.core.permissions import Answer, Mode
from ctxchat.core.record import FactCount
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import Meter
from ctxchat.core.undo import Undoing, found, in_part, look, redone
from ctxchat.core.view import Frame, View, compile
from tests.tui.harbour import FRAME, LABELS, SUMMARY_TOKENS, state
from tests.tui.parts import OfOnePiece


class Desk(OfOnePiece):
    """A session on the core alone: every verb changes the ledger as the real one does; there is no model behind it."""

    id = "s1"
    busy = False
    read_only = ""
    files = None
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
        self.weighed: list[tuple[str, ...]] = []
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

    def mask(self, text: str) -> str:
        return text

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
        before, view = self.figures, self.view
        change = apply_plan(self.state.ledger, plan, "tried", PlanOptions(self.meter), summary="word " * SUMMARY_TOKENS)
        after = self._measured(self.state.ledger.apply(change))[1]
        found = gains(plan, before.used / view.raw, before.used - after.used)
        return Preview(
            before,
            after,
            tuple(
                PreviewStep(s.name, LABELS[s.name], gain, s.groups, s.needs_summary, (1, 30), _touched(s))
                for s, gain in zip(plan.steps, found, strict=True)
            ),
            plan,
            keep_recent=plan.keep_recent,
            pinned=len(self.state.ledger.pinned),
            facts=FactCount(44, 44),
            seconds=9.0,
            cost_usd=0.04,
            model="claude-haiku-4-5",
            cache_lost=cache_lost(plan, view, before),
            instructions=instructions,
        )

    async def with_steps(self, preview: Preview, steps: Sequence[str]) -> Preview:
        assert preview.plan is not None
        self.weighed.append(tuple(steps))
        ticked = tuple(s for s in preview.plan.steps if s.name in steps)
        return self._previewed(msgspec.structs.replace(preview.plan, steps=ticked), preview.instructions)

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

    def answer(self, call_id: str, answer: Answer) -> None:
        raise CtxchatError("nothing waits for an answer")

    async def send(
        self, text: str, attachments: Sequence[Part] = (), *, meanwhile: Meanwhile
    ) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("there is no model here")
        yield

    async def resume(self, *, meanwhile: Meanwhile) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("there is no model here")
        yield

    async def free_up(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("there is no model here")
        yield

    async def close(self) -> None:
        return None


def _touched(step: Step) -> frozenset[str]:
    return frozenset((*step.fold, *(covered for e in step.edits for covered in e.covers)))


def _shrunk(group: Group) -> Group:
    messages = tuple(
        msgspec.structs.replace(m, content="[412 lines, kept on disk]") if m.role == "tool" else m
        for m in group.messages
    )
    return msgspec.structs.replace(group, messages=messages)
