"""What the agent can look up of its own session, as text for a model: by words, by an id, or by a range of ids.

Every answer keeps to a budget of tokens and names the ids that lead further.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from ctxchat.core.call_arguments import plain_arguments, unescaped
from ctxchat.core.clip import clip
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.messages import Message
from ctxchat.core.search import Hit, Scope, incomplete
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database

MAX_HITS = 6
"""Messages one recall gives back; more would cost what the compaction saved."""

MAX_ANSWER_TOKENS = 2_000
"""What an answer to words, to a range or to a compaction's id may take. One message by its id comes whole, and the cap for
tool results applies."""

LARGER_ANSWER_FACTOR = 3
"""Times that, where the agent asks for more room."""

_MAX_NAMED_IDS = 12  # ids of what else was found
_MAX_NEIGHBOUR_TOKENS = 150  # tokens of what belongs to a passage: the call of a result, the results of a call
_MIN_CLIPPED_TOKENS = 60  # tokens a clipped message is still worth showing in
_RANGE = re.compile(r"m(\d{1,12})(?:\s*(?:[-–—]|to|\.\.)\s*m?(\d{1,12}))?")
_AND_MORE = re.compile(r"\s+and \d+ more\Z")  # a summary names its first ranges only
_MAX_RANGE_MESSAGES = 200  # of a range: more than that many short ones fill no budget


class Recollection:
    """A session's own record, behind the `recall` tool, with that of the session `before`, whose work was handed off to it; its
    folder's other sessions where they are asked for."""

    def __init__(self, database: Database, session: str, before: str = "") -> None:
        self._database = database
        self._session = session
        self._before = before

    async def search(self, query: str, scope: str = "session", room: str = "small") -> str:
        """What answers the query, best first: each with its id and the passage, a call with its result; what is in view already
        in a line. `scope` `folder`: in the other sessions of this folder. `room` `large`: three times as much. A filter that is
        none is told."""
        try:
            return await self._database.run(self._search, query, scope, LARGER_ANSWER_FACTOR if room == "large" else 1)
        except UsageError as problem:
            return str(problem)

    def _search(self, query: str, scope: str, times: int) -> str:
        where = Scope(session=self._session, recall=True)
        if scope == "folder":
            row = sessions.row(self._database, self._session)
            if not row.folder:
                return "Nobody knows the folder of this session, so there are no others of it."
            where = Scope(recall=True, folder=row.folder, other=self._session)
        hits = archive.search(self._database, query, scope=where, limit=3 * MAX_HITS * times)
        if self._before and scope == "session":
            handed = Scope(session=self._before, recall=True, other=self._session)
            theirs = archive.search(self._database, query, scope=handed, limit=3 * MAX_HITS * times)
            hits = [hit for pair in zip_longest(hits, theirs) for hit in pair if hit]
        away = [hit for hit in hits if hit.compaction or hit.session != self._session]
        seen = [hit for hit in hits if hit not in away]
        found: list[str] = []
        left, shown = times * MAX_ANSWER_TOKENS, set[tuple[str, str]]()
        rest: list[str] = []
        for hit in away:
            if (hit.session, hit.group) in shown:  # a call that came with its result, or the other way round
                continue
            text = self._passage(hit)
            tokens = self._database.count(text)
            if len(found) == MAX_HITS * times or tokens > left:
                room = left if len(found) < MAX_HITS * times else 0
                text = clip(text, room, self._database.count) if room >= _MIN_CLIPPED_TOKENS else ""
            if not text:
                rest.append(self._id(hit))
                continue
            shown.add((hit.session, hit.group))
            found.append(text)
            left -= min(tokens, left)
        if rest:
            more = f" and {len(rest) - _MAX_NAMED_IDS} more" if len(rest) > _MAX_NAMED_IDS else ""
            found.append(f"Also in: {', '.join(rest[:_MAX_NAMED_IDS])}{more}")
        if seen:
            lines = (f"{hit.message}: {hit.snippet}" for hit in seen[:MAX_HITS])
            found.append("\n".join(["In view already:" if away else "All of it is in view:", *lines]))
        if partly := incomplete(self._database.indexed):
            found.append(f"[{partly} Older ones are found later.]")
        return "\n\n".join(found)

    def _passage(self, hit: Hit) -> str:
        """What was found with what belongs to it: the call of a result, the result of a call."""
        passage = unescaped(hit.passage) if hit.role == "assistant" and hit.tool else hit.passage
        text = f"{self._heading(hit)}:\n{passage}{self._rest_hint(hit)}"
        if hit.role not in {"tool", "assistant"} or not hit.tool:
            return text
        try:
            group = archive.group_of(self._database, hit.session, hit.message)
        except CtxchatError:  # damaged: what was found stands for itself
            return text
        mine = next(m for m in group.messages if m.id == hit.message)
        if hit.role == "tool":
            calls = [c for m in group.messages for c in m.calls if c.id == mine.call_id]
            around = [
                f"[called {c.name} {clip(plain_arguments(c.arguments), _MAX_NEIGHBOUR_TOKENS, self._database.count)}]"
                for c in calls
            ]
            return "\n".join([f"{self._heading(hit)}:", *around, hit.passage]) + self._rest_hint(hit)
        results = [m for m in group.messages if m.role == "tool" and not m.synthetic]
        share = _MAX_NEIGHBOUR_TOKENS // max(1, len(results))
        told = [
            f"{m.id} (its result): {clip(m.text, max(_MIN_CLIPPED_TOKENS, share), self._database.count)}"
            for m in results
        ]
        return "\n".join([text, *told])

    def _heading(self, hit: Hit) -> str:
        tools = ", ".join(hit.tool.split())
        who = {"tool": f"result of {tools or 'a tool'}", "assistant": f"call of {tools}" if tools else "you"}
        if hit.session != self._session:
            place = f"session “{hit.title[:60]}”, {hit.at[:10]}"
        else:
            place = f"put away by {hit.compaction}" if hit.compaction else "in view"
        same = f", nearly the same as the older {', '.join(hit.alike[:6])}" if hit.alike else ""
        return f"{self._id(hit)} ({who.get(hit.role, hit.role)}, turn {hit.turn}, {place}{same})"

    def _rest_hint(self, hit: Hit) -> str:
        return "" if hit.whole else f"\n[a part of {hit.tokens} tokens; recall the id {self._id(hit)} for all of it]"

    def _id(self, hit: Hit) -> str:
        return hit.message if hit.session == self._session else f"{hit.session}/{hit.message}"

    async def fetch_text(self, id: str, room: str = "small") -> str:
        """The text behind an id (`m12`, `g12`, a range such as `m12–m20`, several such as `m3–m7, m9`, or a compaction's), with
        another session's id and a slash before it where a search named it so; empty where there is none. `room` as for a
        search."""
        try:
            return await self._database.run(
                self._fetch_texts, id, MAX_ANSWER_TOKENS * (LARGER_ANSWER_FACTOR if room == "large" else 1)
            )
        except CtxchatError:
            return ""

    def _fetch_texts(self, id: str, room: int) -> str:
        parts = [part.rpartition("/") for part in re.split(r"\s*[,;]\s*", _AND_MORE.sub("", id.strip()))]
        session, id = parts[0][0] or self._session, parts[0][2]
        if id in sessions.sub_agents(self._database, self._session):
            return self._paged([(self._between(id, 1, _MAX_RANGE_MESSAGES), _MAX_RANGE_MESSAGES)], f"{id}/", room)
        if any(part[0] not in {"", parts[0][0]} for part in parts):
            return ""
        before = f"{session}/" if session != self._session else ""
        if (
            before
            and sessions.row(self._database, session).folder != sessions.row(self._database, self._session).folder
        ):
            return ""  # what was said elsewhere is not for this folder's agent
        if len(parts) == 1 and re.fullmatch(r"[mg]\d{1,12}", id):
            group = archive.group_of(self._database, session, f"m{id[1:]}")
            return "\n\n".join(_written(m) for m in group.messages if id[0] == "g" or m.id == id)
        found = [_RANGE.fullmatch(part[2]) for part in parts]
        if spans := [(int(one[1]), int(one[2] or one[1])) for one in found if one]:
            runs = [(self._between(session, *span), span[1]) for span in spans]
            return self._paged(runs, before, room) if len(spans) == len(parts) else ""
        messages = archive.load_compaction(self._database, ", ".join(part[2] for part in parts), session).messages
        return self._paged([(messages, messages[-1].seq if messages else 0)], before, room)

    def _between(self, session: str, first: int, last: int) -> list[Message]:
        found: list[Message] = []
        for seq in range(first, min(last, first + _MAX_RANGE_MESSAGES) + 1):
            try:
                found.append(archive.message(self._database, session, f"m{seq}"))
            except CtxchatError:
                continue  # one that is damaged, or was never said
        return found

    def _paged(self, runs: Sequence[tuple[Sequence[Message], int]], before: str, room: int) -> str:
        """As many messages of these runs as the budget holds, long ones clipped, and where to go on; each with where it ends."""
        count = self._database.count
        shown: list[str] = []
        left = room
        for place, (messages, last) in enumerate(runs):
            for message in messages:
                text = clip(_written(message), max(_MIN_CLIPPED_TOKENS, room // 4), count)
                left -= count(text)
                if left < 0 and shown:
                    rest = [(message.seq, last), *((some[0].seq, end) for some, end in runs[place + 1 :] if some)]
                    ids = ", ".join(f"m{first}" if first == end else f"m{first}–m{end}" for first, end in rest)
                    return "\n\n".join([*shown, f"[more: recall the id {before}{ids}]"])
                shown.append(text)
        return "\n\n".join(shown)


def _written(message: Message) -> str:
    who = f"result of {message.name}" if message.role == "tool" and message.name else message.role
    calls = [f"[called {c.name} {plain_arguments(c.arguments)}]" for c in message.calls]
    heading = f"{message.id} ({who}):"
    if "\n" in message.text or not message.text:  # the first of several lines is not moved out of its place
        return "\n".join([heading, *filter(None, [message.text]), *calls])
    return "\n".join([f"{heading} {message.text}", *calls])
