"""Coming back to a cold cache: the prepared summary goes in first where the person wants that, and nothing waits for one."""

from __future__ import annotations

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.events import Usage
from ctxchat.core.options import AutoCold, Options
from ctxchat.core.prices import ModelPrices, Rates
from ctxchat.core.times import epoch
from tests.agent.desk import Desk
from tests.agent.test_cache_gauge import WallClock
from tests.agent.test_compaction import LONG, Writer
from tests.doubles.scripted import ScriptedModel, says

PRICES = ModelPrices(Rates(4, 20, 0.2, 5, 8), cache_life=300)


@pytest.mark.parametrize(
    ("wish", "minutes", "compacted"),
    [("compact", 6, True), ("compact", 4, False), ("ask", 6, False), ("send", 6, False)],
)
async def test_a_summary_that_stands_ready_goes_in_when_it_is_cold(
    wish: AutoCold, minutes: int, compacted: bool
) -> None:
    counted = (says(LONG, usage=Usage(1_000 * n, 400, written=1_000 * n)) for n in range(1, 99))
    model = ScriptedModel(counted, window=Window(12_000, "configured"), prices=PRICES, rules=CacheRules(300))
    clock = WallClock()
    options = Options(keep_recent=2, strategy="summarize", auto_cold=wish, min_messages=1)
    desk = Desk(model, options=options, summariser=Writer(), clock=clock)
    for number in range(20):
        await desk.say(f"question {number}")
        await desk.compactor._prefetch.wait()
        if desk.compactor.ghost:
            break
    assert desk.compactor.ghost and not desk.state.compactions
    assert desk.session.context_usage.cache.warmth(epoch(clock.now())) == "warm"
    clock.wall += 60 * minutes
    await desk.say("and now?")
    assert [record.outcome for record in desk.state.compactions] == ["compacted"] * compacted


@pytest.mark.parametrize("minutes", [4, 6])
async def test_a_change_breaks_only_what_is_still_held(minutes: int) -> None:
    """What the gauge says the server reads anew because of a change by hand; with a cold cache it reads all of it anyway."""
    counted = (says(LONG, usage=Usage(1_000 * n, 400, written=1_000 * n)) for n in range(1, 9))
    model = ScriptedModel(counted, window=Window(60_000, "configured"), prices=PRICES, rules=CacheRules(300))
    clock = WallClock()
    desk = Desk(model, options=Options(keep_recent=2), clock=clock)
    for number in range(4):
        await desk.say(f"question {number}")
    clock.wall += 60 * minutes
    after = await desk.session.changes.drop(desk.state.ledger.groups[1].id)
    assert after.breaks and (after.breaks.lost > 0) == (minutes == 4)
