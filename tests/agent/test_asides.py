"""Questions beside the conversation: asked behind all that the model sees, and nothing of them stays but what they cost."""

from __future__ import annotations

import asyncio

import pytest

from ctxchat.agent.asides import Aside
from ctxchat.agent.spending_budget import SpendingBudget
from ctxchat.core.errors import ModelError
from ctxchat.core.events import TurnFinished, Usage
from ctxchat.core.journal import PrefixRead, Spent
from ctxchat.core.limits import SpendingLimits
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelRequest
from tests.agent.desk import Desk
from tests.agent.test_spending_limits import PRICES
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, fails, says

ANSWER = says("It is 8123.", usage=Usage(900, 5, cached=800, cost_usd=0.02))


def sent(request: ModelRequest) -> list[Message]:
    return [item.message for item in request.view.items]


async def told(desk: Desk, question: str, *earlier: Aside) -> str:
    return "".join([piece async for piece in desk.session.asides.ask(question, earlier)])


async def test_it_is_the_last_request_and_a_question_more_and_leaves_its_cost_alone() -> None:
    model = ScriptedModel([says("The port is 8123."), ANSWER, says("Yes."), says("Done.")], prices=PRICES)
    desk = Desk(model)
    await desk.say("which port?")
    before, view = desk.state.ledger, desk.session.view
    assert await told(desk, "the port again?") == "It is 8123."
    aside = sent(model.requests[1])
    assert aside[:-1] == [item.message for item in view.items] and aside[-1].text.startswith("the port again?")
    assert model.requests[1].view.tools == model.requests[0].view.tools

    assert await told(desk, "sure?", Aside("the port again?", "It is 8123.")) == "Yes."
    *_, first, answer, second = sent(model.requests[2])
    assert (answer.role, answer.text, second.text) == ("assistant", "It is 8123.", "sure?")
    assert first.text == aside[-1].text, "the second request is the first and something more"

    assert desk.state.ledger == before and desk.session.view == view
    await desk.say("go on")
    assert "8123" not in sent(model.requests[3])[-1].text and not any(
        "again?" in m.text for m in sent(model.requests[3])
    )
    spent, read = (next(r for r in desk.journal.records if isinstance(r, kind)) for kind in (Spent, PrefixRead))
    assert (spent.cost_usd, spent.purpose) == (0.02, "other") and read.cached == 800
    assert desk.state.cost_usd == pytest.approx(0.02)


async def test_it_is_answered_while_a_turn_is_under_way() -> None:
    model = ScriptedModel([says("The port is 8123."), says("Long work.", delay=0.2), ANSWER], prices=PRICES)
    desk = Desk(model)
    await desk.say("which port?")
    work = asyncio.create_task(desk.say("work"))
    await asyncio.sleep(0.05)
    assert len(model.requests) == 2
    assert await told(desk, "the port?") == "It is 8123." and not work.done()
    events = await work
    assert of(events, TurnFinished)[-1].text == "Long work."


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (calls(("read_file", {"path": "a"})), "wanted to call read_file"),
        (says(""), "said nothing"),
        (says("It is", finish="length"), "was cut"),
        (fails(ModelError("No such model.", kind="not_found")), "No such model"),
    ],
)
async def test_what_is_no_answer_is_said(reply: object, why: str) -> None:
    desk = Desk(ScriptedModel([says("Hello."), reply]))  # type: ignore[list-item]
    await desk.say("hello")
    ledger = desk.state.ledger
    with pytest.raises(ModelError, match=why):
        await told(desk, "well?")
    assert desk.state.ledger == ledger


async def test_limits_hold_for_it() -> None:
    model = ScriptedModel([ANSWER], prices=PRICES)
    desk = Desk(model)
    desk.session._conversation.spending = SpendingBudget(SpendingLimits(session=0.000001))
    with pytest.raises(ModelError, match="limit is reached"):
        await told(desk, "well?")
    assert not model.requests
