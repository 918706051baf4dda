"""What a recorded session costs by when room is made, at the prices and cache rules of five families, and what calls then miss.

    python -m benchmarks.policies [FOLDER] [DAYS]

Sessions of a folder (histories of other agents, which have times; without one those of `benchmarks/recordings`, with pauses drawn
by a seed) are put one behind the other, as many as make 400,000 tokens, and said again to the real agent in a window of 128,000
tokens, at the times at which they were said. Each reply is counted by what its server would hold of the request then, and
priced. Four policies: *never* (in a window that holds all), *at the trigger* with a summary of a text made for it, *idle*: as
that, and silently whenever the cache has gone cold and a quarter is used, and *ours*. *In view* is the share of the paths and
symbols in the arguments of calls, known before, that the model could still see. Summaries say nothing; they are as long as a
model's are, a whole record or what changes in one. Nothing depends on how fast the machine is: what is made beside it takes
as long, in a time of its own, as a model reads and writes (`VirtualTime`).
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from benchmarks.recordings import OURS, Recording, recordings
from benchmarks.replay import SYSTEM, Recorded, by_turn
from benchmarks.waits import FIRST_TOKEN, READ_A_SECOND, WRITTEN_A_SECOND, VirtualTime
from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.core.audit import is_in, names_of, view_text
from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.events import TextDelta, Usage
from ctxchat.core.grouping import group_messages
from ctxchat.core.messages import Group, Message
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest
from ctxchat.core.prices import ModelPrices, Rates, cost
from ctxchat.core.summary_task import RECORD_NOW, UPDATE_NOW
from ctxchat.core.summary_update import SECTIONS
from ctxchat.core.times import epoch, iso
from ctxchat.core.tokens import rough_count
from tests.agent.desk import Desk, StillClock
from tests.doubles.scripted import End, Reply, ScriptedModel, Wait

Policy = Literal["never", "trigger", "idle", "ours"]

WINDOW, DAY_TOKENS = 128_000, 400_000

RECORD_LINES, UPDATE_LINES, WORDS_A_LINE = 80, 30, 16


class Family(NamedTuple):
    """Prices of a provider, the seconds that it holds a beginning, and whether it promises them."""

    name: str
    prices: ModelPrices
    life: int
    promised: bool


FAMILIES = (
    Family("Claude Opus 5.5", ModelPrices(Rates(4, 20, 0.2, 5, 8), cache_life=300, long_cache_life=3600), 3600, True),
    Family("GPT-6.2 Sol", ModelPrices(Rates(2, 10, 0.1, 2.5, 5), cache_life=1800), 1800, True),
    Family("Gemini 4 Argon", ModelPrices(Rates(4, 20, 0.2, 4, 4)), 1800, False),
    Family("DeepSeek V4", ModelPrices(Rates(0.28, 0.42, 0.0084, 0.28, 0.28)), 86_400, False),
    Family("Grok", ModelPrices(Rates(3, 15, 0.75, 3, 3)), 600, False),
)


class Clock(StillClock):
    """Stands where the recording is."""

    wall = 0.0

    def now(self) -> str:
        return iso(self.wall)


class Server(ScriptedModel):
    """Replies as was recorded, and counts as its family would: what it holds of a request is read, the rest written."""

    def __init__(self, family: Family, window: int, clock: Clock) -> None:
        rules = CacheRules(family.life if family.promised else 0, long=family.life > 1800 and family.promised)
        super().__init__((), window=Window(window, "configured"), prices=family.prices, rules=rules)
        self._family, self._clock = family, clock
        self._held: dict[int, float] = {}
        self.waiting: list[Message] = []
        self.usd = 0.0
        self.before: str | None = None
        """All that was said, where it is looked at what calls name."""
        self.wanted = self.seen = self._summaries = 0

    def _next(self, request: ModelRequest) -> Reply:
        asked = request.view.items[-1].message.text
        if asked.endswith((RECORD_NOW, UPDATE_NOW)):
            said = Message(0, "assistant", self._summary(UPDATE_LINES if asked.endswith(UPDATE_NOW) else RECORD_LINES))
        elif asked.startswith("<record_so_far>"):
            said = Message(0, "assistant", self._summary(RECORD_LINES * 2 // 3))
        else:
            said = self.waiting.pop(0)
            self._clock.wall = max(self._clock.wall, epoch(said.at) if said.at else 0.0)
            self._look(said, request)
        usage = self._counted(request, rough_count(said.text) + sum(rough_count(c.arguments) for c in said.calls))
        self.usd += usage.cost_usd
        takes = FIRST_TOKEN + (usage.prompt - usage.cached) / READ_A_SECOND + usage.completion / WRITTEN_A_SECOND
        end = End("tool_calls" if said.calls else "stop", said.calls, usage)
        return (Wait(takes), TextDelta(said.text), end) if said.text else (Wait(takes), end)

    def _summary(self, lines: int) -> str:
        """A record of so many lines under its headings, no line as one before."""
        self._summaries += 1
        filler = "word " * WORDS_A_LINE
        told = [f"- {self._summaries}.{n}: {filler}" for n in range(lines)]
        share = -(-lines // len(SECTIONS))
        return "\n\n".join(
            "\n".join([f"## {title}", *told[n * share : (n + 1) * share]]) for n, title in enumerate(SECTIONS)
        )

    def _look(self, said: Message, request: ModelRequest) -> None:
        """What the calls name that was known: whether the model could see it."""
        if self.before is None:
            return
        for call in said.calls:
            if known := [n for n in names_of(call) if is_in(self.before, n)]:
                text = view_text(request.view)
                self.wanted, self.seen = self.wanted + len(known), self.seen + sum(is_in(text, n) for n in known)

    def _counted(self, request: ModelRequest, reply: int) -> Usage:
        now, family = self._clock.wall, self._family
        whole, ends, read = sum(request.view.tool_tokens), dict[int, int](), 0
        digest = hash(tuple(tool.name for tool in request.view.tools))
        for item in request.view.items:
            digest, whole = hash((digest, item.message)), whole + item.tokens
            ends[digest] = whole
            if self._held.get(digest, 0.0) > now:
                read = whole
                self._held[digest] = now + family.life
        self._held[digest] = now + family.life
        written = whole - read if family.promised else 0
        long = written if family.life > 1800 else 0
        usage = Usage(whole, reply, cached=read, written=written, written_long=long)
        return msgspec.structs.replace(usage, cost_usd=cost(family.prices, usage))


class Result(NamedTuple):
    """US dollars, compactions, and the share of what calls named that was in view."""

    usd: float
    compactions: int
    seen: float


async def work(turns: Sequence[Sequence[Group]], family: Family, policy: Policy, *, look: bool) -> Result:
    """The session, said again."""
    clock = Clock()
    server = Server(family, WINDOW if policy != "never" else 4_000_000, clock)
    messages = [m for groups in turns for group in groups for m in group.messages]
    results = {m.call_id: m.text for m in messages if m.role == "tool"}
    options = Options(
        auto_compact="off" if policy == "never" else "auto",
        prepare=policy == "ours",
        auto_cold="compact",
        max_rounds=999,
    )
    desk = Desk(
        server,
        tools=[Recorded(name, results) for name in sorted({c.name for m in messages for c in m.calls})],
        options=options,
        mode="all",
        system=SYSTEM,
        summariser=ModelSummariser(server, clock, own=policy == "ours"),
        clock=clock,
    )
    desk.conversation._config = msgspec.structs.replace(desk.config, lasting=True)
    server.before = "" if look else None
    for groups in turns:
        clock.wall = max(clock.wall, epoch(groups[0].first.at))
        usage = desk.session.context_usage
        cold = (
            usage.cache.held_at(clock.wall) is None
            if family.promised
            else clock.wall > max(server._held.values(), default=0)
        )
        if policy == "idle" and cold and usage.used > usage.limit / 4:
            await desk.free_up()
        server.waiting = [group.first for group in groups[1:]]
        if not server.waiting or server.waiting[-1].calls:
            server.waiting.append(Message(0, "assistant", "Done."))
        async with aclosing(desk.session.send(groups[0].first.text)) as stream:
            async for _ in stream:
                pass
        await desk.compactor._prefetch.wait()
        clock.wall = max(clock.wall, epoch(groups[-1].messages[-1].at))
        if server.before is not None:
            said = (text for g in groups for m in g.messages for text in (m.text, *(c.arguments for c in m.calls)))
            server.before += "\n".join(["", *said])
    await desk.session.close()
    made = sum(c.record is not None for c in desk.state.ledger.compactions)
    return Result(server.usd, made, server.seen / server.wanted if server.wanted else 1.0)


def timed(found: Sequence[Recording], chance: random.Random) -> Iterator[Recording]:
    """With times: those recorded, or some drawn."""
    at = epoch("2026-11-02T09:00:00.000Z")
    for each in found:
        messages = list[Message]()
        for message in each.messages:
            at += chance.choice([20, 60, 240, 900, 4_000]) if message.role == "user" else chance.uniform(2, 20)
            messages.append(message if message.at else msgspec.structs.replace(message, at=iso(at)))
        yield Recording(each.name, tuple(messages))


def days(found: Sequence[Recording]) -> Iterator[list[list[Group]]]:
    """Recordings one behind the other, in the order of their times, until they make a day's tokens."""
    turns, tokens, seq = list[list[Group]](), 0, 0
    for each in sorted(found, key=lambda each: each.messages[0].at):
        messages = [
            msgspec.structs.replace(
                m, seq=seq + n, call_id=m.call_id and f"{each.name}{m.call_id}",
                calls=tuple(msgspec.structs.replace(c, id=f"{each.name}{c.id}") for c in m.calls),
            )
            for n, m in enumerate(each.messages, 1)
        ]  # fmt: skip
        seq += len(messages)
        turns += [list(groups) for groups in by_turn(messages)]
        tokens += sum(rough_count(m.text) for m in messages)
        if tokens > DAY_TOKENS:
            yield turns
            turns, tokens, seq = [], 0, 0
    if turns:
        yield turns


async def main(folder: Path, most: int) -> None:
    """The table."""
    found = [each for each in recordings(folder) if len(group_messages(each.messages)) > 1 and each.messages]
    work_days = list(days(list(timed(found, random.Random(7)))))[:most]
    print(f"{len(work_days)} days, {sum(map(len, work_days))} turns")
    print(f"{'':<18}{'never':>9}{'trigger':>16}{'idle':>16}{'ours':>16}{'in view, in this order':>34}")
    for family in FAMILIES:
        row, views = f"{family.name:<18}", list[str]()
        policies: tuple[Policy, ...] = ("never", "trigger", "idle", "ours")
        for policy in policies:
            done = [await work(day, family, policy, look=family is FAMILIES[0]) for day in work_days]
            row += f"{sum(d.usd for d in done):>9.2f}"
            if policy != "never":
                row += f" ({sum(d.compactions for d in done):>4})"
            if family is FAMILIES[0]:
                views.append(f"{sum(d.seen for d in done) / len(done):.1%}")
        print(row + f"{', '.join(views):>34}", flush=True)


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else OURS
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(main(place, int(sys.argv[2]) if len(sys.argv) > 2 else 99))
