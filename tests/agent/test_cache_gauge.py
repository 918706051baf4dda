"""What the cache gauge says before a request is what the server then reads and charges, whatever came before: pauses, tool
rounds, breaks, restarts, other lives of marks, other models."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.agent.session_config import SessionConfig
from ctxchat.core.budget import Window
from ctxchat.core.changes import rewind_change
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import LedgerError
from ctxchat.core.events import Usage
from ctxchat.core.head import ContextBlock
from ctxchat.core.journal import Changed, Record
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelPiece, ModelRequest
from ctxchat.core.prices import cost
from ctxchat.core.times import epoch, iso
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections, DirectTransport, server_of
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Around, Desk, Echo, StillClock
from tests.doubles.strict import StrictClaude, StrictOpenAI, StrictServer, answers, says, thought, use
from tests.doubles.strict.script import Answer
from tests.examples import examples

RULES = "measure before you believe. " * 300
"""A head that is long enough to be kept by itself."""


HEAD_ERROR = 0.2
"""The share by which the tokens of a head may be off that no server has counted by itself."""


BAND_RATIO = 1.5
"""How many times the gauge's error a price may be off."""


class WallClock(StillClock):
    """Stands still until it is moved, and is the server's as well."""

    def __init__(self) -> None:
        super().__init__()
        self.wall = epoch("2026-11-25T09:00:00.000Z")

    def now(self) -> str:
        return iso(self.wall)


class Watched(ModelClient):
    """Keeps what the gauge said when each request went out."""

    def __init__(self, name: str, server: StrictServer, connections: Connections, base: str) -> None:
        settings = ModelSettings(name, api_base=f"{server.root}{base}", window=400_000, timeout=30)
        way = server_of(settings, {})
        assert way is not None
        super().__init__(settings, DirectTransport(settings, way, connections), lambda _: "key")
        self.said: list[tuple[int, ContextUsage]] = []
        self.server = server
        self.gauge: Any = None

    async def window(self) -> Window:
        return Window(400_000, "configured")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:  # type: ignore[override]
        if request.session:  # else it stands alone, and the gauge says nothing of it
            self.said.append((len(self.server.exchanges), self.gauge()))
        async for piece in super().stream(request):
            yield piece


STEPS = (
    "say",
    "tool",
    "long",
    "rounds",
    "4 min",
    "6 min",
    "31 min",
    "61 min",
    "pin",
    "drop",
    "rewind",
    "restart",
    "lasting",
    "other",
    "memory",
    "compact",
    "agent",
)
steps = st.lists(st.sampled_from(STEPS), min_size=3, max_size=12)


