"""Network settings on the way to a model: what is valid works, what cannot work fails before anything is sent, by its name."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from ctxchat.core.errors import ModelError
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.network import check_network_settings
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings, key_for
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import says
from tests.doubles.requests import asks, listen
from tests.models.served import lane

pytestmark = pytest.mark.asyncio(loop_scope="session")


def at(address: str) -> ModelSettings:
    return ModelSettings(name="openai/double", api_base=address, api_key_env="KEY", timeout=30)


async def answer(settings: ModelSettings, connections: Connections) -> str:
    return (await listen(ModelClient(settings, lane(settings, connections), lambda _: "key"), asks("hi"))).text


@asynccontextmanager
async def socks(to: ModelDouble) -> AsyncIterator[tuple[str, list[str]]]:
    """A SOCKS 5 proxy that leads everything to one server, and the hosts that were asked for."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\5\0")
        _, _, _, _, length = await reader.readexactly(5)
        asked.append((await reader.readexactly(length)).decode())
        await reader.readexactly(2)
        there, out = await asyncio.open_connection("127.0.0.1", to.port)
        writer.write(b"\5\0\0\1\0\0\0\0" + struct.pack(">H", 0))

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(1 << 16):
                target.write(data)
            target.close()

        await asyncio.gather(copy(reader, out), copy(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


@pytest.mark.parametrize("scheme", ["socks", "socks5h"])
async def test_a_socks_proxy_is_gone_through(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = Connections()
    async with ModelDouble([says("from afar")]) as double, socks(double) as (place, asked):
        for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("all_proxy", f"{scheme}://{place}")
        assert await answer(at("http://far.test/v1"), connections) == "from afar"
        await connections.close()
    assert asked == ["far.test"]


async def test_addresses_in_every_form_that_is_one(connections: Connections) -> None:
    async with ModelDouble([says("here")] * 6) as double:
        host = f"127.0.0.1:{double.port}"
        for address in (
            host,
            f"{host}/v1",
            f"http://{host}/",
            f"http://{host}/v1/",
            f"http://{host}/v1/chat/completions",
        ):
            assert await answer(at(address), connections) == "here", address
        assert await answer(at(f"http://{host}/v1?api-version=1"), connections) == "here"
        assert [seen.path for seen in double.requests][-1] == "/v1/chat/completions"


async def test_a_server_that_was_found_at_v1_is_asked_there_from_then_on() -> None:
    seen: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        seen.append(request.path_qs)
        if not request.path.startswith("/v1/"):
            return web.json_response({"error": f"Unexpected endpoint or method. (POST {request.path})"})
        return web.json_response({"choices": [{"message": {"content": "here"}, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/{path:.*}", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    connections = Connections()
    try:
        settings = at(f"127.0.0.1:{runner.addresses[0][1]}?x=1")
        model = ModelClient(settings, lane(settings, connections), lambda _: "key")
        assert [(await listen(model, asks("hi"))).text for _ in range(2)] == ["here", "here"]
    finally:
        await connections.close()
        await runner.cleanup()
    assert seen == ["/chat/completions?x=1", *["/v1/chat/completions?x=1"] * 2]


async def test_what_cannot_work_fails_at_once_and_by_its_name() -> None:
    far = at("https://far.test/v1")
    for settings, environment, named in (
        (far, {"HTTPS_PROXY": "gopher://x"}, "HTTPS_PROXY"),
        (far, {"ALL_PROXY": "socks4://x:1"}, "ALL_PROXY"),
        (ModelSettings("openai/double"), {"OPENAI_BASE_URL": "ftp://x"}, "OPENAI_BASE_URL"),
        (ModelSettings("anthropic/double"), {"ANTHROPIC_BASE_URL": "http:/x"}, "ANTHROPIC_BASE_URL"),
        (ModelSettings("groq/double"), {"GROQ_API_BASE": "$HOST"}, "GROQ_API_BASE"),
        (ModelSettings("ollama_chat/double", api_base="http://x:y"), {"OLLAMA_HOST": "x:y"}, "OLLAMA_HOST"),
        (at("ftp://far.test"), {}, "api_base"),
        (at("http://far.test:x"), {}, "api_base"),
        (ModelSettings("openai/double", extra={"extra_headers": {"x-a": "ü"}}), {}, "extra_headers"),
    ):
        with pytest.raises(ModelError) as raised:
            check_network_settings(settings, environment)
        assert named in str(raised.value) and raised.value.kind == "settings" and not raised.value.transient
    check_network_settings(at("http://localhost:8080"), {"HTTP_PROXY": "gopher://x"})  # it is not asked for


async def test_a_key_that_no_header_can_hold_is_named_and_not_sent(connections: Connections) -> None:
    async with ModelDouble([says("here")]) as double:
        settings = at(double.base_url)
        for key in ("sk-ключ", "sk-a\nb", "sk-“quoted”"):
            model = ModelClient(settings, lane(settings, connections), lambda _, key=key: key)
            with pytest.raises(ModelError, match="KEY") as raised:
                await listen(model, asks("hi"))
            assert raised.value.kind == "auth" and key not in str(raised.value)
        assert not double.requests
    assert key_for(settings, lambda _: "sk-fine") == "sk-fine"


@pytest.mark.long
async def test_ranges_and_brackets_in_no_proxy_do_not_stop_litellm() -> None:
    async with ModelDouble([says("through it")]) as proxy:
        environment = {"http_proxy": proxy.root, "NO_PROXY": "localhost,[::1],fd00::/8,10.0.0.0/8"}
        worker = ModelProcess(None, environment)
        try:
            settings = at("http://far.test/v1")
            model = ModelClient(settings, worker, lambda _: "key")
            assert (await listen(model, asks("hi"))).text == "through it"
        finally:
            await worker.close()
