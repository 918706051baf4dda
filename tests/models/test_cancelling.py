"""A call that is cancelled: the connection is closed, and nobody else notices."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, breaks, says
from tests.doubles.requests import asks, listen
from tests.models.served import FAMILIES, Way, model_at, served

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("family", FAMILIES)
async def test_closing_closes_the_connection(way: Way, family: str) -> None:
    async with served(family, [says("words " * 1000, delay=0.01)]) as double:
        async with aclosing(model_at(double, way, family).stream(asks("hi"))) as pieces:
            async for _ in pieces:
                break
        seen = double.requests[0]
        await asyncio.wait_for(seen.ended.wait(), 60)
    assert seen.dropped


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reply", [says("late", first_byte=60), breaks("stall")])
async def test_cancelling_closes_the_connection_even_when_nothing_comes(way: Way, reply: Reply, family: str) -> None:
    async with served(family, [reply]) as double:
        task = asyncio.create_task(listen(model_at(double, way, family), asks("hi")))
        await double.asked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(double.requests[0].ended.wait(), 60)
        assert double.requests[0].dropped
    assert isinstance(way, Connections) or way.pid, "the process lives on"


async def test_one_cancelled_stream_leaves_the_others_alone(way: Way) -> None:
    async with ModelDouble(lambda body: says("word " * 60, delay=0.005)) as double:
        model = model_at(double, way)
        other = asyncio.create_task(listen(model, asks("stay")))
        async with aclosing(model.stream(asks("go"))) as pieces:
            async for _ in pieces:
                break
        assert (await other).text == "word " * 60


async def test_an_ollama_that_answers_no_further_question_holds_up_nobody(worker: ModelProcess) -> None:
    async with ModelDouble([says("well")], silent=["/api/show"]) as double:
        assert (await listen(model_at(double, worker, "ollama"), asks("hi"))).text == "well"
        other = await asyncio.wait_for(listen(model_at(double, worker), asks("and you?")), 60)
    assert other.text == "well"
