"""What goes wrong on the way to a model: each fault ends in the ModelError that says so, and never in silence."""

from __future__ import annotations

import asyncio

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.overflow import is_context_overflow
from tests.doubles.http_model import ModelDouble
from tests.doubles.planted import planted
from tests.doubles.replies import OVERFLOWS, Reply, breaks, refuses, says
from tests.doubles.requests import Heard, asks, listen
from tests.models.served import Way, model_at

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def failure_of(way: Way, reply: Reply, family: str = "openai", timeout: float = 30) -> tuple[ModelError, Heard]:
    heard = Heard()
    async with ModelDouble([reply]) as double:
        with pytest.raises(ModelError) as caught:
            await listen(model_at(double, way, family, timeout), asks("hi"), heard)
        assert len(double.requests) == 1, "nothing is sent twice"
    return caught.value, heard


STATUSES = [
    (refuses(401, "Incorrect API key", code="invalid_api_key"), "auth", False),
    (refuses(403, "Not allowed"), "auth", False),
    (refuses(402, "Insufficient balance"), "quota", False),
    (
        refuses(429, "You exceeded your current quota, please check your plan", code="insufficient_quota"),
        "quota",
        False,
    ),
    (refuses(429, "Rate limit reached"), "rate_limit", True),
    (refuses(404, "No such model", code="model_not_found"), "not_found", False),
    (refuses(400, "temperature must be below 2"), "bad_request", False),
    (refuses(400, "flagged", code="content_policy_violation"), "content_filter", False),
    (refuses(500, "boom"), "server", True),
    (refuses(503, "Loading model"), "server", True),
    (refuses(529, "Overloaded"), "server", True),
    (Reply(status=502, error="<html>bad gateway</html>"), "server", True),
]


@pytest.mark.parametrize(("reply", "kind", "transient"), STATUSES)
async def test_statuses(way: Way, reply: Reply, kind: str, transient: bool) -> None:
    error, _ = await failure_of(way, reply)
    assert (error.kind, error.status, error.transient) == (kind, reply.status, transient)
    said = reply.error if isinstance(reply.error, str) else (reply.error or {})["error"]["message"]
    assert said in error.body and said in error.text
    assert "litellm" not in error.text


async def test_a_key_that_the_provider_quotes_is_masked(way: Way) -> None:
    key = next(each.secret for each in planted(3) if each.kind == "OpenAI, project")
    error, _ = await failure_of(way, refuses(401, f"Incorrect API key provided: {key}. Look at your keys."))
    assert error.kind == "auth" and key[:20] not in error.text and "Look at your keys." in error.text


@pytest.mark.parametrize("family", ["openai", "anthropic", "ollama"])
async def test_the_body_is_the_providers_own(way: Way, family: str) -> None:
    error, _ = await failure_of(way, refuses(400, "prompt is too long: 9001 tokens > 8192 maximum – ünïcode"), family)
    assert "prompt is too long: 9001 tokens > 8192 maximum – ünïcode" in error.body
    assert error.text == "prompt is too long: 9001 tokens > 8192 maximum – ünïcode"


@pytest.mark.parametrize("family", ["openai", "anthropic"])
async def test_how_long_to_wait_is_told(way: Way, family: str) -> None:
    by_header, _ = await failure_of(way, refuses(429, "slow down", retry_after="7"), family)
    by_words, _ = await failure_of(way, refuses(429, "Rate limit. Please try again in 1m1.5s."), family)
    unsaid, _ = await failure_of(way, refuses(429, "slow down"), family)
    assert (by_header.retry_after, by_words.retry_after, unsaid.retry_after) == (7, 61.5, None)


@pytest.mark.parametrize("family", ["openai", "anthropic"])
async def test_overloaded_keeps_its_status(way: Way, family: str) -> None:
    error, _ = await failure_of(way, refuses(529, "Overloaded", type="overloaded_error"), family)
    assert (error.kind, error.status, error.code) == ("server", 529, "overloaded_error")


