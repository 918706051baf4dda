"""A session read back: the fold of its journal, with what a kill left open closed, and what cannot be read named.

Reads only; what it would mend is handed back as entries for whoever holds the session to write.
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
"""What the index says of an entry, and what the entry says itself: an index out of place leads to others' entries."""


class LoadedSession(msgspec.Struct, frozen=True):
    """A session as its journal says. `problems` are sentences for a person: entries that are damaged, rounds and
    compactions that were
    cut off. `repairs` are the entries that close what was cut off; `state` has them taken in already."""

    state: SessionState
    problems: tuple[str, ...] = ()
    repairs: tuple[Record, ...] = ()


def load_state(
    database: Database, session: str, *, owned: bool = False, keys: around.BySession | None = None
) -> LoadedSession:
    """The session `session` (a full id). `owned` says that nobody else has it open, so that a compaction without an end has
    ended; `keys` are for whoever looks at many sessions.

    Raises StorageError when the database cannot be read; a damaged entry costs that entry only.
    """
    records, problems = read_records(database, session, keys)
    state = fold(records)
    repairs, closed = cut_off(database, session, state)
    if owned:
        ended = _ended(records)
        repairs += ended
        closed += [f"compaction {pass_.result.id} was cut off: {pass_.result.detail}" for pass_ in ended]
    state = fold(repairs, state)
    return LoadedSession(state, (*problems, *state.skipped, *closed), tuple(repairs))


class JournalNews(msgspec.Struct, frozen=True):
    """What came to a journal: `records` up to entry number `last`, and the round that is `under_way`, as far as it was written
    down."""

    records: tuple[Record, ...]
    last: int
    under_way: Partial | None


def read_news(database: Database, session: str, since: int = 0) -> JournalNews:
    """What came to a session's journal behind entry `since`, whoever writes it; entries that cannot be read are left out. Raises
    StorageError."""
    rows = database.query("SELECT seq, body FROM journal WHERE session = ? AND seq > ? ORDER BY seq", (session, since))
    found = [entries.decode(seq, body, lambda: group_ids(database, session)) for seq, body in rows]
    kept = database.query("SELECT body FROM partials WHERE session = ?", (session,))
    under_way = None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        under_way = entries.partials.decode(kept[0][0]) if kept else None
    records = tuple(record for record in found if not isinstance(record, entries.DamagedEntry))
    return JournalNews(records, rows[-1][0] if rows else since, under_way)


def read_records(
    database: Database, session: str, keys: around.BySession | None = None
) -> tuple[list[Record], list[str]]:
    """Every entry of a journal that can be read or pieced together, in order, and a sentence for what was damaged. Where messages
    are gone for good a note stands in their place."""
    rows, problems = read_entries(database, session, keys)
    return [record for _, record in rows], problems


def read_entries(
    database: Database, session: str, keys: around.BySession | None = None
) -> tuple[list[tuple[int, Record]], list[str]]:
    """The same with the number of the entry beside each record."""
    keys = keys or around.BySession(database.query)
    ids: list[str] = []

    def groups() -> Sequence[str]:
        if not ids:
            ids.extend(group_ids(database, session))
        return ids

    found: list[tuple[int, Record]] = []
    damage: list[entries.DamagedEntry] = []
    lost: list[int] = []
    place, words = salvage.RecordPlace(), salvage.Remains(database, session, keys)
    for seq, body in _bodies(database, session, keys):
        value = (
            entries.decode(seq, body, groups) if body is not None else entries.DamagedEntry(seq, "it cannot be read")
        )
        if not isinstance(value, entries.DamagedEntry):
            pieces: Sequence[Record] = [value]
        else:
            damage.append(value)
            pieces = words.piece_together(seq)
            if not pieces:
                lost.append(seq)
        for record in pieces:
            if isinstance(record, Sealed):
                found += [(lost[0], mark) for mark in place.gap(lost, record)]
                lost, place = [], place.place_after(record)
            found.append((seq, record))
    spoken = _last(database, session)
    if spoken is None or any(seq <= spoken for seq in lost):
        found += [(lost[0], mark) for mark in place.gap(lost)]
    if damage:
        found = list(_pruned(found))
    return found, _damage_sentences(session, damage)


