"""Titles that the model writes: once, after the first answer, and never over one that a person gave."""

from __future__ import annotations

from ctxchat.core.errors import ModelError
from ctxchat.core.events import Usage
from ctxchat.core.journal import Named, Spent
from tests.agent.desk import Desk
from tests.doubles.scripted import Reply, ScriptedModel, fails, says

SAID = "Hello, could you please have a look at why the gauge at pier seven stands still since yesterday?"


async def named(*replies: Reply) -> Desk:
    desk = Desk(ScriptedModel([says("Its logger is full."), *replies]))
    await desk.say(SAID)
    return desk


async def test_it_names_the_session_and_leaves_the_conversation_alone() -> None:
    desk = await named(says('"Gauge at pier seven".\n', usage=Usage(300, 8, cost_usd=0.001)))
    before = desk.session.view
    assert desk.state.title == "Hello, could you please have a look at why the gauge at…"
    assert await desk.session.write_title() == "Gauge at pier seven" == desk.state.title
    assert desk.session.view == before
    await desk.session.close()
    kinds = [type(record) for record in desk.journal.records]
    assert kinds.count(Named) == 2 and kinds.count(Spent) == 1
    model = desk.conversation.model
    assert isinstance(model, ScriptedModel)
    request = model.requests[-1]
    assert not request.view.tools and SAID in request.view.items[-1].message.text


async def test_a_persons_title_stays_and_what_is_no_title_changes_nothing() -> None:
    desk = await named(says("Gauge"))
    await desk.session.rename("Mine")
    assert await desk.session.write_title() == "" and desk.state.title == "Mine"
    for reply in (says("  \n"), fails(ModelError("no", kind="server"))):
        desk = await named(reply)
        before = desk.state.title
        assert await desk.session.write_title() == "" and desk.state.title == before
    assert await Desk(ScriptedModel([])).session.write_title() == ""


async def test_a_secret_is_in_no_title_and_not_in_the_request() -> None:
    secret = "ghp_" + "a1B2" * 9
    desk = Desk(ScriptedModel([says("Fine."), says(f"Token {secret}")]))
    await desk.say(f"is {secret} still good?")
    assert secret not in await desk.session.write_title()
    model = desk.conversation.model
    assert isinstance(model, ScriptedModel)
    assert secret not in model.requests[-1].view.items[-1].message.text
