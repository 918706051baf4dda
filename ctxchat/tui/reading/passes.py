"""The compactions of a session as people look at them: when, why, what came of each, what it put away. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import unified_diff

import msgspec
from msgspec.structs import replace

from ctxchat.core.events import CompactionFinished
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.manual_changes import put_back
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import CompactionRecord, Evidence, Outcome, PutBack, Reason
from ctxchat.tui.reading.figures_text import count

REASONS: dict[Reason, str] = {
    "manual": "by hand",
    "auto": "auto",
    "reactive_micro": "mid-turn",
    "reactive_full": "mid-turn, full",
    "context_overflow": "overflow",
    "model_switch": "new model",
    "hook": "hook",
    "offline": "command",
}


class Pass(msgspec.Struct, frozen=True):
    """One compaction, in force, undone, refused or failed. `change` is what it did, None for the last two; `back` is what came
    back of it by undo in part, `facts_back` says that the facts it lost were put back, `before` and `after` are what was
    measured when it was made. Tokens, seconds, US dollars."""

    id: str
    at: str
    reason: Reason
    outcome: Outcome
    strategy: str
    before: int
    after: int
    seconds: float
    cost_usd: float
    model: str = ""
    detail: str = ""
    change: Change | None = None
    undone: bool = False
    facts_back: bool = False

    @property
    def back(self) -> PutBack:
        """What came back of it by undo in part."""
        return self.record.back if self.record else PutBack()

    @property
    def stands(self) -> int:
        """Tokens after it, without what came back since."""
        return self.after + self.back.tokens

    @property
    def in_force(self) -> bool:
        """What it put away is out of the view."""
        return self.change is not None and not self.undone

    @property
    def standing(self) -> str:
        """In a word or two: `in force`, `in part` (some of it came back), `undone`, `rejected`, `failed`."""
        if self.undone or not self.change:
            return "undone" if self.undone else self.outcome
        return "in part" if self.back.messages else "in force"

    @property
    def record(self) -> CompactionRecord | None:
        """What was written down of it, where it did something."""
        return self.change.record if self.change else None

    @property
    def summary(self) -> str:
        """What stands for what it put away."""
        if self.change is None:
            return ""
        for edit in self.change.edits:
            if edit.digest and (edit.digest.summary or edit.digest.recap):
                return "\n\n".join(t for t in (edit.digest.summary, edit.digest.recap) if t)
        if self.record and self.record.summary:
            return self.record.summary
        stands = (e.replacement for e in self.change.edits if e.kind == "digest")
        return "\n\n".join(g.first.text for g in stands if g)

    @property
    def evidence(self) -> Evidence:
        """The facts that were carried over."""
        edits = self.change.edits if self.change else ()
        return Evidence(tuple(f for e in edits if e.digest for f in e.digest.evidence.facts))


def passes(state: SessionState) -> tuple[Pass, ...]:
    """Every compaction of a session, the newest first; those that found nothing to do are left out."""
    undone = {c.id for c in state.undone}
    changes = {c.id: c for c in (*state.undone, *state.ledger.changes) if c.kind == "compaction"}
    ended = {result.id: ending.at for result, ending in zip(state.passes, state.endings, strict=False)}
    results = [result for result in state.passes if result.outcome != "noop"]
    found = [_of_result(r, changes.pop(r.id, None), undone, ended.get(r.id, "")) for r in results]
    found += [_of_change(change, undone) for change in changes.values()]
    back = put_back(state.ledger)
    return tuple(replace(one, facts_back=True) if one.id in back else one for one in reversed(found))


def tally(found: Sequence[Pass]) -> tuple[str, ...]:
    """How many there are, the longest way to say it first: those in force count, the others are told apart."""
    done = count(sum(p.in_force for p in found), "compaction")
    undone, refused = sum(p.undone for p in found), sum(p.change is None for p in found)
    others = [f"{n} {what}" for n, what in ((undone, "undone"), (refused, "without effect")) if n]
    return (", ".join([done, *others]), done) if others else (done,)


def _of_result(result: CompactionFinished, change: Change | None, undone: Collection[str], ended: str) -> Pass:
    record = change.record if change else None
    return Pass(
        id=result.id,
        at=change.at if change and change.at else ended,
        reason=result.reason,
        outcome=result.outcome,
        strategy=result.strategy,
        before=result.before.used,
        after=result.after.used,
        seconds=result.seconds,
        cost_usd=record.cost_usd if record else result.cost_usd,
        model=record.model if record else "",
        detail=record.detail if record and record.detail else result.detail,
        change=change,
        undone=result.id in undone,
    )


def _of_change(change: Change, undone: Collection[str]) -> Pass:
    record = change.record or CompactionRecord(id=change.id, reason="manual", strategy="", outcome="compacted")
    return Pass(
        id=change.id,
        at=change.at,
        reason=record.reason,
        outcome=record.outcome,
        strategy=record.strategy,
        before=record.before.used,
        after=record.after.used,
        seconds=record.seconds,
        cost_usd=record.cost_usd,
        model=record.model,
        detail=record.detail,
        change=change,
        undone=change.id in undone,
    )


class Kept(msgspec.Struct, frozen=True):
    """A line of the archive: a message as it was, or an earlier compaction that had put away what follows (`nested`)."""

    message: Message
    group: Group
    nested: Change | None = None


def put_away(one: Pass, ledger: Ledger) -> tuple[Group, ...]:
    """The groups a compaction put away, as they were, in the order of the record."""
    covers = {g for e in one.change.edits for g in e.covers} if one.change else frozenset[str]()
    return tuple(g for g in ledger.groups if g.id in covers)


def archived(one: Pass, ledger: Ledger) -> tuple[Kept, ...]:
    """What a compaction put away, message by message, with a line where an earlier one begins."""
    earlier = _earlier(one.change, ledger) if one.change else {}
    kept: list[Kept] = []
    for group in put_away(one, ledger):
        if nested := earlier.pop(group.id, None):
            kept.append(Kept(group.first, group, nested))
        kept += [Kept(message, group) for message in group.messages]
    return tuple(kept)


def _earlier(change: Change, ledger: Ledger) -> dict[str, Change]:
    """Compactions in force that were made before this one, by the first group each covers."""
    found: dict[str, Change] = {}
    for other in ledger.compactions:
        if other.id == change.id or (change.at and other.at > change.at):
            break
        if first := next((g for e in other.edits for g in e.covers), ""):
            found[first] = other
    return found


def previous(one: Pass, all_passes: Sequence[Pass]) -> Pass | None:
    """The last compaction before this one that left a summary: one in force where there is one, else one undone since."""
    older = [p for p in all_passes[[p.id for p in all_passes].index(one.id) + 1 :] if p.summary]
    return next((p for p in older if p.in_force), older[0] if older else None)


def compared(before: str, after: str) -> list[str]:
    """The difference of two summaries as lines that begin with `+`, `-` or a space."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++"))]
