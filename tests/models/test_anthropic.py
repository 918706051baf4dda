"""Anthropic's form, straight and through litellm: requests, events, counts and refusals are the same, but for what litellm loses
or makes up."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given

from ctxchat.core.messages import Image, Message, Opaque, Text, ToolCall
from ctxchat.core.ports import ModelRequest
from ctxchat.core.view import Item, ToolSpec
from ctxchat.models.anthropic import AnthropicServer, server_of
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import Seen
from tests.doubles.replies import Reply, breaks, says
from tests.doubles.requests import after_a_call, asks, listen, view_of
from tests.doubles.rules import RULES
from tests.examples import examples
from tests.models.served import Way, lane, served
from tests.models.test_dialects import conversations
from tests.models.test_lanes import ANTHROPICS, alike, told

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASK = Message(1, "user", "What is in it?")
SONNET = "anthropic/claude-sonnet-4-5"
NEWEST = "anthropic/claude-sonnet-5-5"

# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def sent(way: Way, request: ModelRequest, name: str = SONNET, key: str = "key", **extra: Any) -> Seen:
    async with served("anthropic", [says("ok")]) as double:
        chosen = ModelSettings(name, api_base=double.root, api_key_env="KEY", timeout=30, window=50_000, extra=extra)
        await listen(ModelClient(chosen, lane(chosen, way), lambda _: key), request)
    return double.requests[0]


def headers(seen: Seen) -> dict[str, str]:
    given = {name.lower(): value for name, value in seen.headers.items()}
    own = {"authorization", "anthropic-dangerous-direct-browser-access", "x-mine", *ANTHROPICS}
    return {name: given[name] for name in own & given.keys()}


async def asked_alike(worker: ModelProcess, connections: Connections, request: ModelRequest, **more: Any) -> Seen:
    through, straight = await sent(worker, request, **more), await sent(connections, request, **more)
    assert (straight.path, combined(straight.body)) == (through.path, combined(through.body))
    assert headers(straight) == headers(through)
    return straight


@examples(20, 100)
@given(conversations())
async def test_any_conversation(worker: ModelProcess, connections: Connections, items: list[Item]) -> None:
    assume(any(i.message.role != "system" and (str(i.message.content).strip() or i.message.calls) for i in items))
    view = msgspec.structs.replace(view_of(), items=tuple(items))
    RULES["anthropic"]((await asked_alike(worker, connections, ModelRequest(view))).body)


def combined(body: dict[str, Any]) -> dict[str, Any]:
    """The body with neighbours of one role as one message, as litellm makes them, and Anthropic reads them."""
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1] = {**message, "content": [*messages[-1]["content"], *message["content"]]}
        else:
            messages.append(message)
    return {**body, "messages": messages}


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        (SONNET, {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["END"]}),
        (NEWEST, {"temperature": 1, "thinking": {"type": "adaptive"}}),
        (SONNET, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (SONNET, {"thinking": {"type": "disabled"}}),
        ("anthropic/claude-opus-4-6", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("anthropic/kimi-k2", {"temperature": 0.5}),
        (SONNET, {"extra_headers": {"X-Mine": "1", "Anthropic-Beta": "interleaved-thinking-2025-05-14"}}),
    ],
)
async def test_parameters(worker: ModelProcess, connections: Connections, name: str, extra: dict[str, Any]) -> None:
    await asked_alike(worker, connections, asks("hi"), name=name, **extra)


async def test_a_login_in_place_of_a_key(worker: ModelProcess, connections: Connections) -> None:
    seen = await asked_alike(worker, connections, asks("hi"), key="sk-ant-oat01-double")
    assert headers(seen)["authorization"] == "Bearer sk-ant-oat01-double" and "x-api-key" not in headers(seen)


SCHEMAS: dict[str, dict[str, Any]] = {
    "empty": {},
    "of anything": {"anyOf": [{"type": "object"}], "title": "x", "description": "y"},
    "defined": {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}, "required": ["a"]},
}


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_tools(worker: ModelProcess, connections: Connections, schema: str) -> None:
    tool = ToolSpec("look", "Look.", SCHEMAS[schema])
    await asked_alike(worker, connections, ModelRequest(view_of(ASK, tools=(tool,))))


async def test_calls_without_any_tool_on_offer(worker: ModelProcess, connections: Connections) -> None:
    messages = [item.message for item in after_a_call().view.items]
    seen = await asked_alike(worker, connections, ModelRequest(view_of(*messages, tools=())))
    assert [tool["name"] for tool in seen.body["tools"]] == ["dummy_tool"]


PDF = Opaque("file", '{"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}}')


@pytest.mark.parametrize("part", [Image("https://x.test/a.png", 3, 3), Image("data:image/png;base64,aGk=", 3, 3), PDF])
async def test_images_and_documents(worker: ModelProcess, connections: Connections, part: Image | Opaque) -> None:
    seen = await asked_alike(worker, connections, ModelRequest(view_of(Message(1, "user", (Text("this"), part)))))
    assert seen.body["messages"][-1]["content"][-1]["source"]


@pytest.mark.parametrize(
    "part",
    [
        Image("http://127.0.0.1:9/a.png", 3, 3),  # litellm would fetch it
        Image("blob:nothing", 3, 3),  # litellm refuses the request
        Opaque("file", '{"type": "file", "file": {"file_id": "file_1"}}'),  # another provider's
        Opaque("file", '{"type": "file", "file": "a.pdf"}'),
        Opaque("input_audio", '{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}'),
    ],
)
async def test_what_has_no_place_is_named(connections: Connections, part: Image | Opaque) -> None:
    body = (await sent(connections, ModelRequest(view_of(Message(1, "user", (Text("this"), part)))))).body
    RULES["anthropic"](body)
    last = body["messages"][-1]["content"][-1]
    assert last["text"].endswith(": not shown]") and last["cache_control"] == {"type": "ephemeral"}


async def test_older_definitions_are_written_out(connections: Connections) -> None:
    """As litellm does."""
    for place, older in (
        ("#/definitions/A", {"definitions": {"A": {"type": "string"}}}),
        ("#/components/schemas/A", {"components": {"schemas": {"A": {"type": "string"}}}}),
    ):
        tool = ToolSpec("look", "", {"type": "object", "properties": {"a": {"$ref": place}}, **older})
        body = (await sent(connections, ModelRequest(view_of(ASK, tools=(tool,))))).body
        schema = body["tools"][0]["input_schema"]
        assert schema == {"type": "object", "properties": {"a": {"type": "string"}}}


async def test_what_a_person_sets_goes_out_as_it_is(connections: Connections) -> None:
    """litellm sends an `extra_body` as one, and leaves out betas it has not heard of and thinking of models it does not know."""
    thinks = {"type": "enabled", "budget_tokens": 1024}
    beta = {"anthropic-beta": "mine-2030-01-01"}
    seen = await sent(
        *(connections, asks("hi"), "anthropic/kimi-k2", "sk-ant-oat01-double"),
        thinking=thinks,
        extra_body={"inference_geo": "us"},
        extra_headers=beta,
    )
    assert (seen.body["thinking"], seen.body["inference_geo"]) == (thinks, "us")
    assert headers(seen)["anthropic-beta"] == "oauth-2025-04-20,mine-2030-01-01"


async def test_an_address_may_have_the_path_in_it(connections: Connections) -> None:
    async with served("anthropic", [says("ok")]) as double:
        for path in ("", "/", "/v1", "/v1/messages"):
            chosen = ModelSettings(SONNET, api_base=double.root + path, timeout=30)
            await listen(ModelClient(chosen, lane(chosen, connections), lambda _: ""), asks("hi"))
    assert [seen.path for seen in double.requests] == ["/v1/messages"] * 4


async def test_numbers_in_arguments_and_halves_of_characters(worker: ModelProcess, connections: Connections) -> None:
    call = ToolCall("a", "read_file", '{"size": 123456789012345678901234567890, "rate": 1.50}')
    messages = (
        Message(1, "user", "broken \ud800"),
        Message(2, "assistant", "", (call,)),
        Message(3, "tool", "x", call_id="a"),
    )
    await asked_alike(worker, connections, ModelRequest(view_of(*messages)))


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


Event = dict[str, Any]

COUNTS: Event = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 2000,
    "cache_read_input_tokens": 500,
    "cache_creation": {"ephemeral_5m_input_tokens": 2000, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 1,
    "service_tier": "standard",
}
OUTPUT = {"output_tokens": 50}
PING = {"type": "ping"}


def streamed(*events: Event, counts: Any = COUNTS, later: Any = OUTPUT, reason: str | None = "end_turn") -> Reply:
    start = {"type": "message_start", "message": {"id": "msg_1", "type": "message", "content": [], "usage": counts}}
    end = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": later}
    lines = (
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        for event in (start, *events, end, {"type": "message_stop"})
    )
    return Reply(raw="".join(lines).encode())


def block(place: int, kind: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": place, "content_block": kind},
        *({"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": place},
    ]


def text(place: int, *words: str) -> list[Event]:
    return block(place, {"type": "text", "text": ""}, *({"type": "text_delta", "text": word} for word in words))


def thinking(place: int, *words: str, signature: str) -> list[Event]:
    told = [{"type": "thinking_delta", "thinking": word} for word in words]
    signed = {"type": "signature_delta", "signature": signature}
    return block(place, {"type": "thinking", "thinking": "", "signature": ""}, *told, signed)


def use(place: int, *fragments: str, given: Any = None, kind: str = "tool_use") -> list[Event]:
    told = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
    return block(place, {"type": kind, "id": f"toolu_{place}", "name": "look", "input": given or {}}, *told)


THOUGHT = {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 20}}
REPLIES = {
    "text, and what the cache did": streamed(*text(0, "Forty", "-two."), PING),
    "thoughts, one of them hidden, between them a call": streamed(
        *thinking(0, "a", "b", signature="c2ln"),
        *block(1, {"type": "redacted_thinking", "data": "c2Vj"}),
        *use(2, "", '{"a', '": 1}'),
        *thinking(3, "c", signature="c2ln2"),
        *text(4, "Well."),
        later=THOUGHT,
    ),
    "a thought that is not shown": streamed(*thinking(0, signature="c2ln"), *text(1, "Well."), later=THOUGHT),
    "calls side by side, one without arguments": streamed(*use(0, '{"a": 1}'), *use(1, ""), reason="tool_use"),
    "thoughts in the text": streamed(*text(0, "<think>pl", "an</th", "ink>", "Well.")),
    "words of an end": streamed(*text(0, "event: message_stop\n", '{"type": "message_stop"}', "\n\n[DONE]")),
    "events nobody knows": streamed({"type": "news", "index": 0}, *text(0, "Well.")),
    "citations": streamed(
        *block(0, {"type": "text", "text": "W"}, {"type": "citations_delta", "citation": {"url": "x"}}), *text(1, "ell")
    ),
    "no counts": streamed(*text(0, "Well."), counts={}, later={}),
    "no reason": streamed(*text(0, "Well."), reason=None),
    "Windows' lines": Reply(raw=(streamed(*text(0, "Well.")).raw or b"").replace(b"\n", b"\r\n")),
    "no characters": Reply(raw=(streamed(*text(0, "W???ll.")).raw or b"").replace(b"???", b"\xff\xc3")),
    "half a character": Reply(raw=(streamed(*text(0, "W???ll.")).raw or b"").replace(b"???", b"\\ud83d")),
}


@pytest.mark.parametrize("reply", REPLIES)
async def test_streams(worker: ModelProcess, connections: Connections, reply: str) -> None:
    await alike(worker, connections, "anthropic", REPLIES[reply])


REASONS = ["end_turn", "stop_sequence", "max_tokens", "tool_use", "pause_turn", "refusal", "compaction", "unheard_of"]


@pytest.mark.parametrize("reason", [*REASONS, "model_context_window_exceeded"])
@pytest.mark.parametrize("words", ["Half", ""])
async def test_reasons(worker: ModelProcess, connections: Connections, reason: str, words: str) -> None:
    if reason in {"refusal", "tool_use"}:
        pytest.skip("litellm gives another reason, or none, for a refusal and for a call that did not come")
    await alike(worker, connections, "anthropic", says(words, finish=reason))


async def test_what_litellm_loses(connections: Connections) -> None:
    async def end(reply: Reply) -> Any:
        return (await told(connections, "anthropic", reply))[0]["end"]

    _, calls, *_ = await end(streamed(*use(0, given={"a": 1})))
    assert calls == [("toolu_0", "look", '{"a":1}')], "a call that comes whole"
    finish, calls, *_ = await end(streamed(*use(0, '{"q": 1}', kind="server_tool_use"), *text(1, "Well.")))
    assert (finish, calls) == ("stop", []), "what the server's own tools did is no call of ours"
    usage = (await end(streamed(*text(0, "Well."), later={"input_tokens": 0, "output_tokens": 5})))[-1]
    assert (usage.prompt, usage.cached, usage.completion) == (2600, 500, 5), "what is said again as nothing"
    usage = (await end(streamed(*text(0, "Well."), counts=None, later={"input_tokens": 30, "output_tokens": 5})))[-1]
    assert (usage.prompt, usage.completion) == (30, 5), "counts that are told at the end only"
    usage = (await end(streamed(*thinking(0, "Hm, hm, hm.", signature="c2ln"), *text(1, "Well."))))[-1]
    assert usage.reasoning == 0, "tokens of thoughts that were not counted"
    error = Reply(raw=b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}')
    for kind in ("application/json", "text/event-stream"):
        reply = Reply(raw=error.raw, raw_type=kind)
        assert await end(reply) == ("server", 0, "overloaded_error", None, "Overloaded")


def refused(status: int, kind: str, words: str, **more: str) -> Reply:
    error = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}
    return Reply(status=status, error=error, headers=more)


REFUSALS = [
    refused(400, "invalid_request_error", "prompt is too long: 9001 tokens > 8192 maximum"),
    refused(
        400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 21000 > 200000"
    ),
    refused(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    refused(400, "invalid_request_error", "messages.1: all messages must have non-empty content"),
    refused(401, "authentication_error", "invalid x-api-key"),
    refused(402, "billing_error", "There is an issue with your billing."),
    refused(403, "permission_error", "Your API key does not have permission."),
    refused(404, "not_found_error", "model: claude-none"),
    refused(413, "request_too_large", "Request exceeds the maximum size"),
    refused(429, "rate_limit_error", "This would exceed 30,000 input tokens per minute", **{"retry-after": "7"}),
    refused(500, "api_error", "Internal server error"),
    refused(504, "timeout_error", "The request timed out"),
    refused(529, "overloaded_error", "Overloaded", **{"retry-after": "3"}),
    Reply(status=502, error="<html>bad gateway</html>"),
    Reply(status=413, error="Request Entity Too Large"),
]


@pytest.mark.parametrize("reply", REFUSALS, ids=lambda reply: f"{reply.status} {str(reply.error)[:60]}")
async def test_refusals(worker: ModelProcess, connections: Connections, reply: Reply) -> None:
    await alike(worker, connections, "anthropic", reply)


@pytest.mark.parametrize("after", [0, 1, 4])
@pytest.mark.parametrize("reply", [REFUSALS[0], REFUSALS[-3]], ids=["too long", "overloaded"])
async def test_errors_among_the_events(
    worker: ModelProcess, connections: Connections, after: int, reply: Reply
) -> None:
    assert isinstance(reply.error, dict)
    await alike(worker, connections, "anthropic", breaks("error_event", after=after, error=reply.error))


async def test_an_address_of_the_environment_needs_no_scheme() -> None:
    server = server_of(ModelSettings("anthropic/claude-sonnet-4-5"), {"ANTHROPIC_BASE_URL": "localhost:8080/"})
    assert isinstance(server, AnthropicServer) and server.base == "http://localhost:8080"
