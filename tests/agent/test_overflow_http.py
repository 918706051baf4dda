"""A real server whose window is smaller than believed, over HTTP: one compaction and one retry at each rung."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from ctxchat.core.events import Failed, Notice, Retry, TextDelta, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.quantities import brief
from ctxchat.core.record import CompactionRecord
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections, DirectTransport, server_of
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import LONG
from tests.agent.test_turn import of
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import OVERFLOWS, Reply, breaks, call, calls, refuses, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

Refusal = Callable[[int, int], Reply]
"""How a server words it: tokens of the prompt, its window."""


def openai(prompt: int, window: int) -> Reply:
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens."
    )
    return refuses(400, text, code="context_length_exceeded", type="invalid_request_error")


def unstated(prompt: int, window: int) -> Reply:
    return OVERFLOWS["openai_new"]


def llama(prompt: int, window: int) -> Reply:
    text = "the request exceeds the available context size, try increasing it"
    return refuses(400, text, type="exceed_context_size_error", n_prompt_tokens=prompt, n_ctx=window)


def in_the_stream(prompt: int, window: int) -> Reply:
    error = {"message": f"maximum context length is {window} tokens, got {prompt}", "code": "context_length_exceeded"}
    return breaks("error_event", "Half an answer that never ends", after=3, error={"error": error})


def tokens(body: dict[str, Any]) -> int:
    """What the server counts: a token for four characters of everything it was sent."""
    return len(json.dumps([body["messages"], body.get("tools") or []])) // 4


def server(
    window: int, refusal: Refusal, answer: Callable[[dict[str, Any]], Reply]
) -> Callable[[dict[str, Any]], Reply]:
    def reply(body: dict[str, Any]) -> Reply:
        prompt = tokens(body)
        return refusal(prompt, window) if prompt > window else answer(body)

    return reply


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connections() -> AsyncIterator[Connections]:
    connections = Connections()
    yield connections
    await connections.close()


def desk_at(double: ModelDouble, connections: Connections, *, window: int = 32_000, **options: object) -> Desk:
    settings = ModelSettings(name="openai/double", api_base=double.base_url, window=window, timeout=30)
    server = server_of(settings, {})
    assert server is not None
    model = ModelClient(settings, DirectTransport(settings, server, connections), find=lambda name: "key")
    made = Options(**({"auto_compact": "off", "keep_recent": 8, "prepare": False, "output_reserved": 512} | options))  # type: ignore[arg-type]
    return Desk(model, tools=[Echo()], options=made)


def retried(events: list[object]) -> list[str]:
    """Compactions, retries and the answer in the order in which they came."""
    told: list[str] = []
    for event in events:
        match event:
            case CompactionRecord():
                told.append(event.outcome)
            case Retry():
                told.append("retry")
            case TurnFinished():
                told.append(event.status)
            case _:
                pass
    return told


@pytest.mark.parametrize("refusal", [openai, unstated, llama, in_the_stream])
async def test_one_pass_and_one_retry_and_the_turn_is_completed(connections: Connections, refusal: Refusal):
    async with ModelDouble(server(4_000, refusal, lambda body: says("whole answer"))) as double:
        desk = desk_at(double, connections)
        for number in range(12):
            events = await desk.say(f"question {number}? {LONG}")
            if of(events, Retry):
                break
        assert retried(events) == ["compacted", "retry", "done"]
        passes = of(events, CompactionRecord)
        assert passes[0].reason == "context_overflow" and passes[0].after.used < passes[0].before.used
        sent = [tokens(seen.body) for seen in double.requests[-2:]]
        assert sent[1] < sent[0] and sent[1] <= 4_000
        assert of(events, TurnFinished)[0].text == "whole answer"
        assert desk.state.ledger.groups[-1].first.text == "whole answer"
        assert "Half an answer" not in " ".join(m.text for m in desk.state.ledger.messages())
        context_usage = desk.session.context_usage
        assert context_usage.window_source == "learned" and 1_024 <= context_usage.window < 32_000
        assert context_usage.window == 4_000 or refusal is unstated
        assert bool(context_usage.refused_window) == (refusal is unstated)
        bound = f"at most {brief(context_usage.refused_window)} (taken for {brief(context_usage.window)})"
        held = bound if refusal is unstated else brief(context_usage.window)
        assert any("refused" in n.text and f"window is {held}," in n.text for n in of(events, Notice))
        assert f"question {number}?" in double.requests[-1].body["messages"][-1]["content"], "no new prompt was needed"


async def test_each_rung_is_sent_once_and_smaller_until_it_fits(connections: Connections):
    """The server counts far more than we do: the first rung is not enough."""
    window = [100_000]
    reply = lambda body: (  # noqa: E731
        refuses(400, "prompt is too long") if tokens(body) > window[0] else says("whole")
    )
    async with ModelDouble(reply) as double:
        desk = desk_at(double, connections, keep_recent=16)
        for number in range(14):
            await desk.say(f"question {number}? {LONG}")
        asked, window[0] = len(double.requests), 1_500
        events = await desk.say("and now?")
        sizes = [tokens(seen.body) for seen in double.requests[asked:]]
        assert sizes == sorted(set(sizes), reverse=True) and 2 <= len(sizes) <= 3
        assert retried(events) == ["compacted", "retry"] * (len(sizes) - 1) + ["done"]
        assert of(events, TurnFinished)[0].text == "whole"


async def test_what_never_fits_ends_with_the_servers_own_words_after_three_calls(connections: Connections):
    async with ModelDouble(server(10, openai, lambda body: says("never"))) as double:
        desk = desk_at(double, connections)
        events = await desk.say("hello " + LONG * 4)
        sizes = [tokens(seen.body) for seen in double.requests]
        assert len(sizes) <= 3 and sizes == sorted(set(sizes), reverse=True)
        failed = of(events, Failed)[0]
        assert failed.kind == "overflow" and "maximum context length is 10" in failed.text and "Largest" in failed.hint
        assert [e.text for e in of(events, TextDelta)] == []


async def test_an_overflow_between_rounds_keeps_the_question_and_the_newest_results(connections: Connections):
    def answer(body: dict[str, Any]) -> Reply:
        done = sum(m["role"] == "tool" for m in body["messages"])
        rounds = len(double.requests)
        return says("all done") if rounds > 12 else calls(call("echo", f"c{rounds}-{done}", text="data " * 40, times=5))

    async with ModelDouble(server(3_000, llama, answer)) as double:
        desk = desk_at(double, connections, keep_recent=6)
        events = await desk.say("The first question stays.")
        assert of(events, TurnFinished)[0].text == "all done", of(events, Failed)
        assert of(events, Retry), "the server refused at least once"
        for seen in double.requests:
            assert any(m["role"] == "user" and "first question" in str(m["content"]) for m in seen.body["messages"])


async def test_a_shorter_output_is_asked_for_over_the_wire(connections: Connections):
    def reply(body: dict[str, Any]) -> Reply:
        if body["max_tokens"] > 1_000:
            text = (
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7192 in the "
                f"messages, {body['max_tokens']} in the completion). Please reduce the length of the messages or completion."
            )
            return refuses(400, text, code="context_length_exceeded", type="invalid_request_error")
        return says("short and whole")

    async with ModelDouble(reply) as double:
        desk = desk_at(double, connections, output_reserved=2_000)
        events = await desk.say("hi")
        assert retried(events) == ["retry", "done"]
        asked, again = (seen.body["max_tokens"] for seen in double.requests)
        assert asked > 30_000 and again == 1_000, "as much as there is room for, whatever is reserved; then what fits"
        assert double.requests[0].body["messages"] == double.requests[1].body["messages"]
