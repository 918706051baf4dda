"""Loads a session from its journal: closes rounds and compactions that a kill left open, and reports damaged entries.

It only reads. Repairs are returned as entries, to be written by the process that holds the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from ctxchat.core.errors import StorageError, UnpairedCall
from ctxchat.core.grouping import close_round, single
from ctxchat.core.journal import (
    Changed,
    CompactionFinished,
    Partial,
    Record,
    Sealed,
    SessionState,
    fold,
    without_end,
)
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group
from ctxchat.core.record import CompactionRecord
from ctxchat.storage import around, entries, salvage
from ctxchat.storage.database import Database

INTERRUPTED = "[interrupted: ctxchat ended before this call finished]"
CUT_OFF = "ctxchat ended while it was under way; nothing was changed."


_IN_ORDER = """SELECT named.seq, entry.id, entry.session, entry.seq, entry.body
    FROM journal named JOIN journal entry NOT INDEXED ON entry.id = named.id WHERE named.session = ? ORDER BY named.seq"""
"""Number and row of each entry by the table's index, and session and number by the row itself: a damaged index leads to other
entries."""


class LoadedSession(msgspec.Struct, frozen=True):
    """A session as its journal has it. `problems` are sentences for a person, about damaged entries and about rounds and
    compactions that were cut off. `repairs` are the entries that close what was cut off; `state` includes them already."""

    state: SessionState
    problems: tuple[str, ...] = ()
    repairs: tuple[Record, ...] = ()


def load_state(
    database: Database, session: str, *, owned: bool = False, keys: around.RowsBySession | None = None
) -> LoadedSession:
    """Load a session by its full id. `owned` says that no other process has it open, so that a compaction without an end was cut
    off. Pass the same `keys` for many sessions, so that damaged tables are searched only once.

    Raises StorageError when the database cannot be read; a damaged entry loses that entry only.
    """
    records, problems = read_records(database, session, keys)
    state = fold(records)
    repairs, cut_off_problems = cut_off(database, session, state)
    if owned:
        endings = _endings(records)
        repairs += endings
        cut_off_problems += [f"compaction {end.result.id} was cut off: {end.result.detail}" for end in endings]
    state = fold(repairs, state)
    return LoadedSession(state, (*problems, *state.skipped, *cut_off_problems), tuple(repairs))


class JournalNews(msgspec.Struct, frozen=True):
    """The new entries of a journal: `records` up to entry number `last`, and the unfinished round `under_way` as far as it is
    stored."""

    records: tuple[Record, ...]
    last: int
    under_way: Partial | None


def read_news(database: Database, session: str, since: int = 0) -> JournalNews:
    """Read the entries of a session after number `since`, which any process may have written. Entries that cannot be read are
    left out. Raises StorageError."""
    rows = database.query("SELECT seq, body FROM journal WHERE session = ? AND seq > ? ORDER BY seq", (session, since))
    decoded = [entries.decode(seq, body, lambda: group_ids(database, session)) for seq, body in rows]
    partial_rows = database.query("SELECT body FROM partials WHERE session = ?", (session,))
    under_way = None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        under_way = entries.partials.decode(partial_rows[0][0]) if partial_rows else None
    records = tuple(record for record in decoded if not isinstance(record, entries.DamagedEntry))
    return JournalNews(records, rows[-1][0] if rows else since, under_way)


def read_records(
    database: Database, session: str, keys: around.RowsBySession | None = None
) -> tuple[list[Record], list[str]]:
    """The entries of a journal in order, as far as they can be read or pieced together, and sentences about the damage. A note
    stands for messages that are lost."""
    rows, problems = read_entries(database, session, keys)
    return [record for _, record in rows], problems


def read_entries(
    database: Database, session: str, keys: around.RowsBySession | None = None
) -> tuple[list[tuple[int, Record]], list[str]]:
    """`read_records` with the number of its entry before each record."""
    keys = keys or around.RowsBySession(database.query)
    ids: list[str] = []

    def groups() -> Sequence[str]:
        if not ids:
            ids.extend(group_ids(database, session))
        return ids

    numbered: list[tuple[int, Record]] = []
    damage: list[entries.DamagedEntry] = []
    lost: list[int] = []
    position, source = salvage.RecordPosition(), salvage.SalvageSource(database, session, keys)
    for seq, body in _bodies(database, session, keys):
        value = (
            entries.decode(seq, body, groups) if body is not None else entries.DamagedEntry(seq, "it cannot be read")
        )
        if not isinstance(value, entries.DamagedEntry):
            pieces: Sequence[Record] = [value]
        else:
            damage.append(value)
            pieces = source.piece_together(seq)
            if not pieces:
                lost.append(seq)
        for record in pieces:
            if isinstance(record, Sealed):
                numbered += [(lost[0], note) for note in position.gap(lost, record)]
                lost, position = [], position.after(record)
            numbered.append((seq, record))
    last_with_groups = _last_entry_with_groups(database, session)
    if last_with_groups is None or any(seq <= last_with_groups for seq in lost):
        numbered += [(lost[0], note) for note in position.gap(lost)]
    if damage:
        numbered = list(_without_lost_groups(numbered))
    return numbered, _damage_sentences(session, damage)


def _damage_sentences(session: str, damage: Sequence[entries.DamagedEntry]) -> list[str]:
    """A sentence for each run of successive entries with the same damage."""
    runs: list[tuple[int, int, str]] = []
    for seq, why in ((entry.seq, entry.why) for entry in damage):
        if runs and runs[-1][1:] == (seq - 1, why):
            runs[-1] = (runs[-1][0], seq, why)
        else:
            runs.append((seq, seq, why))
    return [
        f"session {session}: {f'entry {first} is' if first == last else f'entries {first} to {last} are'} damaged ({why})"
        for first, last, why in runs
    ]


def group_ids(database: Database, session: str) -> list[str]:
    """The ids of a session's groups by position, an empty text for an id that cannot be read."""
    try:
        rows = database.query("SELECT place, id FROM groups WHERE session = ? ORDER BY place", (session,))
    except StorageError:
        rows = around.keyed(database.query, "place, id", "groups", session)
    ids: list[str] = []
    for place, group in rows:
        ids.extend([""] * (place + 1 - len(ids)))
        ids[place] = group
    return ids


