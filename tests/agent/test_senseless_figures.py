"""Ports other than ours may say anything of what a reply cost: a turn ends, the store takes it, the next one works."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.model_knowledge import Known
from ctxchat.core.calibration import PRIOR, Anchor, Calibration, Mix, most_tokens
from ctxchat.core.events import Failed, TurnFinished, Usage
from ctxchat.core.journal import Measured, fold
from ctxchat.core.usage import MAX_CALL_USD, MAX_HIDDEN_THOUGHT_TOKENS, sound
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import open_journal
from tests.agent.desk import Desk
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, says

NAN, INFINITE = float("nan"), float("inf")

ODD = [
    Usage(2**63, 2**63),
    Usage(100, 10**25),
    Usage(-5, -5),
    Usage(10**9, 10**7, cost_usd=10_025.0),
    Usage(9_000_000, 12, cost_usd=22.5),
    Usage(100, 10**6, cost_usd=10.0),
    Usage(None, "many"),  # type: ignore[arg-type]
    Usage(True, True, [1], {"a": 2}, cost_usd="free"),  # type: ignore[arg-type]
    "usage",
    Usage(100, -1),
    Usage(100, 5, cached=10**30, reasoning=-7),
    Usage(100, 5, cost_usd=NAN),
    Usage(100, 5, cost_usd=-INFINITE),
    Usage(NAN, INFINITE),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("usage", ODD, ids=repr)
async def test_a_turn_with_odd_figures_ends_is_stored_and_the_next_one_works(tmp_path, usage: Usage) -> None:
    with Database(tmp_path / "data") as database:
        opened = open_journal(database, sessions.create(database))
        desk = Desk(ScriptedModel([says("one", usage=usage), says("two")]), journal=opened.journal)  # type: ignore[arg-type]
        for said in ("one", "two"):
            events = await desk.say("go on")
            assert not of(events, Failed) and of(events, TurnFinished)[0].text == said
            context_usage = desk.session.context_usage
            assert (
                0 < context_usage.used < 1_000
                and 0 <= context_usage.cached <= context_usage.used
                and context_usage.cost_usd == 0
            )
        await opened.journal.close()
        stored = loading.load_state(database, opened.journal.session).state
        assert [m.text for m in stored.ledger.messages()] == ["go on", "one", "go on", "two"]
        assert stored.used == desk.state.used


@pytest.mark.parametrize(
    "usage", [Usage(10**9, 10**7), Usage(31_000, 9), Usage(12_000, 9), Usage(3, 1), Usage(1, 150_000)], ids=repr
)
@pytest.mark.parametrize("first", [True, False])
async def test_one_senseless_figure_poisons_neither_this_session_nor_a_new_one(usage: Usage, first: bool) -> None:
    """Sound ones before it or behind it: the gauge, what is learned and the next session are as if it had not been."""
    kept = Kept()
    replies = [says("one"), says("two"), says("three")]
    replies[0 if first else 2] = says("odd", usage=usage)
    desk = Desk(ScriptedModel(replies), system="Be brief. " * 500, knowledge_store=kept)
    for text in ("first", "second", "third"):
        await desk.say(text)
    honest = desk.session.view.raw
    assert 0.7 * honest < desk.session.context_usage.used < 1.4 * honest
    new = Desk(ScriptedModel([says("hello")]), system="Be brief. " * 500, knowledge_store=kept)
    fresh = await new.session.measure()
    assert fresh.estimated and 0.7 * new.session.view.raw < fresh.used < 1.5 * new.session.view.raw
    assert all(level(c) for c in (kept.known.calibration, *desk.state.calibrations.values()))


def level(calibration: Calibration) -> bool:
    return 0.5 < calibration.estimate_request(Mix(10_000)) / 10_000 < 2


class Kept:
    """What is learned of models, in memory."""

    def __init__(self) -> None:
        self.known = Known()

    def load(self, model: str) -> Known:
        return self.known

    async def save(self, model: str, known: Known) -> None:
        self.known = known


async def test_figures_of_old_databases_are_made_sound_when_they_are_read() -> None:
    mix = Mix(1_700)
    poisoned = msgspec.convert(
        {"rates": [8.0] * 4 + [2.0] * 7 + [20_000.0], "doubts": [0.1] * 12, "samples": 3}, Calibration
    )
    record = Measured(
        "m",
        Usage(10**9, 10**7, cost_usd=10_025.0),
        1_010_000_000,
        Anchor(1_010_000_000, mix, 0),
        poisoned,
        turn_end=True,
    )
    state = fold([Measured("m", Usage(1_700, 10, cost_usd=0.5), 1_710, Anchor(1_710, mix, 0), turn_end=True), record])
    assert (state.used, state.fills, state.cost_usd, state.anchor) == (1_710, (1_710, 1_710), 0.5, None)
    assert state.calibrations["m"].rates == PRIOR


@given(rates=st.lists(st.floats(), min_size=12, max_size=12), doubts=st.lists(st.floats(), min_size=12, max_size=12))
def test_any_stored_rates_estimate_within_bounds(rates: list[float], doubts: list[float]) -> None:
    made = Calibration(tuple(rates), tuple(doubts))
    assert 0 <= made.estimate_request(Mix(1_000)) <= most_tokens(1_000)
    assert 0 <= made.error(Mix(1_000), whole=True) < INFINITE


context_usage = st.one_of(st.integers(-(2**70), 2**70), st.floats())


@given(st.builds(Usage, context_usage, context_usage, context_usage, context_usage, cost_usd=context_usage))
def test_sound_figures_fit_together(usage: Usage) -> None:
    made = sound(usage, 500, 100)
    assert 0 <= made.cached <= made.prompt <= most_tokens(500)
    assert 0 <= made.reasoning <= made.completion <= 400 + MAX_HIDDEN_THOUGHT_TOKENS
    assert 0 <= made.cost_usd <= MAX_CALL_USD
    assert made.prompt or not made.completion
    assert sound(made, 500, 100) == made
