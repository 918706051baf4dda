"""A server on this machine is asked straight, by whatever name, where the environment names a proxy for all others."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ctxchat.core.errors import ModelError
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.probes import ask, listens
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
            assert await ask(f"http://{host}:{double.port}/props") == {"n_ctx": 4096}, host
            assert await listens(f"http://{host}:{double.port}/"), host
