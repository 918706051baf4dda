"""A recorded or made-up session said again to the real agent, and what its gauge foretold of it.

Each call is answered with its recorded result; each reply's usage is what a server with its own tokenizer and template would have
counted for the request that came. Knows nothing of tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import cache

import msgspec

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import Event, Failed, TextDelta, Usage
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import ContextBlock, ToolSpec
from ctxchat.core.messages import Group, Message
from ctxchat.core.options import Options
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ModelRequest, ToolContext, ToolOutput, ToolText
from ctxchat.core.record import CompactionRecord
from ctxchat.core.view import View
from ctxchat.models.offline.summary import OfflineSummariser
from ctxchat.models.tokenizers import counter
from tests.agent.desk import Around, Desk
from tests.doubles.scripted import End, Reply, ScriptedModel

OURS = cache(counter("gpt-4o"))
SYSTEM = "You are ctxchat, an assistant that works with a person in a terminal. Look before you answer. " * 20
MEMORY = (
    ContextBlock(
        "AGENTS.md", "Small edits. Tests beside the code. Say what you saw with paths and line numbers. " * 60
    ),
)

Count = Callable[[str], int]
Turns = Sequence[Sequence[Group]]
"""Turn by turn: what the person said, then the rounds and replies that followed."""


class Server(msgspec.Struct, frozen=True):
    """Who really counts: a tokenizer, a factor for one we do not have, and tokens a message and a request cost beyond."""

    name: str
    count: Count
    factor: float = 1.0
    message: int = 3
    request: int = 3

    def prompt(self, view: View) -> int:
        """Tokens of a request."""
        tools = round(self.factor * sum(self.count(tool.schema) for tool in view.tools))
        return self.request + tools + sum(self.of(item.message) for item in view.items)

    def of(self, message: Message) -> int:
        """Tokens of one message."""
        texts = [message.text, *(f"{c.name}{c.arguments}" for c in message.calls)]
        return self.message + round(self.factor * sum(self.count(text) for text in texts if text))


SERVERS = (
    Server("our tokenizer", OURS),
    Server("another family's", cache(counter("gpt-4")), message=4, request=7),
    Server("unlike any", OURS, factor=1.19, message=9, request=340),  # what some providers add for tools
)


class Drafted(msgspec.Struct, frozen=True):
    """Before a message was sent: what the gauge said the request would hold, what it held, and the same for the message."""

    turn: int
    shown: int
    real: int
    grown_shown: int
    grown_real: int
    after_pass: bool
    band: float


class Foretold(msgspec.Struct, frozen=True):
    """After a turn: turns left as the gauge said, as the naive way says, and as it then was."""

    turns: int
    naive: int
    real: int


class Warned(msgspec.Struct, frozen=True):
    """Before a message was sent: whether the gauge said that compaction would start, and whether it did before the request."""

    said: bool
    came: bool


class Run(msgspec.Struct, frozen=True):
    """What was foretold in one session."""

    drafted: tuple[Drafted, ...]
    foretold: tuple[Foretold, ...]
    warned: tuple[Warned, ...]


# ── a session said again ──


class Recorded:
    """A tool whose calls have been answered already: the results by the ids of the calls."""

    def __init__(self, name: str, results: dict[str, str]) -> None:
        self.spec = ToolSpec(name, "Answers as it did.", {"type": "object", "properties": {}})
        self._results = results

    def reads(self, arguments: Mapping[str, object]) -> bool:
        return True

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        return AccessRequest("read", self.spec.name)

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        yield ToolOutput(self._results.get(context.call_id, "[nothing was recorded]"))


class Replay:
    """One session: what was said, said again to the real agent, and what its gauge foretold."""

    def __init__(self, turns: Turns, server: Server, window: int, around: Around | None = None) -> None:
        self._turns, self._server = turns, server
        self._waiting: deque[Message] = deque()
        messages = [m for groups in turns for group in groups for m in group.messages]
        results = {m.call_id: m.text for m in messages if m.role == "tool"}
        names = sorted({call.name for m in messages for call in m.calls})
        self.model = ScriptedModel(self._script(), window=Window(window, "catalogue"), count=OURS)
        """Keeps every request."""
        self._desk = Desk(
            self.model,
            tools=[Recorded(name, results) for name in names],
            options=Options(keep_recent=8, prepare=False),
            mode="all",
            system=SYSTEM,
            around=around or Around(MEMORY),
            summariser=OfflineSummariser(OURS),
        )

    def _script(self) -> Iterator[Callable[[ModelRequest], Reply]]:
        while True:
            yield lambda request: self._reply(self._waiting.popleft(), request.view)

    def _reply(self, said: Message, view: View) -> Reply:
        usage = Usage(self._server.prompt(view), self._server.of(said))
        end = End("tool_calls" if said.calls else "stop", said.calls, usage)
        return (TextDelta(said.text), end) if said.text else (end,)

    async def run(self) -> Run:
        """From the first message to the last."""
        session = self._desk.session
        drafted, warned = list[Drafted](), list[Warned]()
        foretold, said, fills = list[Foretold](), list[tuple[int | None, int, int]](), list[int]()
        alone, passed = await session.measure(), False
        for turn, groups in enumerate(self._turns, 1):
            message = groups[0].first
            context_usage = session.attachments.with_draft(message.text)
            events = await self._turn(groups)
            first = next((i for i, event in enumerate(events) if isinstance(event, Usage)), len(events))
            came = _passes(events[:first])
            warned.append(Warned(context_usage.used >= context_usage.trigger_tokens, came))
            usage = events[first] if first < len(events) else None
            if isinstance(usage, Usage) and not came:
                grown, real = context_usage.used - alone.used, self._server.of(message)
                drafted.append(Drafted(turn, context_usage.used, usage.prompt, grown, real, passed, context_usage.band))
            passed = _passes(events)
            if passed:
                foretold += [Foretold(f, n, turn - at - 1) for f, n, at in said if f is not None]
                said, fills = [], []
            alone = session.context_usage
            fills.append(alone.used)
            said.append((alone.forecast_turns, _naive(fills, alone), turn))
        return Run(tuple(drafted), tuple(foretold), tuple(warned))

    async def _turn(self, groups: Sequence[Group]) -> list[Event]:
        self._waiting = deque(group.first for group in groups[1:])
        if not self._waiting or self._waiting[-1].calls:
            self._waiting.append(Message(0, "assistant", "Done."))
        async with aclosing(self._desk.session.send(groups[0].first.text)) as stream:
            events = [each.event async for each in stream]
        if failed := next((event for event in events if isinstance(event, Failed)), None):
            raise SystemExit(f"{failed.text} {failed.hint}")
        return events


def _passes(events: Sequence[Event]) -> bool:
    return any(isinstance(event, CompactionRecord) and event.outcome == "compacted" for event in events)


def _naive(fills: Sequence[int], context_usage: ContextUsage) -> int:
    growth = (fills[-1] - fills[0]) / (len(fills) - 1) if len(fills) > 1 else fills[-1]
    return max(0, int((context_usage.trigger_tokens - fills[-1]) / growth)) if growth > 0 else 99


def by_turn(messages: Sequence[Message]) -> Turns:
    """A conversation cut before each message of the person."""
    turns: list[list[Group]] = []
    for group in group_messages(messages):
        if group.kind == "user":
            turns.append([group])
        elif turns and group.kind in ("reply", "round"):
            turns[-1].append(group)
    return turns
