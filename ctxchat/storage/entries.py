"""Writes journal entries as rows, together with the rows that lists and searches read, and decodes entries again.

A compaction names every group it ever folded. These are stored as runs of positions, so that two hundred compactions over a
hundred thousand messages take kilobytes and not a hundred megabytes. This module does not know what the entries mean for a
session.
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
"""Entries gathered before they are written, so that an imported session is not held in memory as a whole."""

_MIN_PACKED_GROUPS = 32  # groups; fewer ids take no more space than their runs


class Packed(msgspec.Struct, frozen=True, tag="packed"):
    """A change as it is stored: groups are named by their positions in the session, `covers` for each edit and `folded` for the
    record; the change itself names none. `scale` is that of `Changed`."""

    change: Change
    covers: tuple[Runs, ...]
    folded: Runs = ()
    scale: float = 1.0


_encoder = msgspec.json.Encoder(enc_hook=list)  # the hook is for `GroupIds`
_decoder = msgspec.json.Decoder(Record | Packed)
partials = msgspec.json.Decoder(Partial)


class DamagedEntry(msgspec.Struct, frozen=True):
    """An entry that cannot be read, and why."""

    seq: int
    why: str


def encode(value: Record | Packed | Partial) -> bytes:
    """The JSON of an entry. Lone surrogates, which no database takes, become U+FFFD."""
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
    """Append entries to a session's journal and update everything derived from them, within the caller's transaction. `at` is the
    time, ISO 8601; `count` counts the tokens of a message."""
    writer = _Writer(connection, session, at, count)
    for record in records:
        writer.add_record(record)
    writer.write_rest()


class _Writer:
    """One append: gathers rows and writes them in a few statements."""

    def __init__(self, connection: sqlite3.Connection, session: str, at: str, count: Count) -> None:
        self._connection = connection
        self._session = session
        self._at = at
        self._count = count
        self._seq = self._number("SELECT max(seq) FROM journal WHERE session = ?")
        self._place = self._number("SELECT max(place) + 1 FROM groups WHERE session = ?")
        self._message = int(connection.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()[0])
        self._entries: list[tuple[object, ...]] = []
        self._groups: list[tuple[object, ...]] = []
        self._messages: list[tuple[object, ...]] = []
        self._counted = 0
        self._since_measured = (
            0  # tokens of messages since a server counted; complete replies, which it counts, left out
        )
        self._place_by_id: dict[str, int] | None = None
        self._titled = False  # the first user message names a session that has no title

    def add_record(self, record: Record) -> None:
        """Write one journal entry, with the rows for lists and searches that follow from it."""
        self._seq += 1
        stored: Record | Packed = record
        match record:
            case Sealed(groups=groups):
                for group in groups:
                    self._add_group(group)
            case Changed():
                stored = self._stored_change(record)
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
                self._add_head(record)
            case _:
                pass
        self._entries.append((self._session, self._seq, self._at, encode(stored)))
        if len(self._entries) >= _ENTRIES_AT_ONCE:
            self._flush()

    def write_rest(self) -> None:
        self._flush()
        self._add_since_measured()
        self._set("updated = ?, messages = messages + ?", self._at, self._counted)

    def _add_head(self, record: HeadSet) -> None:
        """Estimate the tokens in use where no server has counted the session yet: the head and all messages. Without it a session
        whose first turn was broken off would show none."""
        self._flush()
        self._add_since_measured()
        message_tokens = "(SELECT coalesce(sum(tokens), 0) FROM messages WHERE session = sessions.id)"
        tokens = record.tokens or compile(Ledger(), record.head, TokenCounter(self._count)).raw
        self._set(f"estimated = iif(used, estimated, 1), used = iif(used, used, ? + {message_tokens})", tokens)

    def _add_since_measured(self) -> None:
        if self._since_measured:
            self._set("estimated = iif(used, 1, estimated), used = iif(used, used + ?, 0)", self._since_measured)
        self._since_measured = 0

    def _add_group(self, group: Group) -> None:
        """Write the rows of a group and of its messages. The first user message gives the session its title."""
        self._groups.append((self._session, self._place, group.id, group.kind, group.turn, self._seq))
        if self._place_by_id is not None:
            self._place_by_id[group.id] = self._place
        tool_names = {call.id: call.name for message in group.messages for call in message.calls}
        for message in group.messages:
            self._add_message(message, tool_names)
        if group.kind == "user" and not self._titled:
            opening = " ".join(masked(whole_text((own_words(group.first) or group.first.text)[:400])).split())[:80]
            self._titled = bool(opening)
            self._set("title = iif(title = '', ?, title)", opening)
        self._place += 1

    def _add_message(self, message: Message, tool_names: Mapping[str, str]) -> None:
        """Write the row of a message for searches."""
        if message.synthetic:
            return
        self._message += 1
        self._counted += 1
        text = whole_text(index.searchable(message))
        tokens = self._count(text) + MESSAGE_OVERHEAD_TOKENS
        at = message.at or self._at
        names = [c.name for c in message.calls] or [message.name or tool_names.get(message.call_id, "")]
        tool = whole_text(" ".join(dict.fromkeys(names))) if message.calls or message.role == "tool" else ""
        row = (self._message, self._session, message.seq, self._place, message.role, at, tokens, text, tool)
        self._messages.append(row)
        if message.role != "assistant" or message.interrupted:
            self._since_measured += tokens

    def _stored_change(self, record: Changed) -> Record | Packed:
        """The change in the form to store it in. A compaction is listed in its tables as well."""
        self._flush()
        change = record.change
        covered = sum(len(edit.covers) for edit in change.edits)
        places = self._places() if covered else {}
        covers = tuple(_positions((g for g in edit.covers if not g.startswith(LOST)), places) for edit in change.edits)
        if None in covers:
            return record  # it names an unknown group: reading refuses and reports it
        covers = cast("tuple[Runs, ...]", covers)
        if change.kind == "compaction":
            self._list_compaction(change, covers)
        return _pack(record, covers, places) if covered >= _MIN_PACKED_GROUPS else record

    def _list_compaction(self, change: Change, covers: Sequence[Runs]) -> None:
        """Write the rows of a compaction for lists: its figures, and the groups it covers as runs of positions (`covers`)."""
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
        sql = "SELECT 1 FROM compactions WHERE session = ? AND id = ?"
        is_redo = self._connection.execute(sql, (self._session, change.id)).fetchone()
        marks = ", ".join("?" * len(row))
        self._connection.execute(f"INSERT OR REPLACE INTO compactions VALUES ({marks})", row)
        spans = [(self._session, change.id, start, start + size - 1) for edit in covers for start, size in pairs(edit)]
        self._connection.executemany("INSERT INTO covers VALUES (?, ?, ?, ?)", spans)
        if record and is_redo:
            self._add_since_measured()
            self._set("used = max(0, used - ?), estimated = 1", record.freed)
        elif record:
            self._since_measured = 0  # the compaction's own figure includes them
            self._set("used = ?, estimated = 1", record.stands)
        self._count_compactions()

    def _undo(self, change: str) -> None:
        """Mark a compaction as undone in the rows for lists."""
        self._flush()
        sql = "SELECT before - after FROM compactions WHERE session = ? AND id = ? AND NOT undone"
        freed = self._connection.execute(sql, (self._session, change)).fetchone()
        if freed:
            self._set("used = used + ?, estimated = 1", freed[0])
        self._connection.execute(
            "UPDATE compactions SET undone = 1 WHERE session = ? AND id = ?", (self._session, change)
        )
        self._count_compactions()

    def _count_compactions(self) -> None:
        self._set("compactions = (SELECT count(*) FROM compactions WHERE session = sessions.id AND NOT undone)")

    def _places(self) -> dict[str, int]:
        """The position of every group of the session, by group id; read from the database once."""
        if self._place_by_id is None:
            self._place_by_id = dict(
                self._connection.execute(
                    "SELECT id, place FROM groups WHERE session = ? ORDER BY place", (self._session,)
                ).fetchall()
            )
        return self._place_by_id

    def _flush(self) -> None:
        """Write the rows that were collected."""
        execute = self._connection.executemany
        execute("INSERT INTO journal (session, seq, at, body) VALUES (?, ?, ?, ?)", self._entries)
        execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)", self._groups)
        execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._messages)
        if self._messages:
            index.add_messages(self._connection, ((row[0], row[7], row[4], row[8]) for row in self._messages))  # type: ignore[misc]
        self._entries, self._groups, self._messages = [], [], []

    def _set(self, assignments: str, *values: object) -> None:
        self._connection.execute(f"UPDATE sessions SET {assignments} WHERE id = ?", (*values, self._session))

    def _number(self, sql: str) -> int:
        return int(self._connection.execute(sql, (self._session,)).fetchone()[0] or 0)


def _positions(groups: Iterable[str], places: Mapping[str, int]) -> Runs | None:
    """The positions of these groups as runs; None where a group has none."""
    positions = list(map(places.get, groups))
    return None if None in positions else runs(cast("list[int]", positions))


def _pack(record: Changed, covers: tuple[Runs, ...], places: Mapping[str, int]) -> Packed:
    """A change with its groups as runs of positions, as it is stored."""
    replace = msgspec.structs.replace
    change = replace(record.change, edits=tuple(replace(edit, covers=()) for edit in record.change.edits))
    folded = _positions(change.record.folded, places) if change.record else None
    if change.record and folded:
        change = replace(change, record=replace(change.record, folded=()))
    return Packed(change, covers, folded or (), record.scale)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def decode(seq: int, body: bytes, groups: Callable[[], Sequence[str]]) -> Record | DamagedEntry:
    """Decode entry number `seq`. `groups` returns the ids of the session's groups by position, and is called only for packed
    changes."""
    try:
        value = _decoder.decode(body)
        return _unpack(value, groups()) if isinstance(value, Packed) else value
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, ValueError) as error:
        return DamagedEntry(seq, str(error))


def _unpack(packed: Packed, groups: Sequence[str]) -> Changed:
    """The change that `_pack` made this of; `groups` are the ids of the session's groups by position."""
    replace = msgspec.structs.replace
    change = packed.change
    edits = tuple(
        replace(edit, covers=_expand(covered, groups))
        for edit, covered in zip(change.edits, packed.covers, strict=True)
    )
    record = change.record
    if record and packed.folded:
        record = replace(record, folded=_expand(packed.folded, groups))
    return Changed(replace(change, edits=edits, record=record), packed.scale)


def _expand(positions: Runs, groups: Sequence[str]) -> Sequence[str]:
    """The group ids at these positions, without those that are unknown (empty in `groups`, or beyond its end)."""
    in_range = all(0 <= start < start + size <= len(groups) for start, size in pairs(positions))
    if in_range and all(ids := GroupIds(groups, positions)):
        return ids
    return tuple(filter(None, chain.from_iterable(groups[start : start + size] for start, size in pairs(positions))))