class Life:
    """A session over a strict server, its clock and its models."""

    def __init__(self, server: StrictServer, clock: WallClock, models: Sequence[Watched]) -> None:
        self.server, self.clock, self.models = server, clock, list(models)
        self.around = Around([ContextBlock("AGENTS.md", RULES)], [ContextBlock("identity", "Date: 1")])
        self.lasting, self.chosen = False, 0
        self.when: list[float] = []
        self.open(())

    def open(self, records: Sequence[Record]) -> None:
        self.desk = Desk(
            self.models[self.chosen],
            tools=[Echo()],
            around=self.around,
            records=records,
            options=Options(auto_compact="off", prepare=False, retries=0, strategy="summarize", keep_recent=2),
            others={model.name: model for model in self.models},
            clock=self.clock,
            summariser=ModelSummariser(self.models[self.chosen], self.clock, own=True),
            summariser_of=lambda model: ModelSummariser(model, self.clock, own=True),
            configure=lambda agent, model: self.as_agent(agent or ""),
        )
        config = self.as_agent(self.desk.state.agent or "")
        self.desk.conversation._config = self.desk.session.setup._config = config
        for model in self.models:
            model.gauge = lambda: self.desk.conversation.context_usage

    def as_agent(self, name: str) -> SessionConfig:
        system = f"You are {name}." if name else self.desk.config.system
        return msgspec.structs.replace(self.desk.config, agent=name, system=system, lasting=self.lasting)

    async def take(self, number: int, step: str) -> None:
        desk = self.desk
        groups = [e.group for e in desk.state.ledger.live() if e.group and e.group.kind in {"user", "reply", "round"}]
        match step:
            case "say" | "long" | "tool" | "rounds":
                words = "the tide reports every ninety seconds. " * (200 if step == "long" else 3)
                await desk.say(f"{step} {number}: {words}")
            case "pin" | "drop" if len(groups) > 3:
                with suppress(LedgerError):  # it is pinned already
                    await (desk.session.changes.pin if step == "pin" else desk.session.changes.drop)(
                        groups[number % 3].id
                    )
            case "rewind" if [g for g in groups if g.kind == "user"][1:]:
                last = [g for g in groups if g.kind == "user"][-1]
                await desk.conversation.write(
                    Changed(rewind_change(desk.state.ledger, last.id, self.clock.now()), desk.conversation.as_counted)
                )
                await desk.session.measure()
            case "restart" | "lasting":
                self.lasting ^= step == "lasting"
                self.open(desk.journal.records)
            case "other":
                self.chosen = (self.chosen + 1) % len(self.models)
                await desk.session.setup.switch_model(self.models[self.chosen].name)
            case "agent":  # with the next compaction
                await desk.session.setup.defer_setup(agent=f"agent {number}")
            case "compact":
                await desk.free_up()
            case "memory":
                self.around.memory = (ContextBlock("AGENTS.md", f"{RULES}\nrule {number}"),)
            case _ if step.endswith("min"):
                self.clock.wall += 60 * int(step.split()[0])
            case _:
                pass


def answer(body: dict[str, Any]) -> Answer:
    """What the servers say: calls where a message asks for a tool, eleven rounds of them where it asks for rounds."""
    last = str((body.get("messages") or body["input"])[-1])
    if "Write the record now." in last:
        return says("## Goal\nKnow the tide." + "\nIt reports every ninety seconds to the logger." * 6)
    left = 11 if "rounds " in last else int(found[1]) if (found := re.search(r"again (\d+)", last)) else 0
    if left:
        return answers(thought("hm"), "More.", use("echo", text=f"again {left - 1}"))
    if "tool " in last and "tide" in last:
        return answers(thought("hm"), "I look.", use("echo", text="x" * 400), use("echo", text="y"))
    return says("Seen.", think="well, " * 120)  # hidden, and read again by the server


async def live(server: StrictServer, clock: WallClock, names: Sequence[str], base: str, taken: Sequence[str]) -> int:
    """Live so, and hold what was said against what was counted; how many requests that were."""
    connections = Connections()
    try:
        models = [Watched(name, server, connections, base) for name in names]
        life = Life(server, clock, models)
        when: dict[int, float] = {}
        for number, step in enumerate(["say", *taken, "say"]):
            before = len(server.exchanges)
            await life.take(number, step)
            when |= dict.fromkeys(range(before, len(server.exchanges)), clock.wall)
    finally:
        await connections.close()
    refused = [e.refused for e in server.exchanges if e.refused]
    assert all("bound to a different conversation" in words for words in refused), (
        "another model is told after a change"
    )
    for model in models:
        seen = False
        for place, told in model.said:
            if server.exchanges[place].refused:
                continue
            if "Write the record now." not in server.exchanges[place].raw.decode():  # that is no next message
                holds_true(told, model, server, place, when[place], seen=seen)
            seen = True
    assert life.desk.folded() == life.desk.state
    return len(server.exchanges)


