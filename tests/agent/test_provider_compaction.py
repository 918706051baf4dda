"""The provider's own compaction as who writes a summary, over a server with Claude's rules: its text is kept and undone as
any other, and where it is refused another way is taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.core.events import Usage
from ctxchat.core.prices import cost
from ctxchat.core.record import CompactionRecord
from ctxchat.models.direct import Connections
from tests.agent.test_cache_gauge import Life, WallClock, Watched, answer
from tests.agent.test_turn import of
from tests.doubles.strict import StrictClaude
from tests.doubles.strict.script import Answer, says

RECORD = "## Goal\nKnow the tide.\n" + "It reports every ninety seconds to the logger. " * 12


def reply(body: dict[str, Any]) -> Answer:
    return says(RECORD) if "compaction" in body else answer(body)


@asynccontextmanager
async def worked(server: StrictClaude, clock: WallClock) -> AsyncIterator[Life]:
    """A conversation of some turns with reasoning, whose summaries the provider writes."""
    connections = Connections()
    model = Watched("anthropic/claude-opus-5-5", server, connections, "")
    life = Life(server, clock, [model])
    life.desk.compactor.planner.summariser = ModelSummariser(model, clock, own=True, by_provider=True)
    for number, step in enumerate(["long", "rounds", "long", "long"]):
        await life.take(number, step)
    yield life
    await connections.close()


async def test_its_text_is_the_summary_and_goes_with_an_undo() -> None:
    clock = WallClock()
    async with StrictClaude(reply, clock=lambda: clock.wall) as server, worked(server, clock) as life:
        desk, before = life.desk, [item.message.text for item in life.desk.session.view.items]
        [record] = of(await desk.free_up(), CompactionRecord)
        asked = server.exchanges[-1]
        assert record.outcome == "compacted" and record.summary == RECORD.strip()
        assert asked.body["compaction"]["type"] == "summarize" and asked.read > asked.prompt // 2
        told = asked.usage["output_tokens"]
        prices = life.models[0].prices()
        assert prices
        usage = Usage(asked.prompt, told, asked.read, written=asked.written)
        assert record.cost_usd == pytest.approx(cost(prices, usage))
        await life.take(5, "say")
        sent = str(server.exchanges[-1].body["messages"])
        assert "'type': 'compaction'" not in sent and "It reports every ninety seconds to the logger" in sent
        await desk.session.changes.undo(record.id)
        assert [item.message.text for item in desk.session.view.items[: len(before)]] == before
        await life.take(6, "say")
        assert not [exchange.refused for exchange in server.exchanges if exchange.refused]


async def test_where_it_is_refused_it_is_asked_behind_the_conversation_and_not_again() -> None:
    clock = WallClock()
    async with StrictClaude(answer, clock=lambda: clock.wall, compacts=False) as server, worked(server, clock) as life:
        for number in range(2):
            [record] = of(await life.desk.free_up(), CompactionRecord)
            assert record.outcome == "compacted" and "Know the tide" in record.summary
            for _ in range(3):
                await life.take(number, "long")
        assert sum("compaction" in exchange.body for exchange in server.exchanges) == 1
