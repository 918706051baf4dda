"""A model that calls the same thing in vain, over and over: it is told, then stopped."""

from __future__ import annotations

from ctxchat.core.events import Failed, ToolFinished, TurnFinished
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says

VAIN = calls(("echo", {"text": "refuse"}))


async def test_the_same_failure_is_told_once_and_then_ends_the_turn():
    model = ScriptedModel([VAIN] * 9)
    desk = Desk(model, tools=[Echo()])
    events = await desk.say("go")
    told = ["3 times" in e.output for e in of(events, ToolFinished)]
    assert told == [False, False, True, False, False]
    assert of(events, Failed)[0].kind == "stuck" and "echo" in of(events, Failed)[0].text
    assert of(events, TurnFinished)[0].status == "error"
    assert [g.kind for g in desk.state.ledger.groups] == ["user", *["round"] * 5]
    assert desk.folded() == desk.state


async def test_arguments_written_differently_are_the_same_call():
    script = [calls(("echo", text)) for text in ('{"text":"refuse"}', '{ "text": "refuse" }') * 5]
    events = await Desk(ScriptedModel(script), tools=[Echo()]).say("go")
    assert len(of(events, ToolFinished)) == 5


async def test_other_failures_and_calls_that_work_are_no_circle():
    others = [calls(("echo", {"text": "refuse", "times": n})) for n in range(6)]
    between = [step for _ in range(6) for step in (VAIN, calls(("echo", {"text": "fine"})))]
    events = await Desk(ScriptedModel([*others, *between, says("done")]), tools=[Echo()]).say("go")
    assert of(events, TurnFinished)[0].status == "done"
    assert not any("3 times" in e.output for e in of(events, ToolFinished))