def holds_true(told: ContextUsage, model: Watched, server: StrictServer, place: int, now: float, *, seen: bool) -> None:
    """What was said is what the server then read and charged; an estimate, within the error of the gauge."""
    exchange, said = server.exchanges[place], told.cache
    warmth, hold = said.warmth(now), said.held_at(now)
    at = f"request {place}: {warmth}, {hold}, read {exchange.read} of {exchange.prompt}, thought {told.used} ±{told.band}"
    if not seen:
        assert warmth == "unknown", at
    elif warmth == "cold":
        assert exchange.read == 0, at
    else:
        assert warmth == "warm" and hold and exchange.read > 0, at
        assert exchange.read == hold.tokens or (
            hold.estimated and abs(exchange.read - hold.tokens) < HEAD_ERROR * hold.tokens
        ), at
    prices = model.prices()
    assert prices is not None
    long = bool((exchange.usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens"))
    written = exchange.written
    charged = cost(
        prices, Usage(exchange.prompt, 0, exchange.read, written=written, written_long=written if long else 0)
    )
    error = BAND_RATIO * told.band * told.used * told.price.written
    if hold and hold.estimated:
        error += HEAD_ERROR * hold.tokens * (told.price.written - told.price.cached)
    expected = said.next_at(now).usd
    assert expected == pytest.approx(charged, abs=error, rel=1e-6), at


@examples(2, 300)
@given(steps)
async def test_claude_charges_what_the_gauge_said(taken: list[str]) -> None:
    clock = WallClock()
    async with StrictClaude(answer, clock=lambda: clock.wall) as server:
        assert await live(server, clock, ("anthropic/claude-opus-5-5", "anthropic/claude-fable-5-2"), "", taken) > 1


@examples(2, 300)
@given(steps)
async def test_openai_charges_what_the_gauge_said(taken: list[str]) -> None:
    clock = WallClock()
    async with StrictOpenAI(answer, clock=lambda: clock.wall) as server:
        names = ("openai/responses/gpt-6.2-sol", "openai/responses/gpt-6.1-terra")
        assert await live(server, clock, names, "/v1", taken) > 1


@pytest.mark.parametrize(
    "taken",
    [
        ["rounds", "rounds", "rewind", "drop"],  # what is held still began 25 requests ago
        ["say", "rounds", "rounds", "drop", "rewind"],
    ],
)
async def test_a_beginning_of_long_ago_is_not_forgotten(taken: list[str]) -> None:
    clock = WallClock()
    async with StrictOpenAI(answer, clock=lambda: clock.wall) as server:
        assert await live(server, clock, ("openai/responses/gpt-6.2-sol",), "/v1", taken) > 24


async def test_a_head_that_is_held_for_an_hour_is_so_again_when_it_is_sent_for_less() -> None:
    clock = WallClock()
    async with StrictClaude(answer, clock=lambda: clock.wall) as server:
        taken = ["lasting", "say", "31 min", "lasting", "rounds", "31 min"]
        await live(server, clock, ("anthropic/claude-opus-5-5",), "", taken)


@pytest.mark.parametrize("place", [1, 2, 4])
async def test_what_a_server_reads_after_a_drop_is_what_was_said_before_it(place: int) -> None:
    clock = WallClock()
    async with StrictClaude(answer, clock=lambda: clock.wall) as server:
        connections = Connections()
        life = Life(server, clock, [Watched("anthropic/claude-opus-5-5", server, connections, "")])
        for number in range(4):
            await life.take(number, "say")
        changes, cache = life.desk.session.changes, life.desk.session.context_usage.cache
        group = life.desk.state.ledger.groups[place].id
        change = changes.rewrite_of(group)
        held = next(hold for hold in cache.holds if hold.length <= change.messages + 1)
        await changes.drop(group)
        await life.take(5, "say")
        await connections.close()
        read, thoughts = (
            server.exchanges[-1].read,
            sum("thinking" in str(m) for m in server.exchanges[-1].body["messages"]),
        )
    assert read == held.tokens or (held.estimated and abs(read - held.tokens) < 0.2 * read)
    assert thoughts == 4 - (place % 2 == 1 and 1) - change.thoughts


async def test_a_summary_reads_the_conversation_from_the_cache() -> None:
    """It is asked behind the conversation, whose beginning the server holds, and what that renews the gauge knows."""
    clock = WallClock()
    async with StrictClaude(answer, clock=lambda: clock.wall) as server:
        await live(
            server, clock, ("anthropic/claude-opus-5-5",), "", ["long", "rounds", "long", "long", "4 min", "compact"]
        )
        summary = server.exchanges[-2]
        assert "Write the record now." in str(summary.body["messages"][-1])
        assert summary.read > summary.prompt // 2