def _bodies(database: Database, session: str, keys: around.RowsBySession) -> list[tuple[int, bytes | None]]:
    """Number and body of every entry, in order: in one query, or around damage. The body is None where it cannot be read or is
    missing."""
    last = _last_entry_with_groups(database, session) or 0
    with suppress(StorageError):
        rows = database.query(_IN_ORDER, (session,))
        ids, numbers = [id for _, id, *_ in rows], [seq for seq, *_ in rows]
        index_agrees = all(seq == row_seq and owner == session for seq, _, owner, row_seq, _ in rows)
        if index_agrees and numbers == list(range(1, max(last, len(rows)) + 1)) and ids == sorted(ids):
            return [(seq, body) for seq, *_, body in rows]
    bodies: dict[int, bytes | None] = {}
    with suppress(StorageError):  # the covering index has the numbers even where the page of a row is lost
        rows = database.query("SELECT seq FROM journal WHERE session = ?", (session,))
        bodies = {seq: None for (seq,) in rows if isinstance(seq, int)}
    for id, seq, _ in keys.rows_of(session, "id, seq, at", "journal"):
        bodies[seq] = _body(database, id, session, seq) or bodies.get(seq)
    return [(seq, bodies.get(seq)) for seq in range(1, max([last, *bodies]) + 1)]


def _body(database: Database, id: int, session: str, seq: int) -> bytes | None:
    """The body of one entry, None where it cannot be read. Session and number are compared too: in a damaged file the row id
    alone may lead to another entry."""
    sql = "SELECT body FROM journal NOT INDEXED WHERE id = ? AND session = ? AND seq = ?"
    try:
        rows = database.query(sql, (id, session, seq))
    except StorageError:
        return None
    return rows[0][0] if rows and isinstance(rows[0][0], bytes) else None


