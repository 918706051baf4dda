"""A window of a million is not filled because it is there: room is made where the price rises, or where the person says."""

from __future__ import annotations

import pytest

from ctxchat.core.budget import LARGE_WINDOW_LIMIT, Window, make_budget, working_limit
from ctxchat.core.options import Options
from ctxchat.core.prices import ModelPrices, PriceStep, Rates
from ctxchat.presentation.alarms import legend
from ctxchat.presentation.cache_text import cache_sentences
from ctxchat.presentation.usage_text import sentence
from tests.agent.desk import Desk
from tests.agent.test_compaction import LONG, Writer
from tests.doubles.scripted import ScriptedModel, says

RATES = Rates(2, 10, 0.1, 2.5, 2.5)
STEPPED = ModelPrices(RATES, (PriceStep(6_000, Rates(4, 15, 0.2, 5, 5)),))


@pytest.mark.parametrize(
    ("prices", "asked", "expected"), [(STEPPED, 0, 6_000), (STEPPED, 9_000, 9_000), (None, 2_000_000, 0)]
)
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


@pytest.mark.parametrize(
    ("window", "step", "asked", "at"),
    [
        (400_000, 0, 0, (0, "")),
        (400_001, 0, 0, (LARGE_WINDOW_LIMIT, "large_window")),
        (1_000_000, 0, 0, (LARGE_WINDOW_LIMIT, "large_window")),
        (1_000_000, 512_000, 0, (LARGE_WINDOW_LIMIT, "large_window")),
        (1_000_000, 272_000, 0, (272_000, "price_step")),
        (1_000_000, 100_000, 0, (100_000, "price_step")),
        (1_000_000, 272_000, 600_000, (600_000, "configured")),
        (1_000_000, 272_000, 1_000_000, (0, "configured")),
        (128_000, 272_000, 0, (0, "")),
    ],
)
def test_a_large_window_is_not_filled_unless_the_settings_say_so(
    window: int, step: int, asked: int, at: tuple[int, str]
) -> None:
    budget = make_budget(Window(window, "provider"), 4_096, 0.75, 0.5, working=working_limit(window, asked, step))
    assert (budget.working.tokens, budget.working.source) == at
    assert budget.trigger == min(at[0] or window, int(budget.limit * 0.75))


async def test_the_default_is_said_to_be_one() -> None:
    desk = Desk(ScriptedModel([says("Yes.")], window=Window(1_000_000, "provider")))
    await desk.say("hello")
    usage = desk.session.context_usage
    assert (usage.working_limit, usage.working_limit_source) == (LARGE_WINDOW_LIMIT, "large_window")
    for words in (" ".join(legend(usage, 0)), sentence(usage), cache_sentences(usage, 0)):
        assert "272.0k" in words and "default for large windows" in words
