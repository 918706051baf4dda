"""Ports other than ours may say anything of what a reply cost: a turn ends, the store takes it, the next one works."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import Failed, TurnFinished, Usage
from ctxchat.core.usage import MOST_TOKENS, sound
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
            figures = desk.session.figures
            assert 0 < figures.used < 1_000 and 0 <= figures.cached <= figures.used and figures.cost_usd == 0
        await opened.journal.close()
        stored = loading.load(database, opened.journal.session).state
        assert [m.text for m in stored.ledger.messages()] == ["go on", "one", "go on", "two"]
        assert stored.used == desk.state.used


figures = st.one_of(st.integers(-(2**70), 2**70), st.floats())


@given(st.builds(Usage, figures, figures, figures, figures, cost_usd=figures))
def test_sound_figures_fit_together(usage: Usage) -> None:
    made = sound(usage)
    assert 0 <= made.cached <= made.prompt <= MOST_TOKENS
    assert 0 <= made.reasoning <= made.completion <= MOST_TOKENS
    assert 0 <= made.cost_usd < INFINITE
    assert made.prompt or not made.completion
    assert sound(made) == made
