"""The compactions of a session as people look at them: when, why, what came of each, what it put away. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

import msgspec

from ctxchat.core import openai
from ctxchat.core.events import CompactionFinished
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import CompactionRecord, Evidence, Outcome, Reason
from ctxchat.core.redact import redact

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
    """One compaction, in force (`change` is there), undone, refused or failed. Tokens, seconds, US dollars."""

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

    @property
    def standing(self) -> str:
        """In a word: `in force`, `undone`, `rejected`, `failed`."""
        return "in force" if self.change else "undone" if self.outcome == "compacted" else self.outcome

    @property
    def record(self) -> CompactionRecord | None:
        """What was written down of it, where it is in force."""
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
    changes = {c.id: c for c in state.ledger.compactions}
    found = [_of_result(result, changes.pop(result.id, None)) for result in state.passes if result.outcome != "noop"]
    found += [_of_change(change) for change in changes.values()]
    return tuple(reversed(found))


def _of_result(result: CompactionFinished, change: Change | None) -> Pass:
    record = change.record if change else None
    return Pass(
        id=result.id,
        at=change.at if change else "",
        reason=result.reason,
        outcome=result.outcome,
        strategy=result.strategy,
        before=result.before.used,
        after=result.after.used,
        seconds=result.seconds,
        cost_usd=result.cost_usd,
        model=record.model if record else "",
        detail=result.detail,
        change=change,
    )


def _of_change(change: Change) -> Pass:
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
    )


class Kept(msgspec.Struct, frozen=True):
    """A line of the archive: a message as it was, or an earlier compaction that had put away what follows (`nested`)."""

    message: Message
    group: Group
    nested: Change | None = None


def archived(one: Pass, ledger: Ledger) -> tuple[Kept, ...]:
    """What a compaction put away, in the order of the record, with a line where an earlier one begins."""
    if one.change is None:
        return ()
    covers = [g for e in one.change.edits for g in e.covers]
    earlier = _earlier(one.change, ledger)
    kept: list[Kept] = []
    for group in (ledger.group(g) for g in dict.fromkeys(covers)):
        if nested := earlier.pop(group.id, None):
            kept.append(Kept(group.first, group, nested))
        kept += [Kept(message, group) for message in group.messages]
    return tuple(kept)


def _earlier(change: Change, ledger: Ledger) -> dict[str, Change]:
    """Compactions made before this one, by the first group each covers."""
    found: dict[str, Change] = {}
    for other in ledger.compactions:
        if other.id == change.id:
            break
        if first := next((g for e in other.edits for g in e.covers), ""):
            found[first] = other
    return found


def previous(one: Pass, all_passes: Sequence[Pass]) -> Pass | None:
    """The compaction in force before this one that left a summary."""
    older = all_passes[[p.id for p in all_passes].index(one.id) + 1 :]
    return next((p for p in older if p.summary), None)


def compared(before: str, after: str) -> list[str]:
    """The difference of two summaries as lines that begin with `+`, `-` or a space."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++"))]


def export_lines(session: str, one: Pass, ledger: Ledger) -> Iterator[str]:
    """A compaction as JSON lines: its record, then each message it put away. Secrets are taken out."""
    record = msgspec.to_builtins(one.record) if one.record else {"id": one.id}
    yield _line({"type": "compaction", "session": session, "record": record})
    for kept in archived(one, ledger):
        if kept.nested is None and not kept.message.synthetic:
            place = {"id": kept.message.id, "group": kept.group.id, "kind": kept.group.kind, "turn": kept.group.turn}
            yield _line(openai.recorded(kept.message) | place)


def _line(value: object) -> str:
    return redact(msgspec.json.encode(value).decode()) + "\n"
