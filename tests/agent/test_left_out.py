"""What a server refuses of a request is left out for good, said once, and the request made again."""

from __future__ import annotations

from contextlib import aclosing

from ctxchat.core.errors import ModelError
from ctxchat.core.events import Failed, Notice, TextDelta, TurnFinished
from ctxchat.core.images import data_url
from ctxchat.core.messages import Image
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.images import png
from tests.doubles.scripted import ScriptedModel, says

NO_IMAGE = ModelError("Could not process image.", kind="bad_request", status=400, body="Could not process image")
NO_TOOL = ModelError("No.", kind="bad_request", status=400, body="Invalid schema for function 'echo': no items")
SHOT = Image(data_url(png(2, 2)), 2, 2, "shot.png")


def images(model: ScriptedModel, request: int) -> int:
    """How many a request holds."""
    parts = [p for item in model.requests[request].view.items for p in item.message.content if item.message.content]
    return sum(isinstance(part, Image) for part in parts)


async def sent(desk: Desk, text: str, *parts: Image) -> list[object]:
    async with aclosing(desk.session.send(text, parts)) as stream:
        return [stamped.event async for stamped in stream]


async def test_a_refused_image_is_left_out_with_a_mark_and_stays_out() -> None:
    desk = Desk(model := ScriptedModel([[NO_IMAGE], says("I see none."), says("4")]))
    events = await sent(desk, "look", SHOT)
    assert of(events, TurnFinished)[0].status == "done" and of(events, TextDelta)
    assert "shot.png, left out" in " ".join(n.text for n in of(events, Notice))
    await desk.say("2+2?")
    assert [images(model, n) for n in range(3)] == [1, 0, 0]
    said = " ".join(item.message.text for item in model.requests[2].view.items)
    assert "[image shot.png 2×2: left out, the server refused it]" in said
    again = Desk(later := ScriptedModel([says("ok")]), records=desk.journal.records)
    await again.say("and after a restart?")
    assert images(later, 0) == 0
    await desk.session.changes.undo()  # as any change


async def test_images_that_were_accepted_before_stay() -> None:
    desk = Desk(model := ScriptedModel([says("A pier."), [NO_IMAGE], says("ok")]))
    await sent(desk, "look", SHOT)
    await sent(desk, "and this?", SHOT)
    assert [images(model, n) for n in range(3)] == [1, 2, 1]


async def test_without_images_such_a_refusal_is_an_error() -> None:
    desk = Desk(ScriptedModel([[NO_IMAGE]]))
    assert of(await desk.say("hi"), Failed)


async def test_a_refused_tool_is_left_out_by_name_and_the_session_goes_on() -> None:
    desk = Desk(model := ScriptedModel([[NO_TOOL], says("ok"), says("ok")]), tools=[Echo()])
    events = await desk.say("hi")
    assert of(events, TurnFinished)[0].status == "done" and "the tool echo" in of(events, Notice)[0].text
    assert [[tool.name for tool in request.view.tools] for request in model.requests] == [["echo"], []]
    again = Desk(later := ScriptedModel([says("ok")]), tools=[Echo()], records=desk.journal.records)
    await again.say("hi")
    assert not later.requests[0].view.tools
