"""The end of a stored session, to tell it from others before it is opened. Reads only; knows no journal."""

from __future__ import annotations

import msgspec

from ctxchat.core.messages import Role
from ctxchat.storage.database import Database

_CHARACTERS = 600


class LastSaid(msgspec.Struct, frozen=True):
    """The beginning of what was said last, and when."""

    role: Role
    text: str
    at: str


def glance(database: Database, session: str, many: int = 6) -> list[LastSaid]:
    """What you and the model said last in a session (a full id), in its order, calls left out; empty for one that is not
    there. Raises StorageError."""
    found = database.read(
        f"SELECT role, substr(text, 1, {_CHARACTERS}), at FROM messages"
        " WHERE session = ? AND role IN ('user', 'assistant') AND tool = '' ORDER BY seq DESC LIMIT ?",
        (session, many),
    )
    return [LastSaid(*row) for row in reversed(found)]
