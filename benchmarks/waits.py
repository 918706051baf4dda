"""What a person waits for compactions in an hour of work, at windows of 16k, 32k and 200k tokens.

    python -m benchmarks.waits [SEEDS]

The real agent over a scripted model, a summariser that takes as long as one does, tools, and a person who reads and thinks, all
in a time of its own (`VirtualTime`): an hour takes seconds. Waiting is the time in which a message, or a round of a turn, stood
still because a compaction was at work. Two rows each: as it is, and with nothing made ahead.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import Executor
from contextlib import aclosing
from typing import Any, NamedTuple

from ctxchat.core.budget import Window
from ctxchat.core.events import CompactionStarted, TurnFinished, Usage
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest, SummaryTask, ToolContext, ToolOutput, ToolText
from ctxchat.core.record import CompactionRecord
from ctxchat.core.summary_task import input_tokens
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import End, Reply, ScriptedModel, TextDelta, Wait, calls

HOUR = 3_600.0

READ_A_SECOND, WRITTEN_A_SECOND, FIRST_TOKEN = 4_000, 70, 1.5
"""Tokens a model reads and writes in a second, and seconds until it begins."""

WINDOWS = (16_000, 32_000, 200_000)

WORDS = ("the", "gauge", "at", "pier", "seven", "reports", "every", "ninety", "seconds", "and", "then")


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while there is something to do, and jumps to the next timer when there is not. Work
    handed to threads takes no time."""

    def __init__(self) -> None:
        self._now, self._threads = 0.0, 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def run_in_executor(self, executor: Executor | None, func: Any, *args: Any) -> asyncio.Future[Any]:
        """As always; time stands still until it is done."""
        self._threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._returned)
        return future

    def _returned(self, _: object) -> None:
        self._threads -= 1

    def jump(self, seconds: float | None) -> float | None:
        """How long a selector may really wait where a loop would wait so long."""
        if self._threads or not seconds:
            return 0.05 if self._threads and seconds else seconds
        self._now += max(0.0, seconds)
        return 0.0


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    def __init__(self, loop: VirtualTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if ready := super().select(0):
            return ready
        return super().select(self._loop.jump(timeout))


class LoopClock:
    """The agent's clock by the loop's time, which begins on a morning."""

    def now(self) -> str:
        at = int(self.seconds())
        return f"2026-11-21T{9 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}.000Z"

    def seconds(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def text(chance: random.Random, tokens: int) -> str:
    """Words that come to about so many tokens."""
    return " ".join(chance.choices(WORDS, k=max(1, tokens * 3 // 4)))


class Results(Echo):
    """A tool whose results are of every size: most are short, a few fill a page of code."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        await asyncio.sleep(self._chance.uniform(0.1, 4))
        yield ToolOutput(text(self._chance, min(6_000, int(200 * self._chance.paretovariate(0.9)))))


class Writer:
    """A summariser that takes as long as a model does to read what goes and to write."""

    model = "writer/bench"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.calls = 0

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        self.calls += 1
        read = input_tokens(task.groups) + len(task.previous) // 4 + 1_500
        written = min(int((task.max_tokens or 2_000) * 0.7), 300 + read // 8)
        await asyncio.sleep(FIRST_TOKEN + read / READ_A_SECOND + written / WRITTEN_A_SECOND)
        yield text(self._chance, written)
        yield Usage(read, written)


def replies(chance: random.Random) -> Iterator[object]:
    """Turns of one to fourteen rounds, each reply in the time it takes a model."""
    while True:
        for number in range(chance.choice([0, 1, 2, 3, 4, 6, 9, 14])):
            said = chance.choice(["", "I look further.", "Next."])
            wanted = [("echo", {"text": f"{number}"}) for _ in range(chance.choice([1, 1, 1, 2]))]
            yield _taking(calls(*wanted, text=said), 90)
        words = chance.randrange(60, 700)
        yield _taking((TextDelta(text(chance, words)), End()), words)


def _taking(reply: Reply, tokens: int) -> object:
    def made(request: ModelRequest) -> Reply:
        return (Wait(FIRST_TOKEN + tokens / WRITTEN_A_SECOND), *reply)

    return made


class Row(NamedTuple):
    """One hour: turns, compactions, those that were waited for, seconds waited in all and at once, calls for summaries, and the
    fullest that the window was."""

    turns: int
    compactions: int
    waited: int
    seconds: float
    longest: float
    calls: int
    fullest: float


async def hour(window: int, seed: int, *, prepare: bool) -> Row:
    """An hour of work."""
    chance = random.Random(seed)
    writer = Writer(random.Random(seed))
    model = ScriptedModel(replies(chance), window=Window(window, "loaded"))  # type: ignore[arg-type]
    desk = Desk(
        model,
        tools=[Results(random.Random(seed))],
        options=Options(prepare=prepare),
        summariser=writer,
        clock=LoopClock(),  # type: ignore[arg-type]
    )
    loop = asyncio.get_running_loop()
    turns, waits, fullest = 0, [], 0.0
    while loop.time() < HOUR:
        async with aclosing(desk.session.send(text(chance, chance.randrange(10, 200)))) as stream:
            begun = 0.0
            async for stamped in stream:
                event = stamped.event
                if isinstance(event, CompactionStarted):
                    begun = loop.time()
                elif isinstance(event, CompactionRecord):
                    waits.append(loop.time() - begun)
                elif isinstance(event, TurnFinished):
                    turns += 1
        fullest = max(fullest, desk.session.context_usage.pressure)
        await asyncio.sleep(chance.choice([5, 15, 30, 60, 120]))
    await desk.session.close()
    real = [wait for wait in waits if wait > 0.1]
    return Row(turns, len(waits), len(real), sum(real), max(real, default=0.0), writer.calls, fullest)


def main(seeds: int) -> None:
    """The table."""
    print("window   ahead  turns  compactions  waited  seconds  longest  calls  fullest")
    for window in WINDOWS:
        for prepare in (True, False):
            rows = []
            for seed in range(seeds):
                with asyncio.Runner(loop_factory=VirtualTime) as runner:
                    rows.append(runner.run(hour(window, seed, prepare=prepare)))
            turns, passes, waited, seconds, _, made, _ = (sum(column) / seeds for column in zip(*rows, strict=True))
            longest, fullest = max(r.longest for r in rows), max(r.fullest for r in rows)
            print(
                f"{window:>7,}  {'yes' if prepare else 'no':>5}  {turns:5.0f}  {passes:11.1f}  {waited:6.1f}"
                f"  {seconds:7.1f}  {longest:7.1f}  {made:5.1f}  {fullest:7.2f}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
