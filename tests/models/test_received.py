"""Replies go back as they came: against a server that refuses every other order, and counts what its cache reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.messages import Message, Reasoning, Received, ToolCall
from ctxchat.core.overflow import is_context_overflow
from ctxchat.core.ports import ModelRequest, ReplyEnd
from ctxchat.models import received
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.replies import says as double_says
from tests.doubles.requests import asks, listen, view_of
from tests.doubles.strict import StrictClaude, answers, appended, says, thought, use
from tests.doubles.strict.script import Answer, Redacted
from tests.models.served import Way, lane, model_at, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = "word " * 1500
NOTE = thought("First this.")
ROUNDS = [
    answers(thought("hm"), "I look.", thought("and then"), use("read_file", path="a.txt")),
    answers(Redacted(), "Again.", thought(), use("read_file", path="a"), use("read_file", path="b")),
]
APART = answers(NOTE, use("read_file", path="a"), thought("Then that."), use("read_file", path="b"))


def claude(server: StrictClaude, way: Way) -> ModelClient:
    settings = ModelSettings("anthropic/claude-fable-5-2", api_base=server.root, timeout=30)
    return ModelClient(settings, lane(settings, way), lambda _: "key")


async def conversation(
    server: StrictClaude, way: Way, rounds: int, *, ids: Sequence[str] = (), **more: Any
) -> tuple[list[ReplyEnd], list[Message]]:
    """A turn of so many rounds, and its messages. `ids` are given to calls in place of theirs."""
    model = claude(server, way)
    said = [Message(0, "system", LONG), Message(1, "user", "What is there?")]
    ends: list[ReplyEnd] = []
    new = iter(ids)
    for n in range(rounds):
        heard = await listen(model, ModelRequest(view_of(*said), **more))
        assert heard.end is not None
        ends.append(heard.end)
        thoughts = Reasoning(heard.reasoning, received=heard.end.received)
        calls = tuple(ToolCall(next(new, c.id), c.name, c.arguments) for c in heard.end.calls)
        said.append(Message(10 * n + 2, "assistant", heard.text, calls, reasoning=thoughts))
        said += [Message(10 * n + 3, "tool", "ok", call_id=c.id) for c in calls]
    return ends, said


async def test_blocks_in_their_order_and_what_the_cache_reads(connections: Connections) -> None:
    async with StrictClaude([*ROUNDS, APART, says("Done.", think="so")]) as server:
        ends, said = await conversation(server, connections, 4, lasting=True, effort="low")
    assert not any(e.refused for e in server.exchanges) and len(server.exchanges) == 4
    assert not server.mismatches and not appended(server.exchanges)
    assert server.read_share() > 0.9
    body = server.exchanges[-1].body
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "low"}
    assert all(mark["ttl"] == "1h" for mark in marks(body)) and 2 < len(marks(body)) <= 4
    assert said[2].text == "I look." and said[2].reasoning is not None and said[2].reasoning.text == "hmand then"
    assert ends[0].notes.message_id == "msg_0003" or ends[0].notes.message_id.startswith("msg_")
    assert ends[-1].usage is not None and ends[-1].usage.written_long > 0


def marks(body: Any) -> list[dict[str, str]]:
    """All cache marks, wherever they are."""
    if isinstance(body, list):
        return [mark for inner in body for mark in marks(inner)]
    if not isinstance(body, dict):
        return []
    return [v for k, v in body.items() if k == "cache_control"] + [m for v in body.values() for m in marks(v)]


async def test_words_between_thoughts_are_told_apart(connections: Connections) -> None:
    async with StrictClaude([answers("First.", thought("hm"), "Second."), says("ok")]) as server:
        model = claude(server, connections)
        heard = await listen(model, asks("hi"))
        assert heard.text == "First.\n\nSecond." and heard.end is not None
        reply = Message(2, "assistant", heard.text, reasoning=Reasoning("hm", received=heard.end.received))
        await listen(
            model,
            ModelRequest(
                view_of(Message(0, "system", "Be brief."), Message(1, "user", "hi"), reply, Message(3, "user", "go"))
            ),
        )
    assert [b["type"] for b in server.exchanges[1].body["messages"][1]["content"]] == ["text", "thinking", "text"]


async def test_ids_given_anew_do_not_break_the_blocks(connections: Connections) -> None:
    async with StrictClaude([ROUNDS[0], says("Done.")], binds=False) as server:
        await conversation(server, connections, 2, ids=["call_9_0"])
    sent = server.exchanges[1].body["messages"][1]["content"]
    assert [b["type"] for b in sent] == ["thinking", "text", "thinking", "tool_use"] and sent[-1]["id"] == "call_9_0"


async def test_a_reply_that_says_something_else_by_now_goes_without_its_thoughts(connections: Connections) -> None:
    async with StrictClaude([ROUNDS[0], says("Done.")]) as server:
        _, said = await conversation(server, connections, 1)
        short = Message(2, "assistant", said[2].text, (ToolCall(said[2].calls[0].id, "read_file", '{"path":"…"}'),))
        short = Message(2, "assistant", short.text, short.calls, reasoning=said[2].reasoning)
        await listen(claude(server, connections), ModelRequest(view_of(*said[:2], short, said[3])))
    sent = server.exchanges[1].body["messages"][1]["content"]
    assert [b["type"] for b in sent] == ["text", "tool_use"] and sent[1]["input"] == {"path": "…"}


@pytest.mark.parametrize("reply", [ROUNDS[0], APART], ids=["a text between", "calls between thoughts"])
async def test_through_litellm_they_keep_their_order(worker: ModelProcess, reply: Answer) -> None:
    async with StrictClaude([reply, says("Done.")]) as server:
        await conversation(server, worker, 2)
    assert [e.refused for e in server.exchanges] == ["", ""]
    sent = server.exchanges[1].body["messages"][1]["content"]
    expected = {1: ["thinking", "text", "thinking", "tool_use"], 0: ["thinking", "tool_use"] * 2}
    assert [b["type"] for b in sent] == expected[reply is ROUNDS[0]]


async def test_another_model_is_not_sent_what_it_cannot_read(connections: Connections) -> None:
    async with StrictClaude([ROUNDS[0], says("Done.")]) as server:
        _, said = await conversation(server, connections, 1)
        settings = ModelSettings("anthropic/kimi-k3", api_base=server.root, timeout=30)
        model = ModelClient(settings, lane(settings, connections), lambda _: "key")
        await listen(model, ModelRequest(view_of(*said)))
    assert "thinking" not in json.dumps(server.exchanges[1].body["messages"])


async def test_a_full_window_is_an_overflow(connections: Connections) -> None:
    for words in ("Half", ""):
        async with served("anthropic", [double_says(words, finish="model_context_window_exceeded")]) as double:
            with pytest.raises(ModelError) as full:
                await listen(model_at(double, connections, "anthropic"), asks("hi"))
        assert is_context_overflow(full.value)


async def test_what_the_server_did_with_the_request_is_told(connections: Connections) -> None:
    async with StrictClaude([ROUNDS[0], says("Done.")]) as server:
        _, said = await conversation(server, connections, 1)
        binding = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
        asked = {"diagnostics": {"previous_message_id": "msg_unknown"}}
        extra = {
            "extra_body": {**binding, **asked},
            "extra_headers": {"anthropic-beta": "thinking-binding-controls-2026-08-01"},
        }
        settings = ModelSettings("anthropic/claude-fable-5-2", api_base=server.root, timeout=30, extra=extra)
        model = ModelClient(settings, lane(settings, connections), lambda _: "key")
        heard = await listen(model, ModelRequest(view_of(Message(0, "system", "Other."), *said[1:])))
    assert heard.end is not None
    notes = heard.end.notes
    assert (notes.thoughts_dropped, notes.drop_reason) == (2, "prefix_binding_mismatch")
    assert notes.cache_miss == "previous_message_not_found"


async def test_a_blank_text_beside_thoughts_does_not_go_back_since_servers_refuse_it() -> None:
    blocks = [
        thought_block := {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "\n\n"},
    ]
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
    came = Received("messages", "anthropic/claude-fable-5-2", json.dumps([*blocks, call]))
    said = Message(2, "assistant", "\n\n", (ToolCall("t1", "read_file", '{"path": "a"}'),))
    assert received.blocks_to_send(came, said) == [thought_block, call]
