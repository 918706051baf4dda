"""Whatever ends a turn or a compaction, and wherever: the record is whole, said once, and the next request is valid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import (
    Failed,
    Stamped,
    TextDelta,
    ToolFinished,
    ToolProgress,
    TurnFinished,
)
from ctxchat.core.head import ContextBlock, Surroundings
from ctxchat.core.options import Options
from ctxchat.core.ports import ToolText
from ctxchat.core.view import problems
from tests.agent.desk import Around, Desk, Echo
from tests.agent.test_compaction import LONG, Writer
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import ScriptedModel, calls, says

SCRIPT = (
    calls(("echo", {"text": "one"}), ("echo", {"text": "two"}), text="Let me look at it. "),
    calls(("echo", {"text": "three"})),
    says("All of it has been said."),
)


WORDS = ("Let me look at it.", "one", "two", "three", "All of it has been said.")


def desk() -> Desk:
    model = ScriptedModel([*SCRIPT, says("And on."), says("And on.")])
    return Desk(model, tools=[Echo()], options=Options(stream_figures_every=0.0))


async def goes_on(desk: Desk) -> None:
    """The next turn works, its request is valid, and the journal tells the same story as the state."""
    assert not desk.session.busy
    events = await desk.say("go on")
    assert of(events, TurnFinished)[0].status == "done", events
    assert all(not problems(request.view) for request in desk.conversation.model.requests)  # type: ignore[attr-defined]
    assert desk.folded() == desk.state
    ids = [g.id for g in desk.state.ledger.groups]
    seqs = [m.seq for m in desk.state.ledger.messages()]
    assert len(set(ids)) == len(ids) and len(set(seqs)) == len(seqs)


def seen(events: list[object]) -> str:
    """The words a person has seen of replies and results."""
    said = "".join(e.text for e in events if isinstance(e, TextDelta))
    return said + " ".join(e.output for e in events if isinstance(e, ToolFinished))


def recorded(desk: Desk) -> str:
    return " ".join(m.text for m in desk.state.ledger.messages())


async def writes_of_a_turn() -> int:
    quiet = desk()
    await quiet.say("hi")
    return quiet.journal.calls


async def test_a_store_that_refuses_in_the_middle_ends_the_turn_and_loses_nothing():
    for number in range(2, await writes_of_a_turn() + 1):
        one = desk()
        one.journal.broken = range(number, 1000)  # and from then on
        events = await one.say("hi")
        assert of(events, Failed)[0].kind == "storage", number
        assert of(events, TurnFinished)[0].status == "error"
        assert of(events, TurnFinished)[0] is events[-1]
        assert all(adds_up(e) for e in of(events, ContextUsage))
        with pytest.raises(StorageError):
            await one.say("still full")
        one.journal.broken = ()
        await goes_on(one)
        for word in (w for w in WORDS if w in seen(events)):
            assert word in recorded(one), (number, word)


async def test_a_store_that_refuses_once_costs_the_turn_only():
    for number in range(2, await writes_of_a_turn() + 1):
        one = desk()
        one.journal.broken = {number}
        events = await one.say("hi")
        assert isinstance(events[-1], TurnFinished)
        for word in (w for w in WORDS if w in seen(events)):
            assert word in recorded(one), (number, word)
        await goes_on(one)


async def test_a_turn_closed_after_any_event_keeps_what_was_said():
    whole = await desk().say("hi")
    for stop in range(1, len(whole)):
        one = desk()
        events: list[object] = []
        async with aclosing(one.session.send("hi")) as stream:
            async for stamped in stream:
                events.append(stamped.event)
                if len(events) == stop:
                    break
        for word in (w for w in WORDS if w in seen(events)):
            assert word in recorded(one), (stop, word)
        await goes_on(one)


async def listen(stream: AsyncGenerator[Stamped, None], events: list[object]) -> None:
    async with aclosing(stream) as stamped_events:
        async for stamped in stamped_events:
            events.append(stamped.event)


def cancelling(one: Desk, task: asyncio.Task[None], at: int, done: bool, times: int) -> None:
    """Cancel the task at a call of the journal, before or after it is done, and again while it is cleaning up."""
    start = one.journal.calls

    def watch(number: int, after: bool) -> None:
        if number - start >= at and after == done and task.cancelling() < times:
            task.cancel()

    one.journal.watch = watch


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("done", [False, True])
async def test_a_turn_cancelled_at_any_write_is_sealed_once_however_often_it_is_cancelled(done: bool, times: int):
    for at in range(1, await writes_of_a_turn() + 1):
        one = desk()
        events: list[object] = []
        task = asyncio.create_task(listen(one.session.send("hi"), events))
        cancelling(one, task, at, done, times)
        with pytest.raises(asyncio.CancelledError):
            await task
        one.journal.watch = lambda number, after: None
        for word in (w for w in WORDS if w in seen(events)):
            assert word in recorded(one), (at, word)
        await goes_on(one)


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.long)])
async def test_a_turn_cancelled_at_any_step_of_the_loop_goes_on(stride: int):
    steps, cut = 0, True
    while cut:  # until the turn ends before the cancel comes
        steps += stride
        one = desk()
        events: list[object] = []
        task = asyncio.create_task(listen(one.session.send("hi"), events))
        for _ in range(steps):
            await asyncio.sleep(0)
        cut = not task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        for word in (w for w in WORDS if w in seen(events)):
            assert word in recorded(one), (steps, word)
        await goes_on(one)
    assert steps > 30


async def test_what_is_asked_while_a_turn_is_under_way_leaves_its_view_alone():
    one = desk()
    async with aclosing(one.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, TextDelta):
                view = one.session.view
                assert await one.session.measure() == one.session.context_usage
                await one.session.preview()
                assert one.session.view is view
                for verb in (one.session.changes.restore("g1"), one.session.changes.undo(), one.session.rename("x")):
                    with pytest.raises(CtxchatError):
                        await verb
    await goes_on(one)


async def test_a_tool_at_work_is_ended_before_its_round_is_sealed():
    class Slow(Echo):
        ended = False

        async def run(self, arguments, context):  # type: ignore[no-untyped-def]
            try:
                async for piece in super().run(arguments, context):
                    yield piece
                    await asyncio.Event().wait()
            finally:
                self.ended = True

    tool = Slow()
    one = Desk(ScriptedModel([calls(("echo", {"text": "x"})), says("on")]), tools=[tool])
    async with aclosing(one.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ToolProgress):
                break
    assert tool.ended
    await goes_on(one)


async def test_a_faulty_strategy_is_told_and_the_turn_goes_on():
    model = ScriptedModel([says(LONG) for _ in range(9)], window=Window(8_000, "configured"))
    one = Desk(model, options=Options(strategy="gone", prepare=False), summariser=Writer())
    for number in range(4):
        events = await one.say(f"question {number} {LONG}")
        assert of(events, TurnFinished)[0].status == "done"
    assert any("no strategy 'gone'" in getattr(e, "text", "") for e in events)


async def test_a_tool_that_swallows_its_cancel_does_not_hold_up_the_end_of_a_turn():
    class Stubborn(Echo):
        free = asyncio.Event()

        async def run(self, arguments, context):  # type: ignore[no-untyped-def]
            yield ToolText("working")
            while not self.free.is_set():
                with suppress(asyncio.CancelledError):
                    await self.free.wait()

    one = Desk(ScriptedModel([calls(("echo", {"text": "x"})), says("on")]), tools=[Stubborn()])
    async with aclosing(one.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ToolProgress):
                break
        await asyncio.wait_for(stream.aclose(), 60)  # it would never end
    assert "cancelled" in one.state.ledger.groups[-1].messages[-1].text
    Stubborn.free.set()
    await goes_on(one)


async def test_a_turn_that_is_stopped_does_not_wait_for_a_look_of_somebody_else():
    class Hanging(ScriptedModel):
        answered = asyncio.Event()

        async def window(self) -> Window:
            await self.answered.wait()
            return await super().window()

    model = Hanging([says("on")])
    one = Desk(model)
    look = asyncio.create_task(one.session.measure())
    turn = asyncio.create_task(listen(one.session.send("hi"), []))
    async with asyncio.timeout(60):
        while not one.state.ledger.groups:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    for _ in range(50):  # until it asks for the window, too
        await asyncio.sleep(0)
    turn.cancel()
    done, _ = await asyncio.wait({turn}, timeout=60)  # it would never end
    assert done and not look.done() and not one.session.busy
    model.answered.set()
    assert (await look).window_source != "assumed"
    await goes_on(one)


async def test_a_look_that_was_overtaken_by_a_turn_leaves_its_view_alone():
    class Late(Around):
        free = asyncio.Event()

        async def gather(self) -> Surroundings:
            now = await super().gather()
            if self.asked == 1:
                await self.free.wait()
                return Surroundings((ContextBlock("old", "what was so before"),))
            return now

    late = Late()
    one = Desk(ScriptedModel([says("on"), says("And on.")]), around=late)
    look = asyncio.create_task(one.session.measure())
    for _ in range(50):
        await asyncio.sleep(0)
    assert late.asked
    async with aclosing(one.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, TextDelta) and not look.done():
                view = one.session.view
                late.free.set()
                await look
                assert one.session.view is view
    await goes_on(one)
