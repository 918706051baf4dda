"""The doors beside a session, for screens: lists of sessions and models, and none that is real."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ctxchat.models.discovery import FirstLook, FoundModel
from ctxchat.storage.glance import LastSaid
from ctxchat.storage.sessions import SessionRow
from tests.tui.desk import Desk
from tests.tui.harbour import at, state

ROW = SessionRow("s1", "harbour-logger", at(0), at(90), 48, "claude-sonnet-4-5", 18_400, 2, "")


class Doors:
    """Services over a few stored sessions and models, held in memory."""

    sandboxed = True
    notices: Sequence[str] = ()

    def __init__(self, workspace: Path, sessions: Sequence[SessionRow] = (), models: Sequence[FoundModel] = ()) -> None:
        self.workspace = workspace
        self.rows = list(sessions)
        self.model_rows = list(models)
        self.desks: dict[str, Desk] = {}
        self.glanced: list[str] = []

    def adopt(self, loaded: object) -> None:
        return None

    async def open(self, session_id: str = "") -> Desk:
        return self.desks.setdefault(session_id, Desk(state(2, passes=0)))

    async def sessions(self) -> Sequence[SessionRow]:
        titled = {i: d.state.title for i, d in self.desks.items()}
        return [msgspec.structs.replace(r, title=titled.get(r.id, r.title)) for r in self.rows]

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        self.glanced.append(session_id)
        return [
            LastSaid("user", f"Where is [b]{session_id}[/]?\n\x1b[31mhere", at(0)),
            LastSaid("assistant", "At Pier 7.", at(1)),
        ]

    async def delete(self, session_id: str) -> None:
        self.rows = [r for r in self.rows if r.id != session_id]

    async def fork(self, session_id: str, message_id: str = "") -> str:
        old = next(r for r in self.rows if r.id == session_id)
        new = msgspec.structs.replace(old, id=f"{session_id}-{message_id or 'fork'}", parent=session_id)
        self.rows.append(new)
        return new.id

    async def models(self) -> Sequence[FoundModel]:
        return self.model_rows

    async def first_look(self) -> FirstLook:
        return FirstLook()

    async def warm_up(self, model: str = "") -> None:
        return None

    async def close(self) -> None:
        return None
