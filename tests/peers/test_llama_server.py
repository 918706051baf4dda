"""The whole way to a real model server: litellm in its process, llama.cpp behind it."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import httpx
import pytest

from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.models.client import ModelClient
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.requests import after_a_call, asks, listen
from tests.peers.conftest import WINDOW

pytestmark = [pytest.mark.peer, pytest.mark.asyncio(loop_scope="session")]

ANSWER = "Hello from a scripted model."
TOO_LONG = "word " * WINDOW


def model_at(root: str, worker: ModelProcess, name: str = "openai/peer") -> ModelClient:
    base = f"{root}/v1" if name.startswith("openai/") else root
    return ModelClient(ModelSettings(name=name, api_base=base), worker)


async def test_the_second_time_most_of_the_prompt_is_cached(text_server: str, worker: ModelProcess) -> None:
    model = model_at(text_server, worker)
    question = "A question that is long enough to be worth caching. " * 5
    await listen(model, asks(question))
    heard = await listen(model, asks(question))
    assert heard.text == ANSWER
    assert heard.end is not None and heard.end.usage is not None
    usage = heard.end.usage
    assert not usage.estimated and 0.5 * usage.prompt < usage.cached < usage.prompt
    assert usage.completion > 0


async def test_a_call_the_server_really_parsed(tool_server: str, worker: ModelProcess) -> None:
    heard = await listen(model_at(tool_server, worker), asks("read it"))
    assert heard.end is not None and heard.end.finish == "tool_calls"
    [call] = heard.end.calls
    assert call.name == "read_file" and json.loads(call.arguments) == {"path": "a.txt"} and call.id


async def test_results_go_through_its_template(text_server: str, worker: ModelProcess) -> None:
    assert (await listen(model_at(text_server, worker), after_a_call(injected="It is Monday."))).text == ANSWER


@pytest.mark.parametrize("name", ["openai/peer", "anthropic/peer"])
async def test_an_overflow_says_how_much_there_is(text_server: str, worker: ModelProcess, name: str) -> None:
    with pytest.raises(ModelError) as caught:
        await listen(model_at(text_server, worker, name), asks(TOO_LONG))
    error = caught.value
    assert (error.kind, error.status) == ("overflow", 400)
    assert str(WINDOW) in error.body
    if name.startswith("openai/"):
        assert error.code == "exceed_context_size_error" and json.loads(error.body)["n_ctx"] == WINDOW


async def test_the_window_is_what_it_was_started_with(text_server: str, worker: ModelProcess) -> None:
    assert await model_at(text_server, worker).window() == Window(WINDOW, "loaded")


async def test_anthropics_interface(text_server: str, worker: ModelProcess) -> None:
    heard = await listen(model_at(text_server, worker, "anthropic/peer"), asks("hi"))
    assert heard.text == ANSWER
    assert heard.end is not None and heard.end.usage is not None and not heard.end.usage.estimated


async def test_cancelling_frees_the_slot(tool_server: str, worker: ModelProcess) -> None:
    model = ModelClient(
        ModelSettings(name="openai/peer", api_base=f"{tool_server}/v1", extra={"extra_body": {"ignore_eos": True}}),
        worker,
    )
    async with aclosing(model.stream(asks("for ever"))) as pieces:
        async for _ in pieces:
            break
    async with httpx.AsyncClient(trust_env=False) as client:
        for _ in range(100):
            [slot] = (await client.get(f"{tool_server}/slots")).json()
            if not slot["is_processing"]:
                break
            await asyncio.sleep(0.05)
    assert not slot["is_processing"]
    assert slot["n_prompt_tokens"] < WINDOW // 2, "it stopped long before the window was full"
