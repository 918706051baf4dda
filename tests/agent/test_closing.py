"""The end of a session: nothing writes after it, and nothing that was begun around it goes on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from ctxchat.context.gather import WorkspaceSources
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Notice, TextDelta, TurnFinished
from tests.agent.desk import Desk, MemoryJournal
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, hangs, says


class Watched(MemoryJournal):
    """Knows whether it was closed."""

    closed = False

    async def close(self, estimate: int = 0) -> None:
        self.closed = True


async def test_a_session_is_not_closed_under_a_turn_and_writes_nothing_once_it_is():
    journal = Watched()
    desk = Desk(ScriptedModel([hangs("half an answer"), says("on")]), journal=journal)
    async with aclosing(desk.session.send("hi")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, TextDelta):
                with pytest.raises(CtxchatError, match="under way"):
                    await desk.session.close()
                break
    assert not journal.closed
    assert of(await desk.say("go on"), TurnFinished)[0].status == "done"
    await desk.session.close()
    assert journal.closed
    written = journal.calls
    with pytest.raises(CtxchatError, match="closed"):
        await desk.say("more")
    with pytest.raises(CtxchatError, match="closed"):
        await desk.session.rename("another title")
    assert journal.calls == written


async def test_closing_waits_for_a_change_that_is_being_made():
    journal = Watched()
    desk = Desk(ScriptedModel([says("on")]), journal=journal)
    await desk.say("hi")
    change = asyncio.create_task(desk.session.rename("another title"))
    await asyncio.sleep(0)
    assert desk.session.busy
    await asyncio.gather(desk.session.close(), desk.session.close(), change)
    assert journal.closed and desk.folded().title == "another title"


class Hanging:
    """A context provider that never answers."""

    source_id = "weather"
    ended = False

    async def provide(self) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True
        return ""


class Faulty:
    """A context provider that always fails."""

    source_id = "clock"

    async def provide(self) -> str:
        raise ZeroDivisionError("no time")


async def test_a_provider_in_trouble_is_told_once_and_ended_with_the_session(tmp_path: Path):
    hanging = Hanging()
    around = WorkspaceSources(tmp_path, tmp_path / "none.md", [hanging, Faulty()])
    desk = Desk(ScriptedModel([says("a"), says("b")]), around=around)
    told = [n.text for n in of(await desk.say("x"), Notice)]
    assert len(told) == 2 and "weather" in told[0] and "no time" in told[1]
    assert not of(await desk.say("y"), Notice)
    assert not hanging.ended
    await desk.session.close()
    assert hanging.ended


async def test_a_message_waits_for_a_change_and_a_change_that_waited_finds_the_session_closed():
    desk = Desk(ScriptedModel([says("on")]), journal=Watched())
    change = asyncio.create_task(desk.session.rename("another title"))
    await asyncio.sleep(0)
    assert desk.session.busy
    assert of(await desk.say("hi"), TurnFinished)[0].status == "done"
    await change
    first = asyncio.create_task(desk.session.rename("one more"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(desk.session.close())
    await asyncio.sleep(0)
    late = asyncio.create_task(desk.session.rename("too late"))
    await asyncio.gather(first, closing)
    with pytest.raises(CtxchatError, match="closed"):
        await late
    assert desk.folded().title == "one more"
