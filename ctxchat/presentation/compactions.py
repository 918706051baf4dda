"""The compactions of a session as they are shown: when and why each was made, its result, and the messages it archived. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from itertools import takewhile

import msgspec

from ctxchat.core.changes import restored_ids
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.presentation.usage_text import count

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


class CompactionEntry(msgspec.Struct, frozen=True):
    """One compaction, in force, undone, refused or failed: what was written down of it, and how it stands. `change` is what it
    did, None for the last two; `facts_back` says that the facts it lost were put back."""

    record: CompactionRecord
    change: Change | None = None
    undone: bool = False
    facts_back: bool = False

    @property
    def id(self) -> str:
        """The record's id, and the change's."""
        return self.record.id

    @property
    def in_force(self) -> bool:
        """Whether the archived messages are out of the view."""
        return self.change is not None and not self.undone

    @property
    def state_word(self) -> str:
        """In a word or two: `active`, `in part` (some of it came back), `undone`, `rejected`, `failed`."""
        if self.undone or not self.change:
            return "undone" if self.undone else self.record.outcome
        return "in part" if self.record.back.messages else "active"

    @property
    def summary(self) -> str:
        """The summary in place of the archived messages."""
        if self.change is None:
            return ""
        for edit in self.change.edits:
            if edit.digest and (edit.digest.summary or edit.digest.recap):
                return "\n\n".join(t for t in (edit.digest.summary, edit.digest.recap) if t)
        if self.record.summary:
            return self.record.summary
        stands = (e.replacement for e in self.change.edits if e.kind == "digest")
        return "\n\n".join(g.first.text for g in stands if g)


def compaction_entries(state: SessionState) -> tuple[CompactionEntry, ...]:
    """Every compaction of a session, the newest first; those that found nothing to do are left out."""
    undone = {c.id for c in state.undone}
    changes = {c.id: c for c in (*state.undone, *state.ledger.changes) if c.kind == "compaction"}
    records = [
        *state.compactions,
        *(_record(c) for c in changes.values() if all(c.id != r.id for r in state.compactions)),
    ]
    back = restored_ids(state.ledger)
    return tuple(
        CompactionEntry(record, changes.get(record.id), record.id in undone, record.id in back)
        for record in reversed(records)
        if record.outcome != "noop"
    )


def _record(change: Change) -> CompactionRecord:
    """The record of a compaction, made from its change alone where none was stored."""
    return change.record or CompactionRecord(change.id, "manual", "", "compacted", change.at)


def tally(found: Sequence[CompactionEntry]) -> tuple[str, ...]:
    """The number of compactions in words, the longest wording first: those in force are counted, the others named separately."""
    done = count(sum(p.in_force for p in found), "compaction")
    undone, refused = sum(p.undone for p in found), sum(p.change is None for p in found)
    others = [f"{n} {what}" for n, what in ((undone, "undone"), (refused, "without effect")) if n]
    return (", ".join([done, *others]), done) if others else (done,)


class Kept(msgspec.Struct, frozen=True):
    """A line of the archive: a message as it was, or an earlier compaction that had put away what follows (`nested`)."""

    message: Message
    group: Group
    nested: Change | None = None


def put_away(one: CompactionEntry, ledger: Ledger) -> tuple[Group, ...]:
    """The groups that a compaction archived, unchanged, in the order of the record."""
    covers = {g for e in one.change.edits for g in e.covers} if one.change else frozenset[str]()
    return tuple(g for g in ledger.groups if g.id in covers)


def archived(one: CompactionEntry, ledger: Ledger) -> tuple[Kept, ...]:
    """The messages that a compaction archived or shortened, with a line where an earlier compaction begins."""
    before = _before(one.change, ledger) if one.change else []
    earlier = {next((g for e in other.edits for g in e.covers), ""): other for other in before}
    alone = _left_alone(one.change, before, ledger) if one.change else frozenset[int]()
    kept: list[Kept] = []
    for group in put_away(one, ledger):
        if nested := earlier.pop(group.id, None):
            kept.append(Kept(group.first, group, nested))
        kept += [Kept(message, group) for message in group.messages if message.seq not in alone]
    return tuple(kept)


def _before(change: Change, ledger: Ledger) -> list[Change]:
    """The compactions in force that were made before this one."""
    return list(takewhile(lambda c: c.id != change.id and not (change.at and c.at > change.at), ledger.compactions))


def _left_alone(change: Change, before: Sequence[Change], ledger: Ledger) -> frozenset[int]:
    """The numbers of the messages that a compaction left as they were shown, in groups of which it shortened others."""
    shown = {m.seq: m for other in before for m in _shortened(other)}
    for edit in change.edits:
        if edit.kind == "shrink":
            shown = {m.seq: m for name in edit.covers for m in ledger.group(name).messages} | shown
    return frozenset(m.seq for m in _shortened(change) if shown.get(m.seq) == m)


def _shortened(change: Change) -> list[Message]:
    """The messages of the groups that a change shows shortened."""
    return [m for edit in change.edits if edit.kind == "shrink" and edit.replacement for m in edit.replacement.messages]


def previous(one: CompactionEntry, entries: Sequence[CompactionEntry]) -> CompactionEntry | None:
    """The last compaction before this one that left a summary: one in force where there is one, else one undone since."""
    older = [p for p in entries[[p.id for p in entries].index(one.id) + 1 :] if p.summary]
    return next((p for p in older if p.in_force), older[0] if older else None)


def compared(before: str, after: str) -> list[str]:
    """The difference of two summaries as lines that begin with `+`, `-` or a space."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++"))]
