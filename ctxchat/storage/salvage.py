"""Groups whose journal entry is damaged, pieced together from the index: who said what, without calls or images.

Keeps their ids and places, so that what was built on them still stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

import msgspec

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message
from ctxchat.storage.database import Database

MARK = "[damaged on disk; its words as the index has them]"
LOST = "lost-"
"""Before the id of a note that stands for groups of which nothing is left."""


def pieced_together(database: Database, session: str, entry: int) -> list[Sealed]:
    """The groups of one damaged entry as one entry, nothing where the index has none of them or cannot be read either."""
    where, values = "WHERE g.session = ? AND g.entry = ? ORDER BY g.place", (session, entry)
    try:
        known = database.read(f"SELECT g.place, g.id, g.kind, g.turn FROM groups g {where}", values)
    except StorageError:
        return []
    said: dict[int, list[tuple[Any, ...]]] = {}
    with suppress(StorageError):
        rows = database.read(
            "SELECT m.place, m.seq, m.role, m.at, m.text FROM groups g "
            f"JOIN messages m ON m.session = g.session AND m.place = g.place {where}, m.id",
            values,
        )
        rows = [row for row in rows if isinstance(row[4], str)]  # else it is a row of another table
        said = {place: list(found) for place, found in groupby(rows, key=lambda row: row[0])}
    return [Sealed((_group([(*one, *row[1:]) for row in said[one[0]]]),)) for one in known if one[0] in said]


class Place(msgspec.Struct, frozen=True):
    """Where in the record the reading is: the last message and the turn so far."""

    message: int = 0
    turn: int = 0

    def after(self, record: Sealed) -> Place:
        """The place behind these groups."""
        numbers = [m.seq for group in record.groups for m in group.messages]
        return Place(max([self.message, *numbers]), max([self.turn, *(g.turn for g in record.groups)]))

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
