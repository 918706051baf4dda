"""Through litellm's own proxy, as companies run it: a key, a model behind another name, errors told second hand."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.overflow import is_context_overflow
from ctxchat.models.client import ModelClient
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.requests import after_a_call, asks, listen
from tests.peers.conftest import WINDOW
from tests.peers.proxy import KEY

pytestmark = [pytest.mark.peer, pytest.mark.asyncio(loop_scope="session")]

ANSWER = "Hello from a scripted model."


def behind(root: str, worker: ModelProcess, model: str = "litellm_proxy/peer", key: str = KEY) -> ModelClient:
    settings = ModelSettings(name=model, api_base=f"{root}/v1", api_key_env="PROXY_KEY", window=WINDOW)
    return ModelClient(settings, worker, lambda name: key)


@pytest.mark.parametrize("name", ["litellm_proxy/peer", "openai/peer"])
async def test_a_reply_with_the_counts_of_the_server_behind(proxy: str, worker: ModelProcess, name: str) -> None:
    heard = await listen(behind(proxy, worker, name), asks("hi"))
    assert heard.text == ANSWER
    assert heard.end is not None and heard.end.usage is not None
    assert heard.end.usage.prompt > 20 and not heard.end.usage.estimated


async def test_calls_and_results_pass_through_it(proxy: str, worker: ModelProcess) -> None:
    assert (await listen(behind(proxy, worker), after_a_call(injected="It is Monday."))).text == ANSWER


async def test_an_overflow_is_recognised_in_its_words(proxy: str, worker: ModelProcess) -> None:
    with pytest.raises(ModelError) as caught:
        await listen(behind(proxy, worker), asks("word " * WINDOW))
    assert is_context_overflow(caught.value, estimated_tokens=WINDOW * 2, window=WINDOW)
    assert str(WINDOW) in caught.value.body


async def test_a_rate_limit_is_none(proxy: str, worker: ModelProcess) -> None:
    with pytest.raises(ModelError) as caught:
        await listen(behind(proxy, worker, "litellm_proxy/limited"), asks("word " * 100))
    assert (caught.value.kind, caught.value.status) == ("rate_limit", 429) and caught.value.transient
    assert not is_context_overflow(caught.value, estimated_tokens=100, window=WINDOW)


async def test_a_wrong_key_and_a_wrong_name_are_told(proxy: str, worker: ModelProcess) -> None:
    with pytest.raises(ModelError) as locked_out:
        await listen(behind(proxy, worker, key="sk-wrong"), asks("hi"))
    with pytest.raises(ModelError) as unknown:
        await listen(behind(proxy, worker, "litellm_proxy/nobody"), asks("hi"))
    assert locked_out.value.kind == "auth"  # without a database the proxy says 400
    assert "sk-wrong" not in str(locked_out.value) and "PROXY_KEY was not accepted" in locked_out.value.hint
    assert unknown.value.kind in {"bad_request", "not_found"} and "nobody" in unknown.value.text


async def test_a_cancel_ends_the_call(proxy: str, worker: ModelProcess) -> None:
    async with aclosing(behind(proxy, worker).stream(asks("hi"))) as pieces:
        async for _ in pieces:
            break
    assert (await listen(behind(proxy, worker), asks("again"))).text == ANSWER
