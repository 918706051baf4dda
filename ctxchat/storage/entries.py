"""Journal entries as rows: written with everything that lists and searches read, read back one by one.

A compaction names every group it ever folded. Kept as runs of places, two hundred compactions over a hundred thousand
messages cost
kilobytes and not a hundred megabytes. Knows nothing of what the entries mean for a session.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import cast

import msgspec

from ctxchat.core.group_ids import GroupIds, Runs, pairs, runs
from ctxchat.core.journal import Changed, HeadSet, Measured, ModelChosen, Named, Partial, Record, Sealed, Undone
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message, own_words
from ctxchat.core.sanitize import whole_text
from ctxchat.core.secrets import masked
from ctxchat.core.tokens import MESSAGE_OVERHEAD_TOKENS, Count, TokenCounter
from ctxchat.core.view import compile
from ctxchat.storage import index
from ctxchat.storage.salvage import LOST

_ENTRIES_AT_ONCE = 400
"""Entries gathered before they are written: an imported session is not held whole."""

_MIN_PACKED_GROUPS = 32  # groups; below that the ids themselves are as short


class Packed(msgspec.Struct, frozen=True, tag="packed"):
    """A change in force whose groups are named by place: `covers` for each edit, `folded` for its record."""

    change: Change
    covers: tuple[Runs, ...]
    folded: Runs = ()
    scale: float = 1.0


_encoder = msgspec.json.Encoder(enc_hook=list)  # `GroupIds`
_rows = msgspec.json.Decoder(Record | Packed)
partials = msgspec.json.Decoder(Partial)


class DamagedEntry(msgspec.Struct, frozen=True):
    """An entry that cannot be read, and why."""

    seq: int
    why: str


def encode(value: Record | Packed | Partial) -> bytes:
    """Its JSON. Halves of surrogate pairs, which no database takes, become U+FFFD."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return whole_text(json.dumps(msgspec.to_builtins(value, enc_hook=list), ensure_ascii=False)).encode()


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def append(
    connection: sqlite3.Connection,
    session: str,
    records: Iterable[Record],
    at: str,
    count: Count,
) -> None:
    """Write entries at the end of a session's journal, with all that is derived from them, within the caller's
    transaction."""
    writer = _Writer(connection, session, at, count)
    for record in records:
        writer.add_record(record)
    writer.write_rest()


