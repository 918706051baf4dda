"""Calls as no model should write them, from whatever port: the turn ends, the next request is valid, each call has its result."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import Failed, ToolFinished, TurnFinished
from ctxchat.core.messages import ToolCall
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import End, ScriptedModel, calls, says
from tests.examples import examples

anything: st.SearchStrategy[Any] = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["", "a", "x" * 30_000, None, 7, True, {"a": 1}, ["b"], "echo", '{"text": "x"}']
)


@examples(20, 100)
@given(st.lists(st.builds(ToolCall, anything, anything, anything), min_size=1, max_size=4))
def test_any_calls_are_answered_and_the_session_goes_on(wanted: list[ToolCall]) -> None:
    async def run() -> None:
        model = ScriptedModel([(End("tool_calls", tuple(wanted)),), says("well"), says("on")])
        desk = Desk(model, tools=[Echo()])
        events = [*await desk.say("go"), *await desk.say("and on")]
        assert not of(events, Failed) and [e.text for e in of(events, TurnFinished)] == ["well", "on"]
        assert len(of(events, ToolFinished)) == len(wanted)
        assert all(problems(view) == [] for view in model.views)

    asyncio.run(run())


async def test_a_tool_of_others_with_a_name_no_provider_takes_is_offered_under_one_it_does() -> None:
    model = ScriptedModel([calls(("look_up_", {"text": "x"})), says("well")])
    tool = Echo("look up!")
    await Desk(model, tools=[tool]).say("go")
    assert [spec.name for spec in model.views[0].tools] == ["look_up_"] and tool.ran == [{"text": "x"}]
