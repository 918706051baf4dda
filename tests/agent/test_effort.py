"""Levels of effort: of the settings, of a session, in the request; refused where the model has none of the name."""

from __future__ import annotations

import pytest

from ctxchat.core.errors import UsageError
from tests.agent.desk import Desk
from tests.doubles.scripted import ScriptedModel, says

LEVELS = ("low", "medium", "high")


def model_of(*texts: str, efforts: tuple[str, ...] | None = LEVELS) -> ScriptedModel:
    return ScriptedModel([says(text) for text in texts], efforts=efforts)


async def test_a_level_that_is_chosen_goes_with_every_request_and_stays_with_the_session() -> None:
    model = model_of("one", "two")
    desk = Desk(model)
    await desk.say("hi")
    await desk.session.setup.choose_effort("high")
    await desk.say("again")
    assert [request.effort for request in model.requests] == ["", "high"]
    assert desk.folded() == desk.state

    later = model_of("three", "four")
    back = Desk(later, records=desk.journal.records)
    assert back.session.setup.effort == "high"
    await back.say("and?")
    await back.session.setup.choose_effort("")
    await back.say("so?")
    assert [request.effort for request in later.requests] == ["high", ""]


@pytest.mark.parametrize(
    ("efforts", "level", "said"),
    [(LEVELS, "max", "has low, medium and high"), ((), "low", "no levels"), (None, "much", "minimal")],
)
async def test_a_level_that_the_model_has_not_is_refused_with_its_own(
    efforts: tuple[str, ...] | None, level: str, said: str
) -> None:
    desk = Desk(model_of("one", efforts=efforts))
    with pytest.raises(UsageError, match=said):
        await desk.session.setup.choose_effort(level)
    assert desk.session.setup.effort == ""


async def test_a_model_of_which_nobody_says_takes_any_known_level() -> None:
    model = model_of("one", efforts=None)
    desk = Desk(model)
    await desk.session.setup.choose_effort("xhigh")
    await desk.say("hi")
    assert model.requests[0].effort == "xhigh"


async def test_another_model_gets_the_level_only_where_it_has_it() -> None:
    desk = Desk(model_of("one"))
    await desk.session.setup.choose_effort("high")
    other = model_of("two", efforts=("low",))
    desk.session.setup.use(await desk.conversation.learned_of(other))
    await desk.say("hi")
    assert other.requests[0].effort == "" and desk.session.setup.effort == ""