class _Writer:
    """One append under way: rows gathered, written in a few strokes."""

    def __init__(self, connection: sqlite3.Connection, session: str, at: str, count: Count) -> None:
        self._connection = connection
        self._session = session
        self._at = at
        self._count = count
        self._seq = self._last("SELECT max(seq) FROM journal WHERE session = ?")
        self._place = self._last("SELECT max(place) + 1 FROM groups WHERE session = ?")
        self._message = int(connection.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()[0])
        self._entries: list[tuple[object, ...]] = []
        self._groups: list[tuple[object, ...]] = []
        self._messages: list[tuple[object, ...]] = []
        self._counted = 0
        self._since_measured = 0  # tokens, but of whole replies: their server counts them, with all before
        self._known: dict[str, int] | None = None
        self._titled = False  # the first user message names a session that has no title

    def add_record(self, record: Record) -> None:
        self._seq += 1
        stored: Record | Packed = record
        match record:
            case Sealed(groups=groups):
                for group in groups:
                    self._take_group(group)
            case Changed():
                stored = self._take_change(record)
            case Undone(change=change):
                self._undo(change)
            case Measured(used=used, model=model):
                self._since_measured = 0
                self._set("used = ?, estimated = 0, model = iif(model = '', ?, model)", used, whole_text(model))
            case Named(title=title):
                self._set("title = ?", whole_text(title))
            case ModelChosen(model=model):
                self._set("model = ?", whole_text(model))
            case HeadSet():
                self._take_head(record)
            case _:
                pass
        self._entries.append((self._session, self._seq, self._at, encode(stored)))
        if len(self._entries) >= _ENTRIES_AT_ONCE:
            self._flush()

    def write_rest(self) -> None:
        self._flush()
        self._add_since_measured()
        self._set("updated = ?, messages = messages + ?", self._at, self._counted)

    def _take_head(self, record: HeadSet) -> None:
        """What a session that no server has counted yet holds: this and its messages. Its first turn may be broken off."""
        self._flush()
        self._add_since_measured()
        said = "(SELECT coalesce(sum(tokens), 0) FROM messages WHERE session = sessions.id)"
        tokens = record.tokens or compile(Ledger(), record.head, TokenCounter(self._count)).raw
        self._set(f"estimated = iif(used, estimated, 1), used = iif(used, used, ? + {said})", tokens)

    def _add_since_measured(self) -> None:
        if self._since_measured:
            self._set("estimated = iif(used, 1, estimated), used = iif(used, used + ?, 0)", self._since_measured)
        self._since_measured = 0

    def _take_group(self, group: Group) -> None:
        self._groups.append((self._session, self._place, group.id, group.kind, group.turn, self._seq))
        if self._known is not None:
            self._known[group.id] = self._place
        called = {call.id: call.name for message in group.messages for call in message.calls}
        for message in group.messages:
            self._take_message(message, called)
        if group.kind == "user" and not self._titled:
            opening = " ".join(masked(whole_text((own_words(group.first) or group.first.text)[:400])).split())[:80]
            self._titled = bool(opening)
            self._set("title = iif(title = '', ?, title)", opening)
        self._place += 1

    def _take_message(self, message: Message, called: Mapping[str, str]) -> None:
        if message.synthetic:
            return
        self._message += 1
        self._counted += 1
        text = whole_text(index.searchable(message))
        tokens = self._count(text) + MESSAGE_OVERHEAD_TOKENS
        at = message.at or self._at
        names = [c.name for c in message.calls] or [message.name or called.get(message.call_id, "")]
        tool = whole_text(" ".join(dict.fromkeys(names))) if message.calls or message.role == "tool" else ""
        row = (self._message, self._session, message.seq, self._place, message.role, at, tokens, text, tool)
        self._messages.append(row)
        if message.role != "assistant" or message.interrupted:
            self._since_measured += tokens

    def _take_change(self, record: Changed) -> Record | Packed:
        self._flush()
        change = record.change
        covered = sum(len(edit.covers) for edit in change.edits)
        places = self._places() if covered else {}
        covers = tuple(_placed((g for g in edit.covers if not g.startswith(LOST)), places) for edit in change.edits)
        if None in covers:
            return record  # refused when it is read, and reported then
        covers = cast("tuple[Runs, ...]", covers)
        if change.kind == "compaction":
            self._list_compaction(change, covers)
        return _pack(record, covers, places) if covered >= _MIN_PACKED_GROUPS else record

    def _list_compaction(self, change: Change, covers: Sequence[Runs]) -> None:
        record = change.record
        row = (
            self._session,
            change.id,
            self._seq,
            change.at or self._at,
            record.reason if record else "",
            record.strategy if record else "",
            record.model if record else "",
            record.before.used if record else 0,
            record.stands if record else 0,
            record.folded_messages if record else 0,
            record.seconds if record else 0.0,
            record.cost_usd if record else 0.0,
            0,
            record.back.messages if record else 0,
        )
        known = "SELECT 1 FROM compactions WHERE session = ? AND id = ?"
        again = self._connection.execute(known, (self._session, change.id)).fetchone()  # what was undone is redone
        marks = ", ".join("?" * len(row))
        self._connection.execute(f"INSERT OR REPLACE INTO compactions VALUES ({marks})", row)
        spans = [(self._session, change.id, first, first + many - 1) for edit in covers for first, many in pairs(edit)]
        self._connection.executemany("INSERT INTO covers VALUES (?, ?, ?, ?)", spans)
        if record and again:
            self._add_since_measured()
            self._set("used = max(0, used - ?), estimated = 1", record.freed)
        elif record:
            self._since_measured = 0  # it was measured behind them
            self._set("used = ?, estimated = 1", record.stands)
        self._count_compactions()

    def _undo(self, change: str) -> None:
        self._flush()
        of = "FROM compactions WHERE session = ? AND id = ? AND NOT undone"
        freed = self._connection.execute(f"SELECT before - after {of}", (self._session, change)).fetchone()
        if freed:
            self._set("used = used + ?, estimated = 1", freed[0])
        self._connection.execute(
            "UPDATE compactions SET undone = 1 WHERE session = ? AND id = ?", (self._session, change)
        )
        self._count_compactions()

    def _count_compactions(self) -> None:
        self._set("compactions = (SELECT count(*) FROM compactions WHERE session = sessions.id AND NOT undone)")

    def _places(self) -> dict[str, int]:
        """The place of every group by its id, asked for once."""
        if self._known is None:
            self._known = dict(
                self._connection.execute(
                    "SELECT id, place FROM groups WHERE session = ? ORDER BY place", (self._session,)
                ).fetchall()
            )
        return self._known

    def _flush(self) -> None:
        execute = self._connection.executemany
        execute("INSERT INTO journal (session, seq, at, body) VALUES (?, ?, ?, ?)", self._entries)
        execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)", self._groups)
        execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._messages)
        if self._messages:
            index.add_messages(self._connection, ((row[0], row[7], row[4], row[8]) for row in self._messages))  # type: ignore[misc]
        self._entries, self._groups, self._messages = [], [], []

    def _set(self, what: str, *values: object) -> None:
        self._connection.execute(f"UPDATE sessions SET {what} WHERE id = ?", (*values, self._session))

    def _last(self, sql: str) -> int:
        return int(self._connection.execute(sql, (self._session,)).fetchone()[0] or 0)


