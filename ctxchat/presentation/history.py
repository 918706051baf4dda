"""The record as a list of things to show, in its order: groups, and marks where a change was made. Pure; knows no widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from ctxchat.core.changes import restored_ids
from ctxchat.core.context_usage import BUDGET
from ctxchat.core.file_changes import Checkpoint, files_words
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group
from ctxchat.core.notes import CONTEXT_NOTE
from ctxchat.core.record import CompactionRecord

HIDDEN = frozenset({"system", "summary"})

NO_FILES: Mapping[str, str] = MappingProxyType({})
"""One for all the items that did nothing to files: a long session has tens of thousands."""


REWOUND = "Rewound to here: what was said after it is in the record, and no longer in the window."


def note_words(group: Group) -> str:
    """The text shown to people for a note of the program to the model, which is longer."""
    sources = [block.source_id for block in group.context]
    if not sources:
        return "The model is asked to go on where it was cut off."
    if sources == [BUDGET]:
        return "The model is told how full its window is."
    return f"The model is told what has changed: {', '.join(sources)}."


class Shown(msgspec.Struct, frozen=True):
    """One item of the transcript: a group, or a compaction in force (then `change` is set, and `facts_back` says that the facts
    it lost were put back), or a rewind. `files` says what calls of the group did to files, by their ids."""

    group: Group | None = None
    change: Change | None = None
    facts_back: bool = False
    files: Mapping[str, str] = NO_FILES

    @property
    def key(self) -> str:
        """Unique in a session, the same for the same thing."""
        return self.group.id if self.group else f"change:{self.change.id}" if self.change else ""

    @property
    def messages(self) -> int:
        """The number of messages of the item."""
        return len(self.group.messages) if self.group else 0


def items(ledger: Ledger, checkpoints: Sequence[Checkpoint] = ()) -> list[Shown]:
    """Everything that was said and not taken back, with a mark behind the last group that was there when a compaction or a rewind
    was made."""
    marks = [c for c in ledger.in_force if c.kind in {"compaction", "rewind"}]
    told: dict[int, dict[str, str]] = {}
    for checkpoint in checkpoints:
        if checkpoint.call_id:
            told.setdefault(checkpoint.turn, {})[checkpoint.call_id] = files_words(checkpoint.changes)
    shown: list[Shown] = []
    groups = [g for g in ledger.groups_in_force if g.kind not in HIDDEN]
    place = {g.id: i for i, g in enumerate(groups)}
    back = restored_ids(ledger)
    after: dict[int, list[Shown]] = {}
    for change in marks:
        mark = Shown(change=change, facts_back=change.id in back)
        after.setdefault(_index_after(change, groups, place), []).append(mark)
    for index, group in enumerate(groups):
        shown += after.get(index, ())
        shown.append(Shown(group=group, files=told.get(group.turn, NO_FILES) if group.kind == "round" else NO_FILES))
    shown += after.get(len(groups), ())
    return shown


def _index_after(change: Change, groups: list[Group], place: dict[str, int]) -> int:
    """The index of the first group that came after the change."""
    covered = [place[g] for e in change.edits for g in e.covers if g in place]
    first = max(covered, default=-1) + 1
    if not change.at:
        return first
    return next((i for i in range(first, len(groups)) if groups[i].first.at > change.at), len(groups))


def folded_messages(change: Change, record: CompactionRecord | None) -> int:
    """Messages that left the view with a compaction."""
    return record.folded_messages if record and record.folded_messages else sum(len(e.covers) for e in change.edits)


def last_answer(ledger: Ledger) -> str:
    """The words of the last reply that has any, with the half reply it went on with."""
    words = ""
    for group in reversed(ledger.groups_in_force):
        if group.source.startswith(CONTEXT_NOTE):
            continue  # between the halves stands what asked for the rest
        said = group.first.text if group.kind in {"reply", "round"} and group.first.role == "assistant" else ""
        if words and not (said and group.first.interrupted):
            break
        words = said + words if said.strip() or words else ""
    return words
