"""A server on this machine is asked straight, by whatever name, where the environment names a proxy for all others."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ctxchat.core.errors import ModelError
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.probes import listens, probe
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import says
from tests.doubles.requests import asks, listen
from tests.models.served import lane

NAMES = ["127.0.0.1", "localhost", "0.0.0.0"]
SHORT = "127.1"
"""What litellm's client refuses."""


@pytest_asyncio.fixture
async def proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelDouble]:
    """What the environment names; nothing but `http://far.test` is asked of it."""
    async with ModelDouble([says("from the proxy")]) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.root)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("NO_PROXY", "direct.test")
        yield proxy


def named(host: str, double: ModelDouble) -> ModelSettings:
    return ModelSettings(
        name="openai/double", api_base=f"http://{host}:{double.port}/v1", api_key_env="KEY", timeout=30
    )


async def answer(settings: ModelSettings, way: ModelProcess | Connections) -> str:
    return (await listen(ModelClient(settings, lane(settings, way), lambda _: "key"), asks("hi"))).text


async def test_models_on_the_straight_lane(proxy: ModelDouble) -> None:
    connections = Connections()
    async with ModelDouble([says("from here")]) as double:
        for host in [*NAMES, SHORT]:
            assert await answer(named(host, double), connections) == "from here", host
    assert not proxy.requests
    far = ModelSettings(name="openai/double", api_base="http://far.test/v1", api_key_env="KEY", timeout=30)
    assert await answer(far, connections) == "from the proxy"
    await connections.close()


@pytest.mark.long
async def test_models_through_litellm(proxy: ModelDouble) -> None:
    worker = ModelProcess(None, dict(os.environ))
    try:
        async with ModelDouble([says("from here")]) as double:
            for host in NAMES:
                assert await answer(named(host, double), worker) == "from here", host
        assert not proxy.requests
        far = ModelSettings(name="openai/double", api_base="http://far.test/v1", api_key_env="KEY", timeout=30)
        assert await answer(far, worker) == "from the proxy"
        direct = ModelSettings(name="openai/double", api_base="http://direct.test/v1", api_key_env="KEY", timeout=30)
        with pytest.raises(ModelError, match="onnect"):  # what was outside the proxy stays outside
            await answer(direct, worker)
    finally:
        await worker.close()


async def test_questions_about_windows(proxy: ModelDouble) -> None:
    async with ModelDouble(pages={"/props": {"n_ctx": 4096}}) as double:
        for host in [*NAMES, SHORT]:
            assert await probe(f"http://{host}:{double.port}/props") == {"n_ctx": 4096}, host
            assert await listens(f"http://{host}:{double.port}/"), host


@pytest.mark.parametrize(
    ("name", "address", "may"),
    [
        ("openai/any", "http://127.0.0.1:8080/v1", True),
        ("llamafile/any", "", True),
        ("lm_studio/any", "http://far.test/v1", False),
        ("openai/gpt-6-luna", "", False),
        ("openai/any", "https://far.test/v1", False),
        ("hosted_vllm/any", "http://127.0.0.1:8000/v1", False),
        ("litellm_proxy/any", "http://127.0.0.1:4000", False),
        ("anthropic/claude-opus-5-5", "http://127.0.0.1:4000", False),
    ],
)
async def test_who_may_answer_one_request_after_another(name: str, address: str, may: bool) -> None:
    """What is told before a server has said anything; a gateway to a provider is none."""
    connections = Connections()
    settings = ModelSettings(name=name, api_base=address, window=8_000)
    assert ModelClient(settings, lane(settings, connections), lambda _: "key").may_queue is may
    await connections.close()