def _placed(groups: Iterable[str], places: Mapping[str, int]) -> Runs | None:
    """Groups as runs, None where one is not in the record."""
    found = list(map(places.get, groups))
    return None if None in found else runs(cast("list[int]", found))


def _pack(record: Changed, covers: tuple[Runs, ...], places: Mapping[str, int]) -> Packed:
    replace = msgspec.structs.replace
    bare = replace(record.change, edits=tuple(replace(edit, covers=()) for edit in record.change.edits))
    folded = _placed(bare.record.folded, places) if bare.record else None
    if bare.record and folded:
        bare = replace(bare, record=replace(bare.record, folded=()))
    return Packed(bare, covers, folded or (), record.scale)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def decode(seq: int, body: bytes, groups: Callable[[], Sequence[str]]) -> Record | DamagedEntry:
    """One entry. `groups` gives the ids of the session's groups by place, asked for only where they are needed."""
    try:
        value = _rows.decode(body)
        return _unpack(value, groups()) if isinstance(value, Packed) else value
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, ValueError) as error:
        return DamagedEntry(seq, str(error))


def _unpack(packed: Packed, groups: Sequence[str]) -> Changed:
    replace = msgspec.structs.replace
    change = packed.change
    edits = tuple(
        replace(edit, covers=_expand(flat, groups)) for edit, flat in zip(change.edits, packed.covers, strict=True)
    )
    record = change.record
    if record and packed.folded:
        record = replace(record, folded=_expand(packed.folded, groups))
    return Changed(replace(change, edits=edits, record=record), packed.scale)


def _expand(flat: Runs, groups: Sequence[str]) -> Sequence[str]:
    """The ids at these places, but for those that are not known."""
    if all(0 <= first < first + many <= len(groups) for first, many in pairs(flat)) and all(
        ids := GroupIds(groups, flat)
    ):
        return ids
    return tuple(filter(None, chain.from_iterable(groups[first : first + many] for first, many in pairs(flat))))
