"""What a compaction costs whoever is typing: the longest the event loop was held up during a swap over 10,000 messages.

    python -m benchmarks.swap

With a prepared summary the swap calls no model; beside it the same pass with a summariser that takes two seconds to write. A
ticking task measures the gaps: what it should not exceed is one frame, 16 ms.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from benchmarks.history import SyntheticWork
from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.conversation import Conversation, ConversationPorts
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.session import Session
from ctxchat.agent.session_config import SessionConfig
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.agent.turn.tool_runner import ToolRunner, Workplace
from ctxchat.bootstrap.shared import SystemClock
from ctxchat.core.budget import Window
from ctxchat.core.events import Usage
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from ctxchat.core.record import CompactionRecord
from ctxchat.core.tokens import rough_count
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import open_journal
from tests.agent.desk import Around, Recorded
from tests.doubles.scripted import ScriptedModel, says

FRAME = 16.0
"""Milliseconds."""

RUNS = 5


class Row(NamedTuple):
    """One run: model calls at the swap, milliseconds until it was done, the worst gap, how many were longer than a frame, and
    the worst while the summary was made ahead."""

    calls: int
    milliseconds: float
    worst: float
    over: int
    ahead: float


class Writer:
    """A summariser that takes `seconds` to write."""

    model = "writer/bench"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.calls = 0

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        self.calls += 1
        for word in range(40):
            await asyncio.sleep(self._seconds / 40)
            yield f"word{word} "


class Gaps:
    """How long the loop was held up, in milliseconds, told by a task that wants to run every millisecond."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Gaps:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0.02)
        self.found.clear()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._task:
            self._task.cancel()

    async def _tick(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.found.append((now - last) * 1000 - 1)
            last = now

    @property
    def worst(self) -> float:
        return max(self.found, default=0.0)

    @property
    def over(self) -> int:
        return sum(gap > FRAME for gap in self.found)


def filled(database: Database, messages: int) -> str:
    """A stored session of so many messages."""
    work = SyntheticWork()
    while len(work.messages) < messages:
        work.turns(50, rounds=4, lines=32)
    return sessions.create(database, records=[Sealed(group_messages(work.messages[:messages]))])


def opened(database: Database, name: str, writer: Writer, prepare: bool) -> Session:
    stored = open_journal(database, name)
    clock, approvals = SystemClock(), Approvals("all")
    tool_runner = ToolRunner([], approvals, clock, Workplace("/"))
    raw = sum(rough_count(m.text) + 4 for m in stored.state.ledger.messages())
    model = ScriptedModel(
        (says("fine") for _ in range(99)), window=Window(int(raw * 1.28), "configured"), count=rough_count
    )
    options = Options(strategy="summarize", prepare=prepare, keep_recent=40, compression_trigger=0.72, soft_mark=0.5)
    config = SessionConfig(system="You help.", context_sources=Around(), open_model=lambda _: model, options=options)
    conversation = Conversation(stored.journal, stored.state, model, config, ConversationPorts(clock))
    compactor = Compactor(conversation, summariser=writer)
    hooks = Hooks((), conversation, compactor, Recorded())
    return Session(SessionParts(conversation, tool_runner, compactor, hooks), config)


async def swapped(folder: Path, messages: int, *, prepare: bool) -> Row:
    """One pass before a request; the gaps from sending to the end of the turn."""
    with Database(folder / f"{messages}-{prepare}") as database:
        name = filled(database, messages)
        writer = Writer(2.0)
        session = opened(database, name, writer, prepare)
        await session.measure()
        background = Gaps()
        if prepare:
            async with background:
                session.compaction._prefetch.prepare()
                await session.compaction._prefetch.wait()
            assert session.compaction.ghost, "a summary stands prepared"
        asked, seconds, result = writer.calls, 0.0, None
        async with Gaps() as gaps:
            start = time.perf_counter()
            async with aclosing(session.send("go on")) as events:
                async for stamped in events:
                    if isinstance(stamped.event, CompactionRecord):
                        result, seconds = stamped.event, time.perf_counter() - start
        assert result is not None and result.outcome == "compacted", result
        await session.close()
        return Row(writer.calls - asked, seconds * 1000, gaps.worst, gaps.over, background.worst)


async def idle(seconds: float = 1.0) -> Row:
    """What the machine does to a loop that has nothing to do."""
    async with Gaps() as gaps:
        await asyncio.sleep(seconds)
    return Row(0, seconds * 1000, gaps.worst, gaps.over, 0.0)


def middle(rows: Sequence[Row]) -> Row:
    """The run whose worst gap is the middle one."""
    return sorted(rows, key=lambda row: row.worst)[len(rows) // 2]


async def main(messages: int) -> None:
    print(
        f"{messages:,} messages; gaps of the event loop in milliseconds (a frame is {FRAME:.0f}); the middle one of {RUNS} runs\n"
    )
    print(f"{'swap':<28}{'model calls':>12}{'until done':>12}{'worst gap':>12}{'gaps > frame':>14}{'while ahead':>13}")
    with tempfile.TemporaryDirectory() as folder:
        for label, run in (
            ("nothing at all", lambda number: idle()),
            ("with a prepared summary", lambda number: swapped(Path(folder) / str(number), messages, prepare=True)),
            ("with a summariser, 2 s", lambda number: swapped(Path(folder) / str(number), messages, prepare=False)),
        ):
            row = middle([await run(number) for number in range(RUNS)])
            print(
                f"{label:<28}{row.calls:>12}{row.milliseconds:>12.0f}{row.worst:>12.1f}{row.over:>14}{row.ahead:>13.1f}",
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
