"""Groups whose journal entry is damaged, pieced together from the index: who said what, without calls or images.

Keeps their ids and places, so that what was built on them still stands.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message
from ctxchat.storage.database import Database

MARK = "[damaged on disk; its words as the index has them]"


def pieced_together(database: Database, session: str, entry: int) -> list[Sealed]:
    """The groups of one damaged entry as one entry, nothing where the index has none of them or cannot be read either."""
    try:
        rows = database.read(
            "SELECT g.place, g.id, g.kind, g.turn, m.seq, m.role, m.at, m.text FROM groups g "
            "JOIN messages m ON m.session = g.session AND m.place = g.place "
            "WHERE g.session = ? AND g.place IN (SELECT place FROM groups WHERE session = ? AND entry = ?) "
            "ORDER BY g.place, m.id",
            (session, session, entry),
        )
    except StorageError:
        return []
    groups = tuple(_group(list(found)) for _, found in groupby(rows, key=lambda row: row[0]))
    return [Sealed(groups)] if groups else []


def _group(rows: list[tuple[Any, ...]]) -> Group:
    _, id, kind, turn, seq, role, at, text = rows[0]
    if kind in {"system", "user", "reply"}:
        return Group(id, kind, (Message(seq, role, text, at=at),), turn)
    spoken = [f"[{row[5]}]\n{row[7]}" for row in rows]
    return Group(id, "note", (Message(seq, "user", "\n\n".join([MARK, *spoken]), at=at),), turn, "damaged")
