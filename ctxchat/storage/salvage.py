"""Groups whose journal entry is damaged, pieced together from the index: who said what, without calls or images.

Keeps their ids and places, so that what was built on them still stands.
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
"""Before the id of a note that stands for groups of which nothing is left."""


class Remains:
    """What is known of a session's groups beside its journal: `piece_together` asks for one entry at a time. Where an index is
    damaged the tables are read around it, once."""

    def __init__(self, database: Database, session: str, keys: around.BySession) -> None:
        self._database, self._session, self._keys = database, session, keys
        self._by_place: dict[int, list[tuple[Any, ...]]] | None = None
        self._by_entry: dict[int, list[tuple[Any, ...]]] | None = None

    def piece_together(self, entry: int) -> list[Sealed]:
        """The groups of one damaged entry whose words are known, an entry each; nothing where there are none."""
        known = self._groups(entry)
        said = self._group_messages([place for place, *_ in known])
        return [Sealed((_group([(*one, *row) for row in said[one[0]]]),)) for one in known if said.get(one[0])]

    def _groups(self, entry: int) -> Sequence[tuple[Any, ...]]:
        if self._by_entry is None:
            sql = "SELECT place, id, kind, turn FROM groups WHERE session = ? AND entry = ? ORDER BY place"
            try:
                return self._database.query(sql, (self._session, entry))
            except StorageError:
                self._by_entry = {}
                columns = "entry, place, id, kind, turn"
                for of, *row in around.keyed(self._database.query, columns, "groups", self._session):
                    self._by_entry.setdefault(of, []).append(tuple(row))
        return self._by_entry.get(entry, [])

    def _group_messages(self, places: Sequence[int]) -> dict[int, list[tuple[Any, ...]]]:
        """The messages of these groups: seq, role, time and text."""
        found: dict[int, list[tuple[Any, ...]]] = {}
        sql = "SELECT seq, role, at, text FROM messages WHERE session = ? AND place = ? ORDER BY id"
        for place in places:
            if self._by_place is None:
                try:
                    rows = self._database.query(sql, (self._session, place))
                except StorageError:
                    rows = self._group_by_place().get(place, [])
            else:
                rows = self._by_place.get(place, [])
            found[place] = [row for row in rows if isinstance(row[3], str)]  # else it is a row of another table
        return found

    def _group_by_place(self) -> dict[int, list[tuple[Any, ...]]]:
        self._by_place = {}
        for place, *row in spoken(self._database.query, self._keys, self._session):
            self._by_place.setdefault(place, []).append(tuple(row))
        return self._by_place


def spoken(read: around.Read, keys: around.BySession, session: str) -> Iterator[tuple[int, int, str, str, str]]:
    """Place, seq, role, time and text of each of a session's messages that can be found around damage."""
    for id, *about in keys.rows_of(session, "id, place, seq, role, at", "messages"):
        with suppress(StorageError):
            for (text,) in read("SELECT text FROM messages NOT INDEXED WHERE id = ?", (id,)):
                yield (*about, text)


class RecordPlace(msgspec.Struct, frozen=True):
    """Where in the record the reading is: the last message and the turn so far."""

    message: int = 0
    turn: int = 0

    def place_after(self, record: Sealed) -> RecordPlace:
        """The place behind these groups."""
        numbers = [m.seq for group in record.groups for m in group.messages]
        return RecordPlace(max([self.message, *numbers]), max([self.turn, *(g.turn for g in record.groups)]))

    def gap(self, lost: Sequence[int], before: Sealed | None = None) -> list[Sealed]:
        """A note in place of the messages that went with these entries; nothing where none did. `before` are the groups that come
        next, None at the end of what can be read, where nobody knows how much there was."""
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
            gone = f"m{first}" if last == first else f"m{first} to m{last}"
            what = f"{gone}, {entries} of the record, cannot be read any more"
        text = f"[damaged on disk: {what}]"
        return [
            Sealed(
                (Group(f"{LOST}{lost[0]}", "note", (Message(self.message + 1, "user", text),), self.turn, "damaged"),)
            )
        ]


def _group(rows: list[tuple[Any, ...]]) -> Group:
    _, id, kind, turn, seq, role, at, text = rows[0]
    if kind in {"system", "user", "reply"}:
        return Group(id, kind, (Message(seq, role, text, at=at),), turn)
    spoken = [f"[{row[5]}]\n{row[7]}" for row in rows]
    return Group(id, "note", (Message(seq, "user", "\n\n".join([MARK, *spoken]), at=at),), turn, "damaged")
