"""Restores groups whose journal entry is damaged from the tables kept beside the journal: roles and texts, no calls or images.

Ids and positions of the groups are kept, so that compactions of them stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message
from ctxchat.storage import around
from ctxchat.storage.database import Database

MARK = "[damaged on disk; its words as the index has them]"
LOST = "lost-"
"""Prefix of the id of a note in place of groups that are lost completely."""


class SalvageSource:
    """A session's groups and messages as the tables beside the journal have them, restored one entry at a time. Where an index is
    damaged, the tables are read around the damage, once."""

    def __init__(self, database: Database, session: str, keys: around.RowsBySession) -> None:
        self._database, self._session, self._keys = database, session, keys
        self._by_place: dict[int, list[tuple[Any, ...]]] | None = None
        self._by_entry: dict[int, list[tuple[Any, ...]]] | None = None

    def piece_together(self, entry: int) -> list[Sealed]:
        """An entry for each group of a damaged entry whose texts are known; empty where there are none."""
        groups = self._groups(entry)
        messages = self._group_messages([place for place, *_ in groups])
        return [
            Sealed((_group([(*group, *message) for message in messages[group[0]]]),))
            for group in groups
            if messages.get(group[0])
        ]

    def _groups(self, entry: int) -> Sequence[tuple[Any, ...]]:
        """Position, id, kind and turn of the groups of an entry."""
        if self._by_entry is None:
            sql = "SELECT place, id, kind, turn FROM groups WHERE session = ? AND entry = ? ORDER BY place"
            try:
                return self._database.query(sql, (self._session, entry))
            except StorageError:
                self._by_entry = {}
                columns = "entry, place, id, kind, turn"
                for entry_of_group, *row in around.keyed(self._database.query, columns, "groups", self._session):
                    self._by_entry.setdefault(entry_of_group, []).append(tuple(row))
        return self._by_entry.get(entry, [])

    def _group_messages(self, places: Sequence[int]) -> dict[int, list[tuple[Any, ...]]]:
        """Seq, role, time and text of the messages of these groups, by the position of the group."""
        by_place: dict[int, list[tuple[Any, ...]]] = {}
        sql = "SELECT seq, role, at, text FROM messages WHERE session = ? AND place = ? ORDER BY id"
        for place in places:
            if self._by_place is None:
                try:
                    rows = self._database.query(sql, (self._session, place))
                except StorageError:
                    rows = self._group_by_place().get(place, [])
            else:
                rows = self._by_place.get(place, [])
            by_place[place] = [
                row for row in rows if isinstance(row[3], str)
            ]  # else damage showed a row of another table
        return by_place

    def _group_by_place(self) -> dict[int, list[tuple[Any, ...]]]:
        """The readable messages by the position of their group."""
        self._by_place = {}
        for place, *row in readable_messages(self._database.query, self._keys, self._session):
            self._by_place.setdefault(place, []).append(tuple(row))
        return self._by_place


def readable_messages(
    read: around.Read, keys: around.RowsBySession, session: str
) -> Iterator[tuple[int, int, str, str, str]]:
    """Position of its group, seq, role, time and text of each message of a session that can be read around damage."""
    for id, *columns in keys.rows_of(session, "id, place, seq, role, at", "messages"):
        with suppress(StorageError):
            for (text,) in read("SELECT text FROM messages NOT INDEXED WHERE id = ?", (id,)):
                yield (*columns, text)


class RecordPosition(msgspec.Struct, frozen=True):
    """How far a record was read: the number of the last message, and the turn."""

    message: int = 0
    turn: int = 0

    def after(self, record: Sealed) -> RecordPosition:
        """The position after these groups."""
        numbers = [m.seq for group in record.groups for m in group.messages]
        return RecordPosition(max([self.message, *numbers]), max([self.turn, *(g.turn for g in record.groups)]))

    def gap(self, lost: Sequence[int], before: Sealed | None = None) -> list[Sealed]:
        """A note in place of the messages that were lost with the entries `lost`; empty where none were. `before` has the groups
        that follow; None at the end of the readable record, where the number of lost messages is unknown."""
        if not lost:
            return []
        entries = f"entry {lost[0]}" if len(lost) == 1 else f"entries {lost[0]} to {lost[-1]}"
        if before is None:
            what = f"what was said last, in {entries} of the record, cannot be read any more"
        else:
            last = min(m.seq for group in before.groups for m in group.messages) - 1
            if last <= self.message:
                return []
            first = self.message + 1
            messages = f"m{first}" if last == first else f"m{first} to m{last}"
            what = f"{messages}, {entries} of the record, cannot be read any more"
        text = f"[damaged on disk: {what}]"
        note = Message(self.message + 1, "user", text)
        return [Sealed((Group(f"{LOST}{lost[0]}", "note", (note,), self.turn, "damaged"),))]


def _group(rows: list[tuple[Any, ...]]) -> Group:
    """A group from rows of a group's and a message's columns: a round, whose calls are lost, becomes a note."""
    _, id, kind, turn, seq, role, at, text = rows[0]
    if kind in {"system", "user", "reply"}:
        return Group(id, kind, (Message(seq, role, text, at=at),), turn)
    texts = [f"[{row[5]}]\n{row[7]}" for row in rows]
    return Group(id, "note", (Message(seq, "user", "\n\n".join([MARK, *texts]), at=at),), turn, "damaged")
