"""A reply that was stopped is gone on with at a real llama.cpp server, and the history stays valid for its template."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from ctxchat.core.events import TextDelta, TurnFinished
from ctxchat.models.client import ModelClient
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Desk
from tests.agent.test_turn import of

pytestmark = [pytest.mark.peer, pytest.mark.asyncio(loop_scope="session")]


async def test_nothing_is_said_twice_in_the_record(text_server: str, worker: ModelProcess) -> None:
    desk = Desk(ModelClient(ModelSettings("llamafile/peer", api_base=f"{text_server}/v1"), worker))
    async with aclosing(desk.session.send("hello")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, TextDelta):
                break
    half = desk.state.ledger.groups[-1].first
    assert half.interrupted and half.text
    events = [stamped.event async for stamped in desk.session.resume()]
    assert of(events, TurnFinished)
    more = "".join(event.text for event in of(events, TextDelta))
    assert not more.startswith(half.text)
    await desk.say("and now?")
    assert of(await desk.say("again"), TurnFinished)[0].status == "done", "the history is valid for its template"
