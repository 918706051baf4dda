"""OpenAI's responses form without litellm: against a server that checks what goes back and counts its cache."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.messages import Message, Reasoning
from ctxchat.core.ports import ModelRequest
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections, DirectTransport
from ctxchat.models.responses import ResponsesReading, ResponsesServer, server_of, uses_responses_form
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import breaks
from tests.doubles.replies import says as double_says
from tests.doubles.requests import Heard, listen, view_of
from tests.doubles.strict import StrictOpenAI, answers, appended, says, thought, use
from tests.doubles.strict.script import Answer, Said

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = "word " * 1500


def client(base: str, connections: Connections, **more: Any) -> ModelClient:
    settings = ModelSettings("openai/responses/gpt-6.2-sol", api_base=base, timeout=30, **more)
    server = ResponsesServer(base, leader="developer", keyed=True, remembers=True)
    return ModelClient(settings, DirectTransport(settings, server, connections), lambda _: "key")


async def test_rounds_keep_their_reasoning_and_read_the_cache(connections: Connections) -> None:
    look = answers(thought("hm"), Said("I look.", "commentary"), thought("and"), use("read_file", path="a.txt"))
    async with StrictOpenAI([look, look, answers(thought("so"), Said("Done.", "final_answer"))]) as server:
        model = client(server.base_url, connections)
        said = [Message(0, "system", LONG), Message(1, "user", "What is there?")]
        ends = []
        for n in range(3):
            heard = await listen(model, ModelRequest(view_of(*said), session="s1", effort="high"))
            assert heard.end is not None and heard.end.received is not None
            ends.append(heard.end)
            thoughts = Reasoning(heard.reasoning, received=heard.end.received)
            said.append(Message(10 * n + 2, "assistant", heard.text, heard.end.calls, reasoning=thoughts))
            said += [Message(10 * n + 3, "tool", "ok", call_id=c.id) for c in heard.end.calls]
    assert not server.complaints and not appended(server.exchanges) and len(server.accepted) == 3
    assert [e.finish for e in ends] == ["tool_calls", "tool_calls", "stop"]
    assert ends[0].usage is not None and ends[0].usage.written > 1024
    assert ends[2].usage is not None and ends[2].usage.cached > 1024 and ends[2].notes.message_id
    body = server.exchanges[0].body
    assert body["prompt_cache_key"] == "s1" and body["store"] is False
    assert body["reasoning"] == {"context": "all_turns", "effort": "high"}
    assert body["input"][0]["role"] == "developer" and body["tools"][0]["strict"] is False
    assert server.read_share() > 0.9


async def test_without_its_reasoning_a_round_is_sent_from_text_and_calls(connections: Connections) -> None:
    async with StrictOpenAI([answers(thought("hm"), "I look.", use("read_file", path="a.txt"))]) as server:
        model = client(server.base_url, connections)
        ask = Message(1, "user", "What is there?")
        heard = await listen(model, ModelRequest(view_of(ask)))
        assert heard.end is not None
        bare = Message(2, "assistant", heard.text, heard.end.calls)
        result = Message(3, "tool", "ok", call_id=heard.end.calls[0].id)
        await listen(model, ModelRequest(view_of(ask, bare, result)))
    assert [item["type"] for item in server.accepted[1].body["input"]] == [
        *("message", "message", "function_call", "function_call_output")
    ]


async def test_ends_and_faults(connections: Connections) -> None:
    async with StrictOpenAI([says("Half", finish="max_output_tokens"), Answer((Said("Half"),), cut=True)]) as server:
        model = client(server.base_url, connections)
        heard = await listen(model, ModelRequest(view_of(Message(1, "user", "hi"))))
        assert heard.end is not None and (heard.end.finish, heard.text) == ("length", "Half")
        heard = Heard()
        with pytest.raises(ModelError) as cut:
            await listen(model, ModelRequest(view_of(Message(1, "user", "hi"))), heard)
        assert (cut.value.kind, heard.text) == ("interrupted", "Half")
    error = {"error": {"message": "Overloaded", "code": "server_error"}}
    script = [breaks("error_event", after=0, error=error), double_says("x", finish="error")]
    async with ModelDouble(script, form="responses") as double:
        for words in ("Overloaded", "Something failed"):
            with pytest.raises(ModelError, match=words):
                await listen(client(double.base_url, connections), ModelRequest(view_of(Message(1, "user", "hi"))))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ModelSettings("openai/gpt-6.2-sol"), True),
        (ModelSettings("gpt-5.4"), True),
        (ModelSettings("xai/grok-4.7"), True),
        (ModelSettings("openai/responses/qwen4", api_base="http://127.0.0.1:1/v1"), True),
        (ModelSettings("openai/gpt-5"), False),
        (ModelSettings("openai/gpt-6.2-sol", api_base="http://127.0.0.1:1/v1"), False),
        (ModelSettings("openai/gpt-6.2-sol", extra={"logit_bias": {}}), False),
        (ModelSettings("anthropic/claude-opus-5-5"), False),
    ],
)
async def test_who_is_asked_in_this_form(settings: ModelSettings, expected: bool) -> None:
    assert uses_responses_form(settings) is expected and (server_of(settings, {}) is not None) is expected
    assert server_of(settings, {"SSL_CERTIFICATE": "x"}) is None


async def test_images_and_files_have_a_place(connections: Connections) -> None:
    parts = [
        {"type": "text", "text": "this"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
        {"type": "input_audio", "input_audio": {}},
    ]
    body = ResponsesServer("http://x").request("m", {"messages": [{"role": "user", "content": parts}]}).body
    kinds = [part["type"] for part in json.loads(body)["input"][0]["content"]]
    assert kinds == ["input_text", "input_image", "input_file", "input_text"]
    result = {"role": "tool", "tool_call_id": "c", "content": parts[1:2]}
    body = ResponsesServer("http://x").request("m", {"messages": [result]}).body
    assert json.loads(body)["input"][0]["output"] == "[image: not shown]"


async def test_two_reasonings_of_a_reply_are_apart() -> None:
    reading = ResponsesReading("m")
    told = ""
    for place, words in enumerate(("First.", "Second.")):
        for event in (
            {"type": "response.output_item.added", "output_index": place, "item": {"type": "reasoning"}},
            {"type": "response.reasoning_text.delta", "output_index": place, "delta": words},
        ):
            told += reading.piece(event)["choices"][0]["delta"].get("reasoning_content", "")
    assert told == "First.\n\nSecond."