def _last_entry_with_groups(database: Database, session: str) -> int | None:
    """The number of the newest entry that holds groups, 0 where there is none, by the table of groups; None where that cannot be
    read."""
    try:
        rows = database.query("SELECT entry FROM groups WHERE session = ? ORDER BY place DESC LIMIT 1", (session,))
    except StorageError:
        return None
    if not rows:
        return 0
    return rows[0][0] if isinstance(rows[0][0], int) else None


def _without_lost_groups(entries: Iterable[tuple[int, Record]]) -> Iterator[tuple[int, Record]]:
    """The entries, with lost groups removed from the changes that name them, so that such a change still counts; and without
    groups that were found twice, as happens where damage shows the same page in two places."""
    known: set[str] = set()
    for seq, record in entries:
        if isinstance(record, Sealed):
            new_groups = tuple(group for group in record.groups if group.id not in known)
            known.update(group.id for group in new_groups)
            if new_groups:
                yield seq, msgspec.structs.replace(record, groups=new_groups)
        elif isinstance(record, Changed):
            yield seq, msgspec.structs.replace(record, change=without_unknown(record.change, known))
        else:
            yield seq, record


def without_unknown(change: Change, known: set[str]) -> Change:
    """The change without the groups that are not among `known`."""
    replace = msgspec.structs.replace
    edits = [replace(edit, covers=tuple(g for g in edit.covers if g in known)) for edit in change.edits]
    return replace(
        change,
        edits=tuple(edit for edit in edits if edit.covers),
        pins=tuple(g for g in change.pins if g in known),
        adds=tuple(g for g in change.adds if g in known),
    )


def cut_off(database: Database, session: str, state: SessionState) -> tuple[list[Record], list[str]]:
    """The entries that close the round a kill left open, and a sentence about it; both empty where there is none."""
    try:
        rows = database.query("SELECT body FROM partials WHERE session = ?", (session,))
    except StorageError:
        rows = [row[1:] for row in around.rows(database.query, "session, body", "partials") if row[0] == session]
    if not rows:
        return [], []
    try:
        partial = entries.partials.decode(rows[0][0])
        group = seal(partial, state.ledger)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        return [], [f"session {session}: the round that was cut off is damaged and left out ({error})"]
    if group is None:
        return list(partial.noted), []
    return [*partial.noted, Sealed((group,))], [f"message {group.first.id} was cut off; what had arrived of it is kept"]


def seal(partial: Partial, ledger: Ledger) -> Group | None:
    """The group of a round that was cut off: a reply marked as interrupted, or a round whose open calls get a result that says
    so. None for an empty round."""
    reply = partial.assistant
    first_free = ledger.next_seq
    if reply.empty and not reply.reasoning:
        return None
    if reply.seq < first_free:  # the record may have given its number to another message
        reply = msgspec.structs.replace(reply, seq=first_free)
    if not reply.calls:
        return single("reply", msgspec.structs.replace(reply, interrupted=True), partial.turn)
    taken = {m.seq for g in ledger.groups for m in g.messages} | {reply.seq}
    results = tuple(r for r in partial.results if r.seq not in taken)
    next_seq = max([reply.seq, *(r.seq for r in results)]) + 1
    try:
        return close_round(reply, results, partial.turn, next_seq, INTERRUPTED)
    except UnpairedCall:
        return close_round(reply, (), partial.turn, next_seq, INTERRUPTED)


def _endings(records: Sequence[Record]) -> list[CompactionFinished]:
    """An entry that ends it as failed, for each compaction without an end."""
    return [
        CompactionFinished(CompactionRecord(p.id, p.reason, p.strategy, "failed", at=p.at, detail=CUT_OFF))
        for p in without_end(records).values()
    ]
