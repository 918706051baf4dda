"""What is said while the agent works: it joins the turn between two rounds, once, in order, and stays in view."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.budget import Window
from ctxchat.core.events import Event, Failed, Steered, TurnFinished
from ctxchat.core.messages import Part, Text
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from ctxchat.core.view import problems
from ctxchat.models.dialects import LOCAL, shape
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.examples import examples


class Mailbox:
    """Messages that wait, and who was asked for them when."""

    def __init__(self, *waiting: tuple[str, Sequence[Part]]) -> None:
        self.waiting = list(waiting)

    async def __call__(self) -> tuple[str, Sequence[Part]] | None:
        await asyncio.sleep(0)
        return self.waiting.pop(0) if self.waiting else None


async def said(desk: Desk, text: str, mailbox: Mailbox) -> list[Event]:
    async with aclosing(desk.session.send(text, next_steering_message=mailbox)) as stream:
        return [stamped.event async for stamped in stream]


def kinds(desk: Desk) -> list[tuple[str, int]]:
    return [(group.kind, group.turn) for group in desk.state.ledger.groups]


async def test_it_stands_behind_the_round_and_in_the_next_request():
    model = ScriptedModel([calls(("echo", {"text": "one"})), says("Done."), says("Next.")])
    desk = Desk(model, tools=[Echo()])
    events = await said(desk, "go", Mailbox(("also tabs", ()), ("and see this", (Text("x = 1", "a.py"),))))
    assert [(e.text, [a.name for a in e.attachments]) for e in events if isinstance(e, Steered)] == [
        ("also tabs", []),
        ("and see this", ["a.py"]),
    ]
    assert kinds(desk) == [("user", 1), ("round", 1), ("user", 1), ("user", 1), ("reply", 1)]
    assert [i.message.text for i in model.requests[1].view.items if i.kind == "user"][:2] == ["go", "also tabs"]
    assert desk.folded() == desk.state
    await desk.say("thanks")
    assert kinds(desk)[-2:] == [("user", 2), ("reply", 2)]
    roles = [message["role"] for message in shape(model.requests[1].view.items, LOCAL)]
    assert all(a != b or a == "tool" for a, b in pairwise(roles)), "what was first sent together is one"


async def test_a_turn_that_calls_nothing_more_leaves_it_where_it_waits():
    desk = Desk(ScriptedModel([says("Done.")]), tools=[Echo()])
    mailbox = Mailbox(("too late", ()))
    await said(desk, "go", mailbox)
    assert mailbox.waiting == [("too late", ())] and kinds(desk) == [("user", 1), ("reply", 1)]


async def test_a_store_that_refuses_it_ends_the_turn_and_the_record_is_without_it():
    desk = Desk(ScriptedModel([calls(("echo", {"text": "one"})), says("Done.")]), tools=[Echo()])

    async def refused() -> tuple[str, Sequence[Part]] | None:
        desk.journal.full = True
        return ("lost?", ())

    async with aclosing(desk.session.send("go", next_steering_message=refused)) as stream:
        events = [stamped.event async for stamped in stream]
    assert [e.kind for e in events if isinstance(e, Failed)] == ["storage"]
    assert kinds(desk) == [("user", 1), ("round", 1)]
    desk.journal.full = False


async def test_the_task_and_what_was_said_to_it_stay_when_room_is_made_in_the_middle():
    long = "word " * 400
    model = ScriptedModel(
        [says("Well."), *(calls(("echo", {"text": f"{n} {long}"})) for n in range(12)), says("Done.")],
        window=Window(4_000, "configured"),
    )
    desk = Desk(model, tools=[Echo()], options=Options(keep_recent=4, output_reserved=400, tool_result_tokens=500))
    await desk.say("what was before")
    events = await said(desk, "the task", Mailbox(("use tabs", ())))
    assert any(isinstance(e, CompactionRecord) and e.outcome == "compacted" for e in events)
    for request in model.requests[3:]:
        shown = [item.message.text for item in request.view.items if item.kind == "user"]
        assert [text for text in shown if text in {"the task", "use tabs"}] == ["the task", "use tabs"]
        assert not problems(request.view)


@pytest.mark.parametrize("stop", range(1, 30, 3))
async def test_a_turn_closed_around_it_keeps_it_once_or_not_at_all(stop: int):
    model = ScriptedModel([calls(("echo", {"text": "one"})), calls(("echo", {"text": "two"})), says("ok"), says("on")])
    desk = Desk(model, tools=[Echo()])
    mailbox = Mailbox(("a", ()), ("b", ()))
    async with aclosing(desk.session.send("go", next_steering_message=mailbox)) as stream:
        for _ in range(stop):
            if (await anext(stream, None)) is None:
                break
    told = [g.first.text for g in desk.state.ledger.groups if g.kind == "user"]
    assert told == ["go", "a", "b"][: len(told)]
    assert desk.folded() == desk.state
    await desk.say("on with it")
    assert not problems(model.requests[-1].view)


@examples(12, 100)
@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2)), max_size=4))
def test_any_turn_with_words_between_its_rounds_is_valid_for_every_request(rounds: list[tuple[int, int]]):
    model = ScriptedModel(
        [
            *(calls(*[("echo", {"text": "x"})] * count) for count, _ in rounds),
            says("Done.", reasoning="hm"),
            says("On."),
        ],
        keeps_reasoning=True,
    )
    desk = Desk(model, tools=[Echo()])
    script = [[f"{place}.{n}" for n in range(count)] for place, (_, count) in enumerate(rounds)]
    left = iter([text for texts in script for text in (*texts, "")])  # an empty one: nothing more waits here

    async def next_steering_message() -> tuple[str, Sequence[Part]] | None:
        text = next(left)
        return (text, ()) if text else None

    async def play() -> list[Event]:
        async with aclosing(desk.session.send("go", next_steering_message=next_steering_message)) as stream:
            return [stamped.event async for stamped in stream]

    events = asyncio.run(play())
    assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
    words = [text for texts in script for text in texts]
    assert [e.text for e in events if isinstance(e, Steered)] == words
    assert [g.first.text for g in desk.state.ledger.groups if g.kind == "user"] == ["go", *words]
    assert {g.turn for g in desk.state.ledger.groups} == {1}
    for request in model.requests:
        assert not problems(request.view)
        roles = [message["role"] for message in shape(request.view.items, LOCAL)]
        assert all(a != b or a == "tool" for a, b in pairwise(roles))
    assert desk.folded() == desk.state