@pytest.mark.parametrize("server", sorted(OVERFLOWS))
async def test_overflows_bring_the_servers_own_words(way: Way, server: str) -> None:
    error, _ = await failure_of(way, OVERFLOWS[server])
    assert error.status == OVERFLOWS[server].status
    assert error.kind in {"overflow", "bad_request"}
    if error.status != 413:  # has no words to judge by
        assert is_context_overflow(error, estimated_tokens=9000, window=8192)
    if server == "llama.cpp":
        assert '"n_ctx": 8192' in error.body and error.code == "exceed_context_size_error"
    if server.startswith("openai"):
        assert error.code == "context_length_exceeded"


@pytest.mark.parametrize(
    "reply",
    [
        refuses(
            429,
            "Request too large for gpt-x on tokens per minute (TPM): Limit 8192, Requested 9001.",
            code="rate_limit_exceeded",
        ),
        refuses(401, "Incorrect API key provided: sk-context-length"),
        refuses(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
        refuses(400, "The response was filtered", code="content_filter"),
    ],
)
async def test_what_is_no_overflow_is_not_called_one(way: Way, reply: Reply) -> None:
    error, _ = await failure_of(way, reply)
    assert error.kind != "overflow"


async def test_an_overflow_inside_the_stream(way: Way) -> None:
    error, _ = await failure_of(way, breaks("error_event", after=1, error=OVERFLOWS["openai_new"].error))
    assert (error.kind, error.code) == ("overflow", "context_length_exceeded")


@pytest.mark.parametrize("family", ["openai", "anthropic", "ollama"])
@pytest.mark.parametrize("fault", ["reset", "cut"])
async def test_a_stream_that_breaks_off_keeps_what_came(way: Way, fault, family: str) -> None:
    error, heard = await failure_of(way, breaks(fault, after=4), family)
    assert error.kind == "interrupted" and not error.transient
    assert "Half an answer that never ends".startswith(heard.text) and heard.text
    assert heard.end is None


async def test_a_stream_that_turns_to_nonsense(way: Way) -> None:
    nonsense, heard = await failure_of(way, breaks("malformed"))
    assert nonsense.kind == "interrupted" and heard.text
    for code in (429, 529):
        limited, _ = await failure_of(
            way, breaks("error_event", error={"error": {"message": "Too much", "code": code}})
        )
        assert limited.kind == "interrupted" and "Too much" in limited.body


async def test_faults_before_the_first_word_may_be_tried_again(way: Way) -> None:
    reset, _ = await failure_of(way, breaks("reset", after=0))
    slow, _ = await failure_of(way, says("late", first_byte=5), timeout=0.3)
    event, _ = await failure_of(
        way, breaks("error_event", after=1, error={"error": {"message": "Overloaded", "code": 529}})
    )
    assert (reset.kind, slow.kind, event.kind) == ("connection", "timeout", "server")
    assert reset.transient and slow.transient and event.transient


@pytest.mark.parametrize("reply", [breaks("nothing", after=0), says(""), says(" \n ")])
async def test_an_empty_reply_is_an_error(way: Way, reply: Reply) -> None:
    error, heard = await failure_of(way, reply)
    assert error.kind == "empty" and "context size" in error.hint
    assert heard.end is None


async def test_an_empty_reply_says_what_ended_it(way: Way) -> None:
    filtered, _ = await failure_of(way, says("", finish="content_filter"))
    cut, _ = await failure_of(way, says("", finish="length"))
    assert filtered.kind == "content_filter"
    assert cut.kind == "empty" and "max_output" in cut.hint


async def test_nobody_listens_there(way: Way) -> None:
    double = ModelDouble()
    await double.start()
    await double.stop()
    with pytest.raises(ModelError) as caught:
        await listen(model_at(double, way), asks("hi"))
    assert caught.value.kind == "connection" and caught.value.transient


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -1.0])
async def test_a_cost_that_makes_no_sense_costs_nothing(way: Way, figure: float) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "cost": figure}
    async with ModelDouble([says("hello", usage=usage)]) as double, asyncio.timeout(60):
        heard = await listen(model_at(double, way), asks("hi"))
    assert heard.text == "hello" and heard.end is not None and heard.end.usage is not None
    assert (heard.end.usage.prompt, heard.end.usage.cost_usd) == (10, 0.0)