def _damage_sentences(session: str, damage: Sequence[entries.DamagedEntry]) -> list[str]:
    """A sentence for each run of entries that are damaged in the same way."""
    runs: list[tuple[int, int, str]] = []
    for seq, why in ((one.seq, one.why) for one in damage):
        if runs and runs[-1][1:] == (seq - 1, why):
            runs[-1] = (runs[-1][0], seq, why)
        else:
            runs.append((seq, seq, why))
    return [
        f"session {session}: {f'entry {first} is' if first == last else f'entries {first} to {last} are'} damaged ({why})"
        for first, last, why in runs
    ]


def group_ids(database: Database, session: str) -> list[str]:
    """The ids of a session's groups by place, empty where one is not known."""
    try:
        rows = database.query("SELECT place, id FROM groups WHERE session = ? ORDER BY place", (session,))
    except StorageError:
        rows = around.keyed(database.query, "place, id", "groups", session)
    ids: list[str] = []
    for place, group in rows:
        ids.extend([""] * (place + 1 - len(ids)))
        ids[place] = group
    return ids


def _bodies(database: Database, session: str, keys: around.BySession) -> list[tuple[int, bytes | None]]:
    """Every entry from the first on: at one stroke, or around damage. None for one that cannot be read, or is not there."""
    last = _last(database, session) or 0
    with suppress(StorageError):
        rows = database.query(_IN_ORDER, (session,))
        ids, numbers = [id for _, id, *_ in rows], [seq for seq, *_ in rows]
        theirs = all(seq == own and owner == session for seq, _, owner, own, _ in rows)
        if theirs and numbers == list(range(1, max(last, len(rows)) + 1)) and ids == sorted(ids):
            return [(seq, body) for seq, *_, body in rows]
    bodies: dict[int, bytes | None] = {}
    with suppress(StorageError):  # the covering index has the numbers even where a row's own page is gone
        found = database.query("SELECT seq FROM journal WHERE session = ?", (session,))
        bodies = {seq: None for (seq,) in found if isinstance(seq, int)}
    for id, seq, _ in keys.rows_of(session, "id, seq, at", "journal"):
        bodies[seq] = _body(database, id, session, seq) or bodies.get(seq)
    return [(seq, bodies.get(seq)) for seq in range(1, max([last, *bodies]) + 1)]


def _body(database: Database, id: int, session: str, seq: int) -> bytes | None:
    """Of this very entry: by its id alone the body of another could be found, where pages are out of place."""
    sql = "SELECT body FROM journal NOT INDEXED WHERE id = ? AND session = ? AND seq = ?"
    try:
        found = database.query(sql, (id, session, seq))
    except StorageError:
        return None
    return found[0][0] if found and isinstance(found[0][0], bytes) else None


def _last(database: Database, session: str) -> int | None:
    """The newest entry that holds groups, by what is kept beside the journal; None where that cannot be told."""
    try:
        found = database.query("SELECT entry FROM groups WHERE session = ? ORDER BY place DESC LIMIT 1", (session,))
    except StorageError:
        return None
    if not found:
        return 0
    return found[0][0] if isinstance(found[0][0], int) else None


def _pruned(entries: Iterable[tuple[int, Record]]) -> Iterator[tuple[int, Record]]:
    """The entries with groups that were lost taken out of the changes that name them, so that a lost group costs no
    more than itself; and none that was found twice, where damage leads to one place by two ways."""
    known: set[str] = set()
    for seq, record in entries:
        if isinstance(record, Sealed):
            fresh = tuple(group for group in record.groups if group.id not in known)
            known.update(group.id for group in fresh)
            if fresh:
                yield seq, msgspec.structs.replace(record, groups=fresh)
        elif isinstance(record, Changed):
            yield seq, msgspec.structs.replace(record, change=without_unknown(record.change, known))
        else:
            yield seq, record


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


def _ended(records: Sequence[Record]) -> list[CompactionFinished]:
    """An end for each compaction that has none."""
    return [
        CompactionFinished(CompactionRecord(p.id, p.reason, p.strategy, "failed", at=p.at, detail=CUT_OFF))
        for p in without_end(records).values()
    ]
