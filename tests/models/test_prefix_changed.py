"""A refusal because thoughts came back behind something else than they were thought after is told apart from all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.messages import Message, Reasoning, Received
from ctxchat.models import failures
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections, DirectTransport, ServerRefused, server_of
from ctxchat.models.settings import ModelSettings
from tests.doubles.requests import asks, listen

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the "
    'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
WORDS = [
    BOUND,
    f"{BOUND} That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.",
    "messages.3.content.1: Invalid `signature` in `redacted_thinking` block",
    "messages.43.content.7: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These "
    "blocks must remain as they were in the original response.",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
    "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
]
OTHERS = [
    "prompt is too long: 9001 tokens > 8192 maximum",
    "messages: text content blocks must be non-empty",
    "max_tokens: must be greater than `thinking.budget_tokens`",
    "Expected `thinking` or `redacted_thinking`, but found `text`.",
]


@pytest.mark.parametrize("words", WORDS + OTHERS)
async def test_its_words(words: str) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    error = failures.failure(ServerRefused("The server answered 400.", 400, body), began=False)
    assert (error.kind == "prefix_changed") is (words in WORDS)
    assert not error.transient and words in error.text


@pytest.fixture
def model(connections: Connections) -> Callable[..., ModelClient]:
    def made(name: str, **more: object) -> ModelClient:
        settings = ModelSettings(name, api_base="http://127.0.0.1:9", **more)  # pyright: ignore[reportArgumentType]
        server = server_of(settings, {})
        assert server is not None
        return ModelClient(settings, DirectTransport(settings, server, connections))

    return made


async def test_which_models_bind_their_thoughts(model: Callable[..., ModelClient]) -> None:
    assert model("anthropic/claude-fable-5-2").binds_thinking
    assert model("openrouter/anthropic/claude-opus-5.5").binds_thinking
    assert not model("anthropic/claude-fable-5-2", keep_reasoning=False).binds_thinking, "nothing of it goes back"
    assert not model("openai/gpt-5").binds_thinking


@pytest.mark.parametrize(
    ("thought_by", "asked", "goes_back"),
    [
        ("anthropic/claude-opus-5-5", "anthropic/claude-opus-5-5", True),
        ("anthropic/claude-opus-5-5", "anthropic/claude-sonnet-5-5", True),
        ("anthropic/claude-opus-5-5", "openai/responses/gpt-6.2-sol", False),
        ("anthropic/claude-fable-5-2", "anthropic/claude-opus-5-5", False),
        ("anthropic/claude-fable-5-2", "anthropic/claude-fable-5-2", True),
    ],
)
async def test_whose_thoughts_a_model_reads(
    model: Callable[..., ModelClient], thought_by: str, asked: str, goes_back: bool
) -> None:
    blocks = '[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Seen."}]'
    reasoning = Reasoning("hm", received=Received("messages", thought_by, blocks))
    assert model(asked).takes_back(Message(1, "assistant", "Seen.", reasoning=reasoning)) is goes_back
    assert not model(asked, keep_reasoning=False).takes_back(Message(1, "assistant", "Seen.", reasoning=reasoning))
    assert not model(asked).takes_back(Message(1, "assistant", "Seen."))


async def test_through_a_server(connections: Connections) -> None:
    from tests.doubles.strict import StrictClaude
    from tests.doubles.strict.script import Answer

    async with StrictClaude([Answer(status=400, error=("invalid_request_error", BOUND))]) as server:
        settings = ModelSettings("anthropic/claude-fable-5-2", api_base=server.root, timeout=30)
        way = server_of(settings, {})
        assert way is not None
        with pytest.raises(ModelError) as refused:
            await listen(
                ModelClient(settings, DirectTransport(settings, way, connections), lambda _: "key"), asks("hi")
            )
    assert refused.value.kind == "prefix_changed" and refused.value.status == 400
