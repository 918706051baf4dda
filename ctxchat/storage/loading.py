"""A session read back: the fold of its journal, with what a kill left open closed, and what cannot be read named.

Reads only; what it would mend is handed back as entries for whoever holds the session to write.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxchat.core.errors import StorageError, UnpairedCall
from ctxchat.core.events import CompactionFinished
from ctxchat.core.grouping import close_round, single
from ctxchat.core.journal import (
    Changed,
    Partial,
    PassEnded,
    PassStarted,
    Record,
    Sealed,
    SessionState,
    Undone,
    fold,
)
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group
from ctxchat.core.record import FactCount, SideFigures
from ctxchat.storage import entries, salvage
from ctxchat.storage.database import Database

INTERRUPTED = "[interrupted: ctxchat ended before this call finished]"


class Loaded(msgspec.Struct, frozen=True):
    """A session as its journal says. `problems` are sentences for a person: entries that are damaged, rounds and
    passes that were
    cut off. `repairs` are the entries that close what was cut off; `state` has them taken in already."""

    state: SessionState
    problems: tuple[str, ...] = ()
    repairs: tuple[Record, ...] = ()


def load(database: Database, session: str, *, owned: bool = False) -> Loaded:
    """The session `session` (a full id). `owned` says that nobody else has it open, so that a pass without an end has ended.

    Raises StorageError when the database cannot be read; a damaged entry costs that entry only.
    """
    records, problems = read_records(database, session)
    state = fold(records)
    repairs, closed = cut_off(database, session, state)
    if owned:
        ended = _ended(records)
        repairs += ended
        closed += [f"compaction {pass_.result.id} was cut off: {pass_.result.detail}" for pass_ in ended]
    state = fold(repairs, state)
    return Loaded(state, (*problems, *state.skipped, *closed), tuple(repairs))


def read_records(database: Database, session: str) -> tuple[list[Record], list[str]]:
    """Every entry of a journal that can be read or pieced together, in order, and a sentence for each that was damaged."""
    ids: list[str] = []

    def groups() -> Sequence[str]:
        if not ids:
            ids.extend(group_ids(database, session))
        return ids

    found: list[Record] = []
    problems: list[str] = []
    for seq, body in _bodies(database, session):
        value = (
            entries.decode(seq, body, groups) if body is not None else entries.Damaged(seq, "its page is unreadable")
        )
        if isinstance(value, entries.Damaged):
            problems.append(f"session {session}: entry {seq} is damaged ({value.why})")
            found += salvage.pieced_together(database, session, seq)
        else:
            found.append(value)
    return (_pruned(found) if problems else found), problems


def group_ids(database: Database, session: str) -> list[str]:
    """The ids of a session's groups by place, empty where one is not known."""
    ids: list[str] = []
    for place, group in database.read("SELECT place, id FROM groups WHERE session = ? ORDER BY place", (session,)):
        ids.extend([""] * (place + 1 - len(ids)))
        ids[place] = group
    return ids


def _bodies(database: Database, session: str) -> list[tuple[int, bytes | None]]:
    """The rows at one stroke, or one by one where a page of the file is bad."""
    try:
        return [
            (s, b) for s, b in database.read("SELECT seq, body FROM journal WHERE session = ? ORDER BY seq", (session,))
        ]
    except StorageError:
        # The covering index has the numbers even where a row's own page is gone.
        numbers = database.read("SELECT seq FROM journal WHERE session = ? ORDER BY seq", (session,))
        return [(seq, _body(database, session, seq)) for (seq,) in numbers]


def _body(database: Database, session: str, seq: int) -> bytes | None:
    try:
        return database.read("SELECT body FROM journal WHERE session = ? AND seq = ?", (session, seq))[0][0]
    except (StorageError, IndexError):
        return None


