"""Looks up messages of a session's own record, as text for a model: by a search, by an id, or by ranges of ids.

Every answer keeps to a token budget and names the ids of what it leaves out.
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
"""Messages in the answer to one search; more would undo what the compaction saved."""

MAX_ANSWER_TOKENS = 2_000
"""Tokens in the answer to a search, a range or a compaction's id. A single message by its id is given whole, up to the limit
for tool results."""

LARGER_ANSWER_FACTOR = 3
"""Factor on `MAX_ANSWER_TOKENS` where the agent asks for a large answer."""

_MAX_NAMED_IDS = 12  # ids of further hits that are named
_MAX_NEIGHBOUR_TOKENS = 150  # tokens of the call shown with a result, or the results shown with a call
_MIN_CLIPPED_TOKENS = 60  # tokens below which a clipped message is not worth showing
_RANGE = re.compile(r"m(\d{1,12})(?:\s*(?:[-–—]|to|\.\.)\s*m?(\d{1,12}))?")
_AND_MORE = re.compile(r"\s+and \d+ more\Z")  # a summary ends a long list of ranges like this
_MAX_RANGE_MESSAGES = 200  # messages read from one range; they exceed any budget


class Recollection:
    """Searches and reads a session's record for the `recall` tool. Includes the record of the session `before`, whose work was
    handed off to it, and on request the other sessions of its folder."""

    def __init__(self, database: Database, session: str, before: str = "") -> None:
        self._database = database
        self._session = session
        self._before = before

    async def search(self, query: str, scope: str = "session", room: str = "small") -> str:
        """The messages that match the query, best first: each with its id and passage, calls with their results; messages the
        model still sees get a line each. `scope` is `session`, or `folder` for the other sessions of this folder; `room` is
        `small`, or `large` for `LARGER_ANSWER_FACTOR` times as much. An invalid filter is answered with its error."""
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
            earlier = Scope(session=self._before, recall=True, other=self._session)
            earlier_hits = archive.search(self._database, query, scope=earlier, limit=3 * MAX_HITS * times)
            hits = [hit for pair in zip_longest(hits, earlier_hits) for hit in pair if hit]
        out_of_view = [hit for hit in hits if hit.compaction or hit.session != self._session]
        in_view = [hit for hit in hits if hit not in out_of_view]
        answer: list[str] = []
        left, shown = times * MAX_ANSWER_TOKENS, set[tuple[str, str]]()
        omitted: list[str] = []
        for hit in out_of_view:
            if (hit.session, hit.group) in shown:  # a call already shown with its result, or the reverse
                continue
            text = self._passage(hit)
            tokens = self._database.count(text)
            if len(answer) == MAX_HITS * times or tokens > left:
                room = left if len(answer) < MAX_HITS * times else 0
                text = clip(text, room, self._database.count) if room >= _MIN_CLIPPED_TOKENS else ""
            if not text:
                omitted.append(self._id(hit))
                continue
            shown.add((hit.session, hit.group))
            answer.append(text)
            left -= min(tokens, left)
        if omitted:
            more = f" and {len(omitted) - _MAX_NAMED_IDS} more" if len(omitted) > _MAX_NAMED_IDS else ""
            answer.append(f"Also in: {', '.join(omitted[:_MAX_NAMED_IDS])}{more}")
        if in_view:
            lines = (f"{hit.message}: {hit.snippet}" for hit in in_view[:MAX_HITS])
            answer.append("\n".join(["In view already:" if out_of_view else "All of it is in view:", *lines]))
        if partly := incomplete(self._database.indexed):
            answer.append(f"[{partly} Older ones are found later.]")
        return "\n\n".join(answer)

    def _passage(self, hit: Hit) -> str:
        """The text of a hit: a result with its call, a call with its results."""
        passage = unescaped(hit.passage) if hit.role == "assistant" and hit.tool else hit.passage
        text = f"{self._heading(hit)}:\n{passage}{self._rest_hint(hit)}"
        if hit.role not in {"tool", "assistant"} or not hit.tool:
            return text
        try:
            group = archive.group_of(self._database, hit.session, hit.message)
        except CtxchatError:  # a damaged group: the hit is shown alone
            return text
        mine = next(m for m in group.messages if m.id == hit.message)
        if hit.role == "tool":
            calls = [c for m in group.messages for c in m.calls if c.id == mine.call_id]
            call_lines = [
                f"[called {c.name} {clip(plain_arguments(c.arguments), _MAX_NEIGHBOUR_TOKENS, self._database.count)}]"
                for c in calls
            ]
            return "\n".join([f"{self._heading(hit)}:", *call_lines, hit.passage]) + self._rest_hint(hit)
        results = [m for m in group.messages if m.role == "tool" and not m.synthetic]
        share = _MAX_NEIGHBOUR_TOKENS // max(1, len(results))
        result_lines = [
            f"{m.id} (its result): {clip(m.text, max(_MIN_CLIPPED_TOKENS, share), self._database.count)}"
            for m in results
        ]
        return "\n".join([text, *result_lines])

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
        """The messages with an id (`m12`, `g12`, a range such as `m12–m20`, several such as `m3–m7, m9`, or a compaction's id),
        as text; empty where there are none. A search's hit in another session has that session's id and a slash before its own.
        `room` as for a search."""
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
            return ""  # an agent may not read sessions of another folder
        if len(parts) == 1 and re.fullmatch(r"[mg]\d{1,12}", id):
            group = archive.group_of(self._database, session, f"m{id[1:]}")
            return "\n\n".join(_written(m) for m in group.messages if id[0] == "g" or m.id == id)
        ranges = [_RANGE.fullmatch(part[2]) for part in parts]
        if spans := [(int(match[1]), int(match[2] or match[1])) for match in ranges if match]:
            runs = [(self._between(session, *span), span[1]) for span in spans]
            return self._paged(runs, before, room) if len(spans) == len(parts) else ""
        messages = archive.load_compaction(self._database, ", ".join(part[2] for part in parts), session).messages
        return self._paged([(messages, messages[-1].seq if messages else 0)], before, room)

    def _between(self, session: str, first: int, last: int) -> list[Message]:
        messages: list[Message] = []
        for seq in range(first, min(last, first + _MAX_RANGE_MESSAGES) + 1):
            try:
                messages.append(archive.message(self._database, session, f"m{seq}"))
            except CtxchatError:
                continue  # damaged, or no message has this number
        return messages

    def _paged(self, runs: Sequence[tuple[Sequence[Message], int]], before: str, room: int) -> str:
        """As many messages of these runs as `room` tokens hold, long ones clipped, and the ids to continue with. Each run is its
        messages and the number of its last one. `before` is put before those ids."""
        count = self._database.count
        shown: list[str] = []
        left = room
        for index, (messages, last) in enumerate(runs):
            for message in messages:
                text = clip(_written(message), max(_MIN_CLIPPED_TOKENS, room // 4), count)
                left -= count(text)
                if left < 0 and shown:
                    omitted = [(message.seq, last), *((later[0].seq, end) for later, end in runs[index + 1 :] if later)]
                    ids = ", ".join(f"m{first}" if first == end else f"m{first}–m{end}" for first, end in omitted)
                    return "\n\n".join([*shown, f"[more: recall the id {before}{ids}]"])
                shown.append(text)
        return "\n\n".join(shown)


def _written(message: Message) -> str:
    who = f"result of {message.name}" if message.role == "tool" and message.name else message.role
    calls = [f"[called {c.name} {plain_arguments(c.arguments)}]" for c in message.calls]
    heading = f"{message.id} ({who}):"
    if (
        "\n" in message.text or not message.text
    ):  # several lines begin on a line of their own, so that the first keeps its indentation
        return "\n".join([heading, *filter(None, [message.text]), *calls])
    return "\n".join([f"{heading} {message.text}", *calls])
