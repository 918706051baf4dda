"""How long a reply may be: the least of what the model writes, what there is room for and what is set, or what a server says."""

from __future__ import annotations

from typing import Any

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.ports import ModelRequest
from ctxchat.models.client import ANTHROPIC_OUTPUT_TOKENS, ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.failures import allowed_output
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, says
from tests.doubles.requests import Heard, asks, listen
from tests.models.served import lane, model_at

in_session = pytest.mark.asyncio(loop_scope="session")

LIMITS = [
    # name, what is set, room, sent
    ("openai/gpt-4o", 0, 0, 16_384),
    ("openai/gpt-4o", 32_000, 900_000, 16_384),
    ("openai/gpt-4o", 4_000, 900_000, 4_000),
    ("openai/gpt-4o", 32_000, 700, 700),
    ("hosted_vllm/any", 32_000, 900_000, 32_000),
    ("hosted_vllm/any", 0, 9_000, 9_000),
    ("hosted_vllm/any", 0, 0, None),
    ("anthropic/claude-fable-5-2", 0, 900_000, 128_000),
    ("anthropic/claude-fable-5-2", 32_000, 900_000, 32_000),
    ("anthropic/unheard-of", 0, 0, ANTHROPIC_OUTPUT_TOKENS),
]


@in_session
@pytest.mark.parametrize(("name", "set_to", "room", "sent"), LIMITS)
async def test_the_limit_that_is_sent(
    connections: Connections, name: str, set_to: int, room: int, sent: int | None
) -> None:
    form = "anthropic" if name.startswith("anthropic/") else "openai"
    async with ModelDouble([says("Half", finish="length")], form=form) as double:
        base = double.root if form == "anthropic" else double.base_url
        chosen = ModelSettings(name, api_base=base, max_output=set_to, timeout=30, window=50_000)
        heard = Heard()
        model = ModelClient(chosen, lane(chosen, connections), lambda _: "key")
        await listen(model, ModelRequest(asks("hi").view, room), heard)
    assert double.requests[0].body.get("max_tokens") == sent
    assert heard.end is not None and heard.end.limit == (sent or 0)


REFUSALS = {
    "OpenAI": "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
    "Anthropic": "max_tokens: 32000 > 16384, which is the maximum allowed number of output tokens for claude-3-5-sonnet",
    "Groq": "`max_completion_tokens` must be less than or equal to `16384`, the maximum value for `max_completion_tokens` is "
    "less than the `context_window` for this model",
    "DeepSeek": "Invalid max_tokens value, the valid range of max_tokens is [1, 16384]",
    "Qwen": "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 16384]",
    "Bedrock": "The maximum tokens you requested exceeds the model limit of 16384. Try again with a maximum tokens value that is "
    "lower than 16384.",
    "with commas": "max_output_tokens may be 16,384 at most",
}


@pytest.mark.parametrize("words", REFUSALS.values(), ids=REFUSALS)
def test_what_a_refusal_allows(words: str) -> None:
    assert allowed_output(ModelError("no", kind="bad_request", status=400, body=words), 32_000) == 16_384


NO_LIMITS = [
    "This model's maximum context length is 4200 tokens. However, you requested 7200 tokens (4000 in the messages, 3200 in the "
    "completion).",
    "prompt is too long: 250000 tokens > 200000 maximum",
    "max_tokens must be a positive integer",
    "temperature must be at most 2000",
    "max_tokens is too large: 64000, at least 40000",
]


@pytest.mark.parametrize("words", NO_LIMITS)
def test_what_names_no_limit_of_a_reply(words: str) -> None:
    assert not allowed_output(ModelError("no", kind="bad_request", status=400, body=words), 32_000)
    assert not allowed_output(ModelError("no", kind="rate_limit", status=429, body=REFUSALS["OpenAI"]), 32_000)


@in_session
async def test_a_limit_that_is_refused_is_lowered_to_what_the_server_allows(connections: Connections) -> None:
    refused = Reply(status=400, error={"error": {"message": REFUSALS["OpenAI"], "type": "invalid_request_error"}})

    def answer(body: dict[str, Any]) -> Reply:
        return refused if body["max_tokens"] > 16_384 else says("ok")

    async with ModelDouble(answer) as double:
        model = model_at(double, connections, "vllm")
        asked = ModelRequest(asks("hi").view, 32_000)
        for _ in range(2):
            heard = Heard()
            await listen(model, asked, heard)
            assert heard.text == "ok" and heard.end is not None and heard.end.limit == 16_384
    assert [seen.body["max_tokens"] for seen in double.requests] == [32_000, 16_384, 16_384]