def _pruned(records: Sequence[Record]) -> list[Record]:
    """The entries with groups that were lost taken out of the changes that name them, so that a lost group costs no
    more than itself."""
    known: set[str] = set()
    kept: list[Record] = []
    for record in records:
        if isinstance(record, Sealed):
            known.update(group.id for group in record.groups)
        kept.append(Changed(without_unknown(record.change, known)) if isinstance(record, Changed) else record)
    return kept


def without_unknown(change: Change, known: set[str]) -> Change:
    """The change without groups that are not there."""
    replace = msgspec.structs.replace
    edits = [replace(edit, covers=tuple(g for g in edit.covers if g in known)) for edit in change.edits]
    return replace(
        change,
        edits=tuple(edit for edit in edits if edit.covers),
        pins=tuple(g for g in change.pins if g in known),
        adds=tuple(g for g in change.adds if g in known),
    )


def cut_off(database: Database, session: str, state: SessionState) -> tuple[list[Record], list[str]]:
    """The round that a kill left open, as entries, and a sentence about it; both empty where there is none."""
    rows = database.read("SELECT body FROM partials WHERE session = ?", (session,))
    if not rows:
        return [], []
    try:
        partial = entries.decode_partial(rows[0][0])
        group = seal(partial, state.ledger)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        return [], [f"session {session}: the round that was cut off is damaged and left out ({error})"]
    if group is None:
        return list(partial.noted), []
    return [*partial.noted, Sealed((group,))], [f"message {group.first.id} was cut off; what had arrived of it is kept"]


def seal(partial: Partial, ledger: Ledger) -> Group | None:
    """A round that was cut off, as a group: a reply marked as interrupted, or a round whose open calls say so. None
    for an empty one."""
    said = partial.assistant
    last = ledger.next_seq
    if said.empty and not said.reasoning:
        return None
    if said.seq < last:  # never take a place that the record has given away
        said = msgspec.structs.replace(said, seq=last)
    if not said.calls:
        return single("reply", msgspec.structs.replace(said, interrupted=True), partial.turn)
    taken = {m.seq for g in ledger.groups for m in g.messages} | {said.seq}
    results = tuple(r for r in partial.results if r.seq not in taken)
    next_seq = max([said.seq, *(r.seq for r in results)]) + 1
    try:
        return close_round(said, results, partial.turn, next_seq, INTERRUPTED)
    except UnpairedCall:
        return close_round(said, (), partial.turn, next_seq, INTERRUPTED)


def _ended(records: Sequence[Record]) -> list[PassEnded]:
    """An end for each pass that has none: what it did if its change is there, and that it failed if not."""
    open_: dict[str, PassStarted] = {}
    for record in records:
        if isinstance(record, PassStarted):
            open_[record.id] = record
        elif isinstance(record, PassEnded):
            open_.pop(record.result.id, None)
    undone = {record.change for record in records if isinstance(record, Undone)}
    made = {record.change.id: record.change for record in records if isinstance(record, Changed)}
    return [_end(started, made.get(started.id), started.id in undone) for started in open_.values()]


def _end(started: PassStarted, change: Change | None, undone: bool) -> PassEnded:
    record = change.record if change else None
    result = CompactionFinished(
        outcome="compacted" if record else "failed",
        id=started.id,
        reason=record.reason if record else started.reason,
        strategy=record.strategy if record else started.strategy,
        steps=record.steps if record else (),
        before=record.before if record else SideFigures(0, 0),
        after=record.after if record else SideFigures(0, 0),
        folded_messages=record.folded_messages if record else 0,
        folded_groups=len(record.folded) if record else 0,
        facts=record.facts if record else FactCount(0, 0),
        seconds=record.seconds if record else 0.0,
        cost_usd=record.cost_usd if record else 0.0,
        detail=_what_came_of_it(done=record is not None, undone=undone),
    )
    return PassEnded(result, at=started.at)


def _what_came_of_it(*, done: bool, undone: bool) -> str:
    if undone:
        return "it was in force and has been undone since."
    return "its change is in force." if done else "ctxchat ended while it was under way; nothing was changed."
