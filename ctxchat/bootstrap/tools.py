"""The tools of a session, made with what this program has: the sandbox, the memory file, the session's own archive."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ctxchat.core.errors import CtxchatError
from ctxchat.core.ports import ToolPort
from ctxchat.storage import archive
from ctxchat.storage.database import Database
from ctxchat.tools.catalogue import standard_tools

if TYPE_CHECKING:
    from ctxchat.bootstrap.program import Program

Ask = Callable[[str, Sequence[str]], Awaitable[str]]

HITS = 8
"""Messages one recall gives back; more would cost what the compaction saved."""

HIT_CHARS = 1_200
"""Characters of one message in a recall by words; by id it comes whole, and the cap for results applies."""


def tools_for(program: Program, session: str, memory_file: Path, ask: Ask | None) -> tuple[ToolPort, ...]:
    """Every tool the session offers, in the order a model is told of them."""
    recall = Recollection(program.database, session)
    return standard_tools(
        sandbox=program.sandbox,
        environ=os.environ,
        memory_file=memory_file,
        ask=ask,
        search=recall.search,
        show=recall.show,
        web=program.settings.tools.web,
    )


class Recollection:
    """What the agent can look up of its own session: by words, or by the id of a message, group or compaction."""

    def __init__(self, database: Database, session: str) -> None:
        self._database = database
        self._session = session

    async def search(self, query: str) -> str:
        """The messages that hold the words, best first, each with its id, clipped."""
        hits = await self._database.run(lambda: archive.search(self._database, query, self._session, limit=HITS))
        found: list[str] = []
        for hit in hits:
            message = await self._database.run(archive.message, self._database, self._session, hit.message)
            text = message.text if len(message.text) <= HIT_CHARS else hit.snippet
            calls = "".join(f"\n[called {c.name} {c.arguments[:200]}]" for c in message.calls)
            found.append(f"{hit.message} ({hit.role}, turn {hit.turn}):\n{text}{calls}")
        return "\n\n".join(found)

    async def show(self, id: str) -> str:
        """The whole text behind an id (`m12`, `g12`, or a compaction's); empty where there is none."""
        try:
            if id[:1] in {"m", "g"} and id[1:].isdigit():
                group = await self._database.run(archive.group_of, self._database, self._session, f"m{id[1:]}")
                messages = [m for m in group.messages if id[0] == "g" or m.id == id]
            else:
                found = await self._database.run(archive.show, self._database, id, self._session)
                messages = list(found.messages)
        except CtxchatError:
            return ""
        return "\n\n".join(f"{m.id} ({m.role}): {m.text}" for m in messages)
