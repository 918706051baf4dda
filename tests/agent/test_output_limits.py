"""Replies that reach their output limit: text is gone on with, once; a call is answered as cut; and the room a reply is given."""

from __future__ import annotations

import json

from ctxchat.agent.turn.tool_runner import CUT
from ctxchat.core.budget import Window
from ctxchat.core.events import Failed, Notice, ReasoningDelta, TextDelta, ToolFinished, TurnFinished, Usage
from ctxchat.core.ledger import open_end
from ctxchat.core.messages import ToolCall
from ctxchat.core.notes import CONTINUE_REQUEST, MISSING_CALL
from ctxchat.core.options import Options
from tests.agent.desk import Desk
from tests.agent.test_turn import of
from tests.doubles.scripted import End, ScriptedModel, calls, says

QUIET = Options(auto_compact="off", prepare=False)

HALF = "The first half of a long answer, which breaks off in the mid"
REST = "dle of a word and then goes on to its end."


def cut(text: str, **more: object) -> tuple[object, ...]:
    return TextDelta(text), End(finish="length", **more)  # type: ignore[arg-type]


def desk_of(*script: object, limit: int = 900) -> tuple[Desk, ScriptedModel]:
    model = ScriptedModel(script, limit=limit)  # type: ignore[arg-type]
    return Desk(model, options=QUIET), model


async def test_a_reply_cut_in_its_text_goes_on_by_itself() -> None:
    desk, model = desk_of(cut(HALF), says(REST))
    events = await desk.say("tell me")
    [finished] = of(events, TurnFinished)
    assert (finished.status, finished.text, finished.rounds) == ("done", HALF + REST, 2)
    assert [n.text for n in of(events, Notice)] == ["The reply was cut at its output limit of 900 tokens; it goes on."]
    *_, half, request = (item.message for item in model.views[1].items)
    assert half.role == "assistant" and half.text.startswith(HALF)
    assert CONTINUE_REQUEST in request.text, "what asks for the rest is in the record"
    assert open_end(desk.state.ledger) is None and desk.folded() == desk.state


async def test_what_the_model_says_again_is_left_out() -> None:
    desk, _ = desk_of(cut(HALF), says(f"{HALF[-40:]}{REST}"))
    events = await desk.say("tell me")
    assert of(events, TurnFinished)[0].text == HALF + REST
    assert "".join(e.text for e in of(events, TextDelta)) == HALF + REST


async def test_it_goes_on_once_and_then_says_what_helps() -> None:
    desk, model = desk_of(cut(HALF), cut("dle of"), says(" a word."))
    events = await desk.say("tell me")
    [finished] = of(events, TurnFinished)
    assert (finished.status, finished.text) == ("done", f"{HALF}dle of")
    assert len(model.requests) == 2
    last = of(events, Notice)[-1].text
    assert "max_output" in last and "/continue" in last and "output_reserved" not in last
    assert open_end(desk.state.ledger) is not None
    resumed = [stamped.event async for stamped in desk.session.resume()]
    assert "".join(e.text for e in of(resumed, TextDelta)) == " a word."


async def test_a_model_that_has_nothing_to_add_had_said_all() -> None:
    desk, model = desk_of(cut(HALF), (End(),))
    events = await desk.say("tell me")
    [finished] = of(events, TurnFinished)
    assert (finished.status, finished.text, len(model.requests)) == ("done", HALF, 2)
    assert (await desk.say("and now?")) and desk.folded() == desk.state


async def test_thoughts_that_took_all_the_room_are_no_text_to_go_on_with() -> None:
    thought = (ReasoningDelta("hm " * 40), End(finish="length"))
    desk, model = desk_of(thought)
    events = await desk.say("think")
    assert len(model.requests) == 1 and of(events, TurnFinished)[0].status == "error"
    hint = of(events, Failed)[0].hint
    assert "max_output" in hint and "/effort" in hint


async def test_a_call_that_was_cut_is_told_so_and_does_not_run() -> None:
    whole = ToolCall("a", "write_file", json.dumps({"path": "a.txt", "content": "A"}))
    for arguments in ('{"path": "b.txt", "content": "B', ""):
        reply = (End(finish="length", calls=(whole, ToolCall("b", "write_file", arguments))),)
        desk, model = desk_of(reply, says("ok"), limit=32_000)
        events = await desk.say("write both")
        results = {e.call_id: e for e in of(events, ToolFinished)}
        said = CUT.format(limit="32,000")
        assert said in results["b"].output and "JSON" not in results["b"].output
        assert said not in results["a"].output, "the calls before it are whole"
        assert said in model.views[1].items[-1].message.text
        assert any("not whole" in n.text for n in of(events, Notice))


async def test_a_whole_call_behind_which_the_limit_was_reached_runs() -> None:
    desk, _ = desk_of(calls(("no_such_tool", {})), says("ok"))
    usual = of(await desk.say("go"), ToolFinished)[0].output
    desk, _ = desk_of((End(finish="length", calls=(ToolCall("", "no_such_tool", "{}"),)),), says("ok"))
    assert of(await desk.say("go"), ToolFinished)[0].output == usual


async def test_a_reply_has_the_room_that_the_prompt_leaves() -> None:
    model = ScriptedModel([says("one", usage=Usage(5_000, 20)), says("two")], window=Window(50_000, "catalogue"))
    desk = Desk(model, options=QUIET)
    await desk.say("hi")
    await desk.say("again")
    assert 44_000 < model.requests[1].max_output < 45_000
    assumed = ScriptedModel([says("one")], window=Window(4_000, "assumed"))
    await Desk(assumed, options=QUIET).say("word " * 4_000)
    assert assumed.requests[0].max_output == 1_000, "what is planned, where nobody knows"


async def test_a_call_that_was_announced_and_did_not_come_is_told_to_the_model_once() -> None:
    announced = (TextDelta("I look."), End(finish="tool_calls"))
    desk, model = desk_of(announced, says("There is nothing."))
    events = await desk.say("look")
    [finished] = of(events, TurnFinished)
    assert (finished.status, finished.text, finished.rounds) == ("done", "There is nothing.", 2)
    assert model.views[1].items[-1].message.text == MISSING_CALL
    assert [n.text for n in of(events, Notice)] == ["The model said that it would call a tool, and did not."]
    desk, model = desk_of(announced, announced)
    assert of(await desk.say("look"), TurnFinished)[0].text == "I look." and len(model.requests) == 2, "once in a turn"
    assert desk.folded() == desk.state
