"""Which models are spoken to directly, and what a call costs by the catalogue."""

from __future__ import annotations

import pytest

from ctxchat.models.direct import server_of
from ctxchat.models.settings import ModelSettings

OWN = "http://127.0.0.1:1/v1"
CLAUDES = "https://api.anthropic.com"
THINKS = {"type": "enabled", "budget_tokens": 2048}


@pytest.mark.parametrize(
    ("settings", "there"),
    [
        (ModelSettings("openai/gpt-4o"), "https://api.openai.com/v1"),
        (ModelSettings("gpt-5-mini"), "https://api.openai.com/v1"),
        (ModelSettings("openai/mine", api_base=OWN), OWN),
        (ModelSettings("openai/gpt-5.5", api_base=OWN), OWN),
        (ModelSettings("openai/mine", api_base=OWN, extra={"top_k": 3}), OWN),
        (ModelSettings("lm_studio/qwen3"), "http://127.0.0.1:1234/v1"),
        (ModelSettings("groq/openai/gpt-oss-120b", extra={"temperature": 0}), "https://api.groq.com/openai/v1"),
        (ModelSettings("mistral/mistral-large-latest", api_base="http://127.0.0.1:1"), OWN),
        (ModelSettings("fireworks_ai/accounts/fireworks/models/kimi"), "https://api.fireworks.ai/inference/v1"),
        (ModelSettings("anthropic/claude-sonnet-4-5"), CLAUDES),
        (ModelSettings("claude-opus-5-5", extra={"thinking": {"type": "adaptive"}, "temperature": 0.5}), CLAUDES),
        (ModelSettings("anthropic/claude-opus-4-6", extra={"thinking": THINKS}), CLAUDES),
        (ModelSettings("anthropic/kimi-k2", api_base=OWN, extra={"thinking": THINKS}), OWN),
    ],
)
def test_who_is_spoken_to_directly(settings: ModelSettings, there: str) -> None:
    server = server_of(settings, {})
    assert server is not None and server.base == there


@pytest.mark.parametrize(
    "settings",
    [
        *map(ModelSettings, ["bedrock/anthropic.claude-sonnet-4-5", "gemini/gemini-2.5-pro", "ollama_chat/llama3"]),
        ModelSettings("anthropic/claude-sonnet-5-5", extra={"thinking": THINKS}),
        ModelSettings("anthropic/claude-sonnet-5-5", extra={"thinking": {"type": "disabled"}}),
        ModelSettings("anthropic/claude-sonnet-4-5", extra={"thinking": {"type": "adaptive"}}),
        ModelSettings("anthropic/claude-sonnet-4-5", extra={"reasoning_effort": "low"}),
        ModelSettings("anthropic/claude-unheard-of", extra={"temperature": 0}),
        *map(ModelSettings, ["openai/gpt-5.3-codex", "openai/o3"]),
        ModelSettings("openai/gpt-5-mini", extra={"temperature": 0.5}),
        ModelSettings("openai/mine", api_base=OWN, extra={"reasoning_effort": "low"}),
        ModelSettings("groq/openai/gpt-oss-120b", extra={"seed": 1}),
        ModelSettings("fireworks_ai/kimi"),
        ModelSettings("litellm_proxy/mine"),
    ],
    ids=lambda s: f"{s.name} {' '.join(s.extra)}",
)
def test_what_litellm_has_rules_for_goes_through_it(settings: ModelSettings) -> None:
    assert server_of(settings, {}) is None


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "SSL_VERIFY"])
def test_what_litellm_reads_in_the_environment_still_counts(variable: str) -> None:
    assert server_of(ModelSettings("openai/gpt-4o"), {variable: "x"}) is None


def test_anthropics_address_is_read_as_litellm_reads_it() -> None:
    claude, set_here = ModelSettings("anthropic/claude-sonnet-4-5"), ModelSettings("anthropic/x", api_base=OWN)
    both = {"ANTHROPIC_API_BASE": "http://a/", "ANTHROPIC_BASE_URL": "http://b"}
    for settings, environment, there in (
        (claude, both, "http://a"),
        (claude, {"ANTHROPIC_BASE_URL": "http://b"}, "http://b"),
        (set_here, both, OWN),
    ):
        server = server_of(settings, environment)
        assert server is not None and server.base == there
    assert server_of(claude, {"SSL_VERIFY": "x"}) is None
    assert server_of(claude, {"LITELLM_ANTHROPIC_DISABLE_URL_SUFFIX": "1"}) is None
