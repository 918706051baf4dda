"""A model that fails for good, and who answers instead: for this turn, visibly, and never in a ring."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import msgspec
import pytest

from ctxchat.agent.session import Session
from ctxchat.agent.session_parts import SessionParts
from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import ModelError, UsageError
from ctxchat.core.events import Event, Failed, Notice, Retry, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelPort, Summariser
from ctxchat.core.record import CompactionRecord
from ctxchat.core.view import Item, Transform, problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, fails, says

WRONG_KEY = ModelError("The key is not right", "Set KEY.", kind="auth", status=401)
DOWN = ModelError("Nobody listens there", kind="connection")
OVERLOADED = ModelError("Overloaded", kind="server", status=529)


def desk(*models: ScriptedModel, transforms: Sequence[Transform] = (), **fallbacks: str) -> Desk:
    """The first model is the chosen one; `fallbacks` are by the last part of a name."""
    by_name: dict[str, ModelPort] = {model.name: model for model in models}

    def fallback_of(name: str) -> ModelPort | None:
        other = fallbacks.get(name.rpartition("/")[2])
        if other and other not in by_name:
            raise UsageError(f"Nobody serves {other}.")
        return by_name[other] if other else None

    options = Options(keep_recent=2, prepare=False)
    return Desk(models[0], tools=[Echo()], fallback_of=fallback_of, options=options, transforms=transforms)


def said(events: list[Event]) -> str:
    return " ".join(n.text for n in of(events, Notice))


@pytest.mark.parametrize(("fault", "waits"), [(WRONG_KEY, 0), (DOWN, 4), (OVERLOADED, 4)])
async def test_the_fallback_answers_the_turn_and_everybody_can_see_it(fault: ModelError, waits: int) -> None:
    first = ScriptedModel([fails(fault)] * 5, name="a/first", window=Window(50_000, "configured"))
    second = ScriptedModel([says("I am here.")], name="b/second", window=Window(20_000, "configured"))
    table = desk(first, second, first="b/second")
    events = await table.say("hello")
    assert (len(of(events, Retry)), len(second.requests)) == (waits, 1)
    assert fault.text in said(events) and "b/second answers this turn" in said(events)
    assert of(events, TurnFinished)[0].status == "done" and not of(events, Failed)
    shown = [(f.model, f.window) for f in of(events, ContextUsage)]
    assert ("b/second", 20_000) in shown and shown[-1] == ("a/first", 50_000)
    assert table.state.ledger.groups[-1].first.text == "I am here."
    assert table.folded() == table.state


async def test_the_next_message_asks_the_chosen_model_first_once_and_without_waiting() -> None:
    first = ScriptedModel([*[fails(DOWN)] * 6, says("back")], name="a/first")
    second = ScriptedModel([says("one"), says("two")], name="b/second")
    table = desk(first, second, first="b/second")
    await table.say("hello")
    asked = len(first.requests)
    again = await table.say("and now?")
    assert (len(first.requests) - asked, len(of(again, Retry))) == (1, 0)
    assert of(again, TurnFinished)[0].text == "two"
    last = await table.say("and now?")
    assert of(last, TurnFinished)[0].text == "back" and not of(last, Notice)


async def test_nobody_waits_for_a_time_out_again_where_another_one_stands_by() -> None:
    slow = ModelError("It said nothing for 300 s", kind="timeout")
    first = ScriptedModel([fails(slow)] * 9, name="a/first")
    table = desk(first, ScriptedModel([says("here")], name="b/second"), first="b/second")
    events = await table.say("hello")
    assert len(first.requests) == 1 and of(events, TurnFinished)[0].text == "here"
    alone = ScriptedModel([fails(slow), says("late")], name="a/first")
    assert of(await desk(alone).say("hello"), TurnFinished)[0].text == "late"


async def test_a_model_chosen_by_hand_is_trusted_again() -> None:
    first = ScriptedModel([fails(WRONG_KEY), fails(OVERLOADED), says("there")], name="a/first")
    table = desk(first, ScriptedModel([says("one")], name="b/second"), first="b/second")
    await table.say("one")
    await table.session.setup.switch_model("a/first")
    events = await table.say("two")
    assert len(of(events, Retry)) == 1 and of(events, TurnFinished)[0].text == "there"


async def test_a_recovered_model_is_retried_as_usual_again() -> None:
    first = ScriptedModel([fails(WRONG_KEY), says("back"), fails(DOWN), says("there")], name="a/first")
    table = desk(first, ScriptedModel([says("one")], name="b/second"), first="b/second")
    for text in ("one", "two"):
        await table.say(text)
    events = await table.say("three")
    assert len(of(events, Retry)) == 1 and of(events, TurnFinished)[0].text == "there"


async def test_it_steps_in_between_two_rounds_and_stays_for_the_rest_of_the_turn() -> None:
    first = ScriptedModel([calls(("echo", {"text": "x"})), fails(WRONG_KEY)], name="a/first")
    second = ScriptedModel([calls(("echo", {"text": "y"})), says("Done.")], name="b/second")
    table = desk(first, second, first="b/second")
    events = await table.say("go")
    assert of(events, TurnFinished)[0].text == "Done." and len(second.requests) == 2
    assert all(not problems(r.view) for r in second.requests)


async def test_a_ring_of_fallbacks_ends_with_the_last_failure() -> None:
    first = ScriptedModel([fails(WRONG_KEY)] * 3, name="a/first")
    second = ScriptedModel([fails(DOWN)] * 9, name="b/second")
    table = desk(first, second, first="b/second", second="a/first")
    events = await table.say("hello")
    assert len(first.requests) == 1 and len(second.requests) == 5
    assert of(events, Failed)[0].text == f"b/second: {DOWN.text}"
    assert of(events, ContextUsage)[-1].model == "a/first"


@pytest.mark.parametrize("kind", ["content_filter", "bad_request", "overflow"])
async def test_what_another_model_would_not_mend_is_not_handed_on(kind: str) -> None:
    fault = ModelError("No.", kind=kind, status=400)
    second = ScriptedModel([says("never")], name="b/second")
    events = await desk(ScriptedModel([fails(fault)] * 9, name="a/first"), second, first="b/second").say("hello")
    assert not second.requests and of(events, Failed)


async def test_a_reply_that_broke_off_is_not_begun_anew_by_another_model() -> None:
    second = ScriptedModel([says("never")], name="b/second")
    table = desk(ScriptedModel([fails(DOWN, after="half ")], name="a/first"), second, first="b/second")
    events = await table.say("hello")
    assert not second.requests and "/continue" in of(events, Failed)[0].hint


async def test_a_smaller_window_is_made_room_for_first() -> None:
    long = "word " * 6000
    first = ScriptedModel(
        [says("ok"), says("ok"), fails(WRONG_KEY)], name="a/first", window=Window(60_000, "configured")
    )
    second = ScriptedModel([says("short")], name="b/second", window=Window(8_000, "configured"))
    table = desk(first, second, first="b/second")
    for _ in range(2):
        await table.say(long)
    events = await table.say("hello")
    assert of(events, TurnFinished)[0].text == "short"
    assert of(events, CompactionRecord)[0].reason == "model_switch"
    assert second.requests[0].view.raw < 8_000


async def test_room_for_the_chosen_model_as_large_as_its_fallback_is_made_for_no_other_model() -> None:
    window = Window(20_000, "configured")
    first = ScriptedModel([says("ok"), fails(WRONG_KEY), says("back")], name="a/first", window=window)
    table = desk(first, ScriptedModel([says("ok")], name="b/second", window=window), first="b/second")
    for _ in range(2):
        await table.say("word " * 3000)
    events = await table.say("word " * 5000)
    assert of(events, TurnFinished)[0].text == "back"
    assert [p.reason for p in of(events, CompactionRecord)] == ["auto"]


async def test_summaries_beside_a_fallback_are_written_as_the_settings_say_by_now() -> None:
    first = ScriptedModel([fails(WRONG_KEY)], name="a/first")
    table = desk(first, ScriptedModel([says("ok")], name="b/second"), first="b/second")
    written_for: list[str] = []

    def writer_of(model: ModelPort) -> Summariser:
        written_for.append(model.name)
        return Writer()

    edited = msgspec.structs.replace(table.config, summariser_of=writer_of)
    parts = SessionParts(table.conversation, table.tool_runner, table.compactor, table.hooks)
    session = Session(parts, table.config, configure=lambda agent, model: edited)
    await session.setup.adapt()
    async with aclosing(session.send("hello")) as events:
        assert [e.event.text async for e in events if isinstance(e.event, TurnFinished)] == ["ok"]
    assert written_for == ["b/second", "a/first"]


async def test_a_fallback_that_cannot_be_had_is_named_in_the_failure() -> None:
    table = desk(ScriptedModel([fails(ModelError("Gone.", kind="auth"))], name="a/first"), first="nobody/x")
    events = await table.say("hello")
    assert "nobody/x" in of(events, Failed)[0].hint


async def test_a_server_that_wants_to_be_left_alone_for_hours_is_not_waited_for() -> None:
    fault = ModelError("Slow down.", kind="rate_limit", status=429, retry_after=7200)
    table = desk(ScriptedModel([fails(fault)], name="a/first"))
    events = await table.say("hello")
    assert table.clock.slept == [] and "2 hours" in of(events, Failed)[0].hint


async def test_a_transform_that_breaks_when_the_turn_is_over_ends_it_with_what_was_wrong() -> None:
    def broken(items: tuple[Item, ...]) -> tuple[Item, ...]:
        if any(item.message.text == "I am here." for item in items):
            raise ZeroDivisionError("a bug of the transform")
        return items

    first = ScriptedModel([fails(DOWN)] * 5, name="a/first")
    second = ScriptedModel([says("I am here.")], name="b/second")
    table = desk(first, second, transforms=[broken], first="b/second")
    events = await table.say("hello")
    assert of(events, TurnFinished)[0].status == "error" and events[-1] == of(events, TurnFinished)[0]
    assert "ZeroDivisionError: a bug of the transform" in of(events, Failed)[0].text
    assert table.state.ledger.groups[-1].first.text == "I am here." and table.folded() == table.state
    assert table.session.context_usage.model == "a/first"
