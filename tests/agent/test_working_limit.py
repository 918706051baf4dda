"""A window of a million is not filled because it is there: room is made where the price rises, or where the person says."""

from __future__ import annotations

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.options import Options
from ctxchat.core.prices import ModelPrices, PriceStep, Rates
from tests.agent.desk import Desk
from tests.agent.test_compaction import LONG, Writer
from tests.doubles.scripted import ScriptedModel, says

RATES = Rates(2, 10, 0.1, 2.5, 2.5)
STEPPED = ModelPrices(RATES, (PriceStep(6_000, Rates(4, 15, 0.2, 5, 5)),))


@pytest.mark.parametrize(("prices", "asked", "expected"), [(STEPPED, 0, 6_000), (STEPPED, 9_000, 9_000), (None, 0, 0)])
async def test_room_is_made_there(prices: ModelPrices | None, asked: int, expected: int) -> None:
    model = ScriptedModel((says(LONG) for _ in range(99)), window=Window(1_000_000, "configured"), prices=prices)
    options = Options(keep_recent=2, strategy="summarize", working_limit=asked, prepare=False, min_messages=1)
    desk = Desk(model, options=options, summariser=Writer())
    largest = 0
    for number in range(10):
        await desk.say(f"question {number} " + "and more of it " * 120)
        largest = max(largest, model.views[-1].raw)
    context_usage = desk.session.context_usage
    assert context_usage.working_limit == expected
    assert context_usage.trigger_tokens == (expected or round(context_usage.limit * 0.75))
    assert bool(desk.state.compactions) == bool(expected)
    assert largest <= expected * 1.05 if expected else largest > 9_000
