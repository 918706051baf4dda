"""What the agent can look up of its own session, as text for a model: by words, by an id, or by a range of ids.

Every answer keeps to a budget of tokens and names the ids that lead further.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxchat.core.clip import clip
from ctxchat.core.errors import CtxchatError
from ctxchat.core.messages import Message
from ctxchat.core.search import Hit, Scope
from ctxchat.storage import archive
from ctxchat.storage.database import Database

HITS = 6
"""Messages one recall gives back; more would cost what the compaction saved."""

TOKENS = 2_000
"""What an answer to words, to a range or to a compaction's id may take. One message by its id comes whole, and the cap for
tool results applies."""

_LEAST = 60  # tokens a clipped message is still worth showing in
_RANGE = re.compile(r"m(\d{1,12})\s*(?:[-–—]|to|\.\.)\s*m?(\d{1,12})")
_MESSAGES = 200  # of a range: more than that many short ones fill no budget


class Recollection:
    """A session's own record, behind the `recall` tool."""

    def __init__(self, database: Database, session: str) -> None:
        self._database = database
        self._session = session

    async def search(self, query: str) -> str:
        """The messages that hold the words, best first, each with its id and the passage in which they stand."""
        scope = Scope(session=self._session, recall=True)
        hits = await self._database.run(lambda: archive.search(self._database, query, scope=scope, limit=HITS))
        found: list[str] = []
        left = TOKENS
        for place, hit in enumerate(hits):
            text = f"{_heading(hit)}:\n{hit.passage}{_rest(hit)}"
            tokens = self._database.count(text)
            if tokens > left:
                text = clip(text, left, self._database.count) if left >= _LEAST else ""
            if not text:
                found.append("Also in: " + ", ".join(h.message for h in hits[place:]))
                break
            found.append(text)
            left -= min(tokens, left)
        return "\n\n".join(found)

    async def show(self, id: str) -> str:
        """The text behind an id (`m12`, `g12`, a range such as `m12–m20`, or a compaction's); empty where there is none."""
        try:
            return await self._database.run(self._show, id)
        except CtxchatError:
            return ""

    def _show(self, id: str) -> str:
        if span := _RANGE.fullmatch(id):
            return self._paged(self._between(int(span[1]), int(span[2])), int(span[2]))
        if re.fullmatch(r"[mg]\d{1,12}", id):
            group = archive.group_of(self._database, self._session, f"m{id[1:]}")
            return "\n\n".join(_written(m) for m in group.messages if id[0] == "g" or m.id == id)
        messages = archive.show(self._database, id, self._session).messages
        return self._paged(messages, messages[-1].seq if messages else 0)

    def _between(self, first: int, last: int) -> list[Message]:
        found: list[Message] = []
        for seq in range(first, min(last, first + _MESSAGES) + 1):
            try:
                found.append(archive.message(self._database, self._session, f"m{seq}"))
            except CtxchatError:
                continue  # one that is damaged, or was never said
        return found

    def _paged(self, messages: Sequence[Message], last: int) -> str:
        """As many of these as the budget holds, long ones clipped, and where to go on."""
        count = self._database.count
        shown: list[str] = []
        left = TOKENS
        for message in messages:
            text = clip(_written(message), max(_LEAST, TOKENS // 4), count)
            left -= count(text)
            if left < 0 and shown:
                return "\n\n".join([*shown, f"[more: recall the id {message.id}–m{last}]"])
            shown.append(text)
        return "\n\n".join(shown)


def _heading(hit: Hit) -> str:
    who = {"tool": f"result of {hit.tool or 'a tool'}", "assistant": f"call of {hit.tool}" if hit.tool else "you"}
    place = f"put away by {hit.compaction}" if hit.compaction else "in view"
    return f"{hit.message} ({who.get(hit.role, hit.role)}, turn {hit.turn}, {place})"


def _rest(hit: Hit) -> str:
    return "" if hit.whole else f"\n[a part of {hit.tokens} tokens; recall the id {hit.message} for all of it]"


def _written(message: Message) -> str:
    calls = "".join(f"\n[called {c.name} {c.arguments}]" for c in message.calls)
    return f"{message.id} ({message.role}): {message.text}{calls}"
