"""A reply that was stopped goes on at a real llama.cpp server, which takes its beginning and gives it back with the rest."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.events import TextDelta, TurnFinished
from ctxchat.models.client import ModelClient
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Desk
from tests.agent.test_turn import of
from tests.doubles.requests import listen
from tests.models.test_continuing import HALF, cut_off

pytestmark = [pytest.mark.peer, pytest.mark.asyncio(loop_scope="session")]


async def test_it_gives_the_beginning_back(text_server: str, worker: ModelProcess) -> None:
    model = ModelClient(ModelSettings("llamafile/peer", api_base=f"{text_server}/v1", max_output=20), worker)
    try:
        heard = await listen(model, cut_off(tools=False))
    except ModelError as nothing:  # the model may have nothing to add
        assert nothing.kind == "empty"
    else:
        assert heard.text.startswith(HALF.rstrip())


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
