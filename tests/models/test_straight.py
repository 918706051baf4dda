"""The straight lane alone: connections that are kept, redirects, bursts, and that it needs no litellm."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from aiohttp import web

from ctxchat.core.errors import ModelError
from ctxchat.models.direct import Connections
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import says
from tests.doubles.requests import asks, listen
from tests.models.served import model_at

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_one_connection_serves_several_turns(connections: Connections) -> None:
    ports: list[int] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername")[1])
        return web.Response(text=f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    async with Site(answer) as double:
        model = model_at(double, connections)
        assert [(await listen(model, asks("hi"))).text for _ in range(3)] == ["well"] * 3
    assert len(set(ports)) == 1


async def test_nobody_is_sent_elsewhere(connections: Connections) -> None:
    async with ModelDouble([says("elsewhere")]) as other:

        async def answer(_: web.Request) -> web.StreamResponse:
            raise web.HTTPTemporaryRedirect(f"{other.base_url}/chat/completions")

        async with Site(answer) as double:
            with pytest.raises(ModelError, match=f"sends us to {other.base_url}"):
                await listen(model_at(double, connections), asks("hi"))
        assert other.requests == []


async def test_a_model_that_began_with_thoughts_is_told_to_think_from_the_next_reply_on(
    connections: Connections,
) -> None:
    replies = [says("So Y.\n</think>\n42", chunk=3), says("So Z.\n</think>\n43", chunk=3), says("Just 44", chunk=3)]
    async with ModelDouble([*replies, says("Just 45", chunk=3)]) as double:
        model = model_at(double, connections)
        heard = [await listen(model, asks("hi")) for _ in range(4)]
    assert [each.text for each in heard] == ["So Y.\n42", "43", "", "Just 45"]
    assert [each.reasoning for each in heard] == ["", "So Z.\n", "Just 44", ""]
    assert heard[0].end and heard[0].end.thoughts == 6 and heard[2].end and heard[2].end.unthought


async def test_a_burst_is_few_pieces(connections: Connections) -> None:
    def piece(text: str) -> str:
        return f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n"

    async def answer(_: web.Request) -> web.StreamResponse:
        body = "".join(piece(f"{n} ") for n in range(3000)) + f"data: {json.dumps(CHUNK)}\n\n"
        return web.Response(text=body, content_type="text/event-stream")

    async with Site(answer) as double:
        heard = await listen(model_at(double, connections), asks("hi"))
    assert heard.text == "".join(f"{n} " for n in range(3000)) + "well"
    assert heard.pieces < 300


async def test_a_stream_is_over_with_its_end_mark(connections: Connections) -> None:
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "well"}}
    streams = {
        "openai": [f"data: {json.dumps(CHUNK)}", "data: [DONE]"],
        "anthropic": [f"data: {json.dumps(said)}", f"data: {json.dumps(end)}", "event: message_stop"],
    }
    for family, lines in streams.items():

        async def answer(request: web.Request, lines: list[str] = lines) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write("".join(f"{line}\n\n" for line in lines).encode())
            await asyncio.sleep(3600)
            return response

        async with Site(answer) as double:
            assert (await listen(model_at(double, connections, family), asks("hi"))).text == "well"


@pytest.mark.parametrize("name", ["openai/x", "anthropic/x"])
async def test_neither_litellm_nor_a_process_is_needed(name: str) -> None:
    code = (
        "import asyncio, sys\n"
        "from ctxchat.models.settings import ModelSettings\n"
        "from ctxchat.models.direct import Connections, DirectTransport, server_of\n"
        "s = ModelSettings(sys.argv[1], api_base=sys.argv[2])\n"
        "async def main():\n"
        "    transport = DirectTransport(s, server_of(s), Connections())\n"
        "    call = {'model': s.name, 'messages': [{'role': 'user', 'content': 'hi'}], 'max_tokens': 9}\n"
        "    async for piece in transport.stream(call, 30): print(type(piece).__name__)\n"
        "asyncio.run(main())\n"
        "assert not {'litellm', 'openai', 'aiohttp', 'pydantic'} & {*sys.modules}\n"
    )
    async with ModelDouble([says("hello")]) as double:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code, name, double.base_url), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await child.communicate()
    assert child.returncode == 0 and said.split()[-1] == b"ReplyEnd"


CHUNK = {"choices": [{"delta": {"content": "well"}, "finish_reason": "stop"}]}


class Site(ModelDouble):
    """A server whose answer a test writes itself."""

    def __init__(self, answer) -> None:
        super().__init__()
        self._answer_with = answer

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer_with)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.port = self._runner.addresses[0][1]
