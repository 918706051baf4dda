"""A turn from the first event to the last, over the scripted model: what is said, run, sealed and shown."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TypeVar

import msgspec
import pytest

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    ApprovalRequested,
    Event,
    Failed,
    Notice,
    Retry,
    TextDelta,
    ToolFinished,
    ToolProgress,
    TurnFinished,
    Usage,
)
from ctxchat.core.facts import collect
from ctxchat.core.journal import Measured
from ctxchat.core.ports import ToolOutput, ToolText
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import ScriptedModel, calls, fails, hangs, says

T = TypeVar("T")


def of(events: list[Event], kind: type[T]) -> list[T]:
    return [e for e in events if isinstance(e, kind)]


def adds_up(context_usage: ContextUsage) -> bool:
    inside = sum(s.tokens for s in context_usage.sections if s.name not in {"reserved", "free"})
    whole = sum(s.tokens for s in context_usage.sections)
    return inside == context_usage.used and (whole == context_usage.window or context_usage.used > context_usage.limit)


async def test_a_turn_with_tools_is_sealed_in_the_order_of_the_calls():
    echo = Echo()
    model = ScriptedModel(
        [calls(("echo", {"text": "one"}), ("echo", {"text": "crash"}), ("echo", {"text": "three"})), says("Done.")]
    )
    desk = Desk(model, tools=[echo])
    events = await desk.say("go")
    assert {"one", "three"} <= {e.output for e in of(events, ToolFinished)}  # as they end, in any order
    round_ = desk.state.ledger.groups[1]
    assert [m.text for m in round_.messages[1:]] == [
        "one",
        "echo failed: ZeroDivisionError: a bug of the tool",
        "three",
    ]
    assert of(events, TurnFinished)[0].status == "done"
    assert desk.folded() == desk.state
    assert all(not problems(request.view) for request in model.requests)
    assert all(adds_up(e) for e in of(events, ContextUsage))


@pytest.mark.parametrize(
    "arguments", ["[" * 100_000, '{"text":' * 5_000, '{"a":' * 900 + "1" + "}" * 900, '{"a":"\ud800"}']
)
async def test_arguments_beyond_all_measure_end_neither_the_turn_nor_the_next(arguments: str):
    model = ScriptedModel([calls(("echo", arguments)), says("ok"), says("and on")])
    desk = Desk(model, tools=[Echo()])
    assert of(await desk.say("go"), TurnFinished)[0].status == "done"
    assert of(await desk.say("again"), TurnFinished)[0].status == "done"
    await desk.session.preview()
    assert all(not problems(request.view) for request in model.requests)


async def test_broken_arguments_unknown_tools_and_missing_ones_are_told_to_the_model():
    model = ScriptedModel(
        [calls(("echo", "{broken"), ("nope", {"x": 1}), ("echo", {}), ("echo", {"text": "refuse"})), says("ok")]
    )
    desk = Desk(model, tools=[Echo()])
    events = await desk.say("go")
    outputs = [m.text for m in desk.state.ledger.groups[1].messages[1:]]
    assert {e.output for e in of(events, ToolFinished)} == set(outputs)
    assert "not a JSON object" in outputs[0]
    assert "no tool 'nope'" in outputs[1]
    assert "needs text" in outputs[2]
    assert "refused by the tool itself" in outputs[3]
    assert not problems(model.requests[1].view)


async def test_approval_once_session_and_denied():
    tool = Echo("write", writes=True)
    script = [calls(("write", {"text": t})) for t in ("a", "a", "a", "b")]
    model = ScriptedModel([*script, says("ok")])
    desk = Desk(model, tools=[tool])
    events = await desk.say("go", answers=["once", "session", "deny:not this one"])
    assert len(of(events, ApprovalRequested)) == 3
    assert [r["text"] for r in tool.ran] == ["a", "a", "a"]
    assert "not this one" in of(events, ToolFinished)[3].output
    assert of(events, ToolFinished)[3].status == "denied"


async def test_nobody_to_ask_denies_and_read_only_denies():
    for kwargs in ({"interactive": False}, {"mode": "read-only"}):
        tool = Echo("write", writes=True)
        desk = Desk(ScriptedModel([calls(("write", {"text": "a"})), says("ok")]), tools=[tool], **kwargs)
        events = await desk.say("go")
        assert tool.ran == []
        assert of(events, ToolFinished)[0].status == "denied"


async def test_closing_a_turn_in_the_middle_of_a_stream_keeps_what_was_said():
    model = ScriptedModel([hangs("half an answer"), says("whole")])
    desk = Desk(model)
    async with aclosing(desk.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, TextDelta) and "answer" in stamped.event.text:
                break
    reply = desk.state.ledger.groups[-1].first
    assert reply.interrupted and reply.text.startswith("half an")
    assert not desk.session.busy
    events = await desk.say("again")
    assert of(events, TurnFinished)[0].text == "whole"
    assert desk.folded() == desk.state
    told = next(item for item in model.requests[-1].view.items if item.message.role == "assistant")
    assert told.message.text == f"{reply.text.rstrip()}\n[cut off here]", "it is not taken for the whole answer"
    assert told.tokens == desk.conversation.counter.message(told.message)


async def test_a_turn_that_is_cancelled_tells_its_end_like_any_other():
    desk = Desk(ScriptedModel([hangs("half an answer")]))
    seen: list[Event] = []

    async def read() -> None:
        async for stamped in desk.session.send("hi"):
            seen.append(stamped.event)
            if isinstance(stamped.event, TextDelta):
                reader.cancel()

    reader = asyncio.create_task(read())
    with pytest.raises(asyncio.CancelledError):
        await reader
    [end] = of(seen, TurnFinished)
    assert seen[-1] is end and end.status == "cancelled" and end.text.startswith("half")
    assert desk.state.ledger.groups[-1].first.interrupted and not desk.session.busy


async def test_closing_a_turn_while_an_approval_waits_closes_the_round():
    model = ScriptedModel([calls(("write", {"text": "a"}), ("write", {"text": "b"})), says("ok")])
    desk = Desk(model, tools=[Echo("write", writes=True)])
    async with aclosing(desk.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ApprovalRequested):
                break
    group = desk.state.ledger.groups[-1]
    assert group.kind == "round" and len(group.messages) == 3
    assert all("cancelled" in m.text for m in group.messages[1:])
    await desk.say("go on")
    assert not problems(model.requests[-1].view)


async def test_passing_failures_are_tried_again_with_growing_waits_and_told():
    fault = ModelError("busy", kind="server", status=529)
    limit = ModelError("slow down", kind="rate_limit", status=429, retry_after=7)
    desk = Desk(ScriptedModel([fails(fault), fails(limit), says("there")]))
    events = await desk.say("hi")
    assert [r.attempt for r in of(events, Retry)] == [1, 2]
    assert desk.clock.slept[1] == 7
    assert of(events, TurnFinished)[0].text == "there"


async def test_a_stream_that_dies_keeps_its_text_and_says_how_to_go_on():
    fault = ModelError("connection lost", kind="connection")
    desk = Desk(ScriptedModel([fails(fault, after="so far "), says("more")]))
    events = await desk.say("hi")
    assert not of(events, Retry)
    assert of(events, Failed)[0].hint
    assert of(events, TurnFinished)[0].status == "error"
    assert desk.state.ledger.groups[-1].first.text.strip() == "so far"
    events = await desk.say("go on")
    assert of(events, TurnFinished)[0].status == "done"


async def test_a_wrong_key_ends_the_turn_at_once():
    desk = Desk(ScriptedModel([fails(ModelError("no key", "set X", kind="auth", status=401)), says("x")]))
    events = await desk.say("hi")
    assert of(events, Failed)[0].hint == "set X"
    assert desk.clock.slept == []


async def test_an_empty_reply_is_an_error_not_an_answer():
    desk = Desk(ScriptedModel([says("")]))
    events = await desk.say("hi")
    assert of(events, Failed)[0].kind == "empty"


async def test_rounds_have_an_end_and_the_history_stays_valid():
    from ctxchat.core.options import Options

    model = ScriptedModel([calls(("echo", {"text": "x"})) for _ in range(9)])
    desk = Desk(model, tools=[Echo()], options=Options(max_rounds=3))
    events = await desk.say("loop")
    assert of(events, TurnFinished)[0].status == "max_rounds"
    assert len(model.requests) == 3
    assert of(events, Notice)
    await desk.session.measure()
    assert not problems(desk.session.view)


async def test_a_large_result_goes_to_a_file_and_head_and_tail_stay():
    model = ScriptedModel([calls(("echo", {"text": "line of text\n", "times": 20_000})), says("ok")])
    desk = Desk(model, tools=[Echo()])
    events = await desk.say("go")
    done = of(events, ToolFinished)[0]
    assert done.spilled == "tool-results/m3.txt"
    assert desk.journal.spilled[done.spilled] == "line of text\n" * 20_000
    assert done.spilled in done.output
    assert desk.conversation.counter.count_text(done.output) <= desk.conversation.budget.limit // 4


async def test_the_gauge_is_an_estimate_first_then_the_servers_figure_and_adds_up():
    desk = Desk(ScriptedModel([says("hello", usage=Usage(prompt=500, completion=20, cached=100))]))
    first = await desk.session.measure()
    assert first.estimated
    events = await desk.say("hi")
    last = of(events, ContextUsage)[-1]
    assert not last.estimated and last.used == 520 and last.cached == 100
    assert all(adds_up(e) for e in of(events, ContextUsage))
    again = Desk(ScriptedModel([]), records=desk.journal.records)
    assert (await again.session.measure()).used == 520


async def test_a_prompt_cut_in_silence_is_named_and_teaches_nothing():
    desk = Desk(ScriptedModel([says("hm", usage=Usage(prompt=1000, completion=5))]))
    events = await desk.say("words and words " * 2000)
    assert any("cut" in n.text for n in of(events, Notice))
    assert desk.session.context_usage.estimated


async def test_a_full_disk_changes_nothing_and_says_so():
    from ctxchat.core.errors import StorageError

    desk = Desk(ScriptedModel([says("x")]))
    desk.journal.full = True
    try:
        await desk.say("hi")
    except StorageError as problem:
        assert problem.hint
    else:
        raise AssertionError("the write must not be taken for done")
    assert desk.state.ledger.groups == ()


async def test_one_turn_at_a_time():
    from ctxchat.core.errors import CtxchatError

    desk = Desk(ScriptedModel([hangs("a"), says("b")]))
    async with aclosing(desk.session.send("hi")) as stream:
        await anext(stream)
        try:
            await desk.say("me too")
        except CtxchatError as problem:
            assert "under way" in problem.text
        else:
            raise AssertionError("two turns at once")


async def test_what_a_stopped_tool_had_shown_is_kept():
    class Slow(Echo):
        async def run(self, arguments, context):  # type: ignore[override]
            yield ToolText("keepme 1\n")
            yield ToolText("keepme 2\n")
            await asyncio.sleep(60)
            yield ToolOutput("never")

    model = ScriptedModel([calls(("echo", {"text": "x"})), says("ok")])
    desk = Desk(model, tools=[Slow()])
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ToolProgress) and "2" in stamped.event.text:
                break
    result = desk.state.ledger.groups[-1].messages[1].text
    assert "keepme 1" in result and "keepme 2" in result and "cancelled" in result
    await desk.say("and?")
    assert "keepme 2" in "".join(i.message.text for i in model.requests[-1].view.items)


async def test_a_resumed_session_opens_on_the_total_it_closed_with():
    desk = Desk(ScriptedModel([says("hello", usage=Usage(prompt=500, completion=20))]))
    await desk.say("hi")
    again = Desk(ScriptedModel([], window=Window(200_000, "configured")), records=desk.journal.records)
    first = again.session.context_usage
    assert first.used == 520 and first.estimated and adds_up(first)
    assert (first.window, first.window_source, first.band) == (200_000, "configured", 0)
    for name in ("system", "user", "assistant"):
        assert first.tokens(name) == desk.session.context_usage.tokens(name) > 0


async def test_where_only_the_total_is_known_it_is_shared_out_by_what_is_there():
    desk = Desk(ScriptedModel([says("hello " * 30, usage=Usage(prompt=500, completion=20))]))
    await desk.say("hi " * 20)
    records = [msgspec.structs.replace(r, parts={}) if isinstance(r, Measured) else r for r in desk.journal.records]
    first = Desk(ScriptedModel([], window=Window(200_000, "configured")), records=records).session.context_usage
    assert first.used == 520 and adds_up(first)
    assert 0 < first.tokens("user") < first.tokens("assistant")
    never = [r for r in records if not isinstance(r, Measured)]
    guess = Desk(ScriptedModel([], window=Window(200_000, "configured")), records=never).session.context_usage
    assert guess.used == (60 + 180) // 4 and guess.estimated and guess.band == 0.5 and adds_up(guess)


async def test_a_call_with_wrong_arguments_has_failed_and_changed_nothing():
    """Its words, such as `edit_file needs text.`, need not say that it is an error."""
    edit = calls(("edit_file", {"path": "src/pool.py", "new_text": "make_pool(1)"}))
    desk = Desk(ScriptedModel([edit, says("Done.")]), tools=[Echo("edit_file", writes=True)])
    await desk.say("go")
    assert desk.state.ledger.groups[1].messages[1].failed
    assert collect(desk.state.ledger.groups).facts == ()
