"""Families by their names, and rates that are true of texts the table was not made from."""

from __future__ import annotations

import pytest

from benchmarks.texts import KINDS, Texts
from ctxchat.core.calibration import LEAST_RATE, MAX_EXTRA_TOKENS_A_CHAR, MAX_RATE, RATIO_KINDS
from ctxchat.core.tokens import TokenCounter
from ctxchat.models.dialects import ANTHROPIC, LOCAL, OPENAI
from ctxchat.models.samples import SAMPLES
from ctxchat.models.tokenizers import count_with, counter
from ctxchat.models.vocabularies import NEWER, OLDER, VOCABULARIES, assumed, vocabulary_of

NAMES = {
    "openai/gpt-5-mini": "o200k",
    "groq/openai/gpt-oss-120b": "o200k",
    "azure/gpt-4o": "o200k",
    "openai/gpt-4": "cl100k",
    "ollama_chat/phi4": "cl100k",
    "anthropic/claude-sonnet-4-5": "Claude",
    "bedrock/us.anthropic.claude-3-5-haiku-20241022-v1:0": "Claude",
    "ollama_chat/llama3.1:8b": "Llama 3",
    "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo": "Llama 3",
    "ollama_chat/mistral": "Llama 2",
    "ollama_chat/mixtral:8x7b": "Llama 2",
    "mistral/mistral-large-latest": "Mistral",
    "mistral/ministral-8b-latest": "Mistral",
    "openai/Qwen2.5-Coder-32B-Instruct": "Qwen",
    "ollama_chat/qwen3:30b": "Qwen",
    "gemini/gemini-3.1-pro-preview": "Gemma",
    "openai/gemma-3-27b-it": "Gemma",
    "deepseek/deepseek-v4-pro": "DeepSeek",
    "qwen_ai_platform/deepseek-v4-flash": "DeepSeek",
    "openai/DeepSeek-R1-Distill-Qwen-32B": "Qwen",
    "openai/DeepSeek-R1-Distill-Llama-70B": "Llama 3",
    "ollama_chat/deepseek-r1:14b": "Qwen",
    "ollama_chat/deepseek-r1:70b": "Llama 3",
    "xai/grok-4.7": "another newer one",
    "moonshot/kimi-k2.5": "another newer one",
}


@pytest.mark.parametrize("name", NAMES)
def test_families_by_name(name: str) -> None:
    known = vocabulary_of(name)
    assert known and known.name == NAMES[name]


@pytest.mark.parametrize("name", ["openai/other", "openai/local-model", "house", "", "/"])
def test_names_that_tell_nothing(name: str) -> None:
    assert vocabulary_of(name) is None


def test_the_tables_at_hand_against_each_other() -> None:
    """What is counted with the family's very table is the server's figure, for every kind of text."""
    older, newer = count_with(OLDER), count_with(NEWER)
    texts = [Texts(7).take(kind, 800) for kind in KINDS]
    for text in texts:
        assert assumed(None, OLDER, LOCAL).part(TokenCounter(older).text_mix(text)) == older(text)
        exact = assumed(vocabulary_of("openai/gpt-5"), NEWER, OPENAI)
        assert exact.part(TokenCounter(newer).text_mix(text)) == newer(text) == counter("openai/gpt-5")(text)


@pytest.mark.parametrize("known", VOCABULARIES, ids=lambda v: v.name)
def test_the_rates_fit_the_samples_they_are_told_by(known) -> None:
    """The samples are no texts the rates were measured with: a slip in a figure, or in the order of kinds, shows."""
    for table in {OLDER, known.table}:
        counter = TokenCounter(count_with(table))
        for text, tokens in zip(SAMPLES, known.told, strict=bool(known.told)):
            estimate = assumed(known, table, LOCAL).part(counter.text_mix(text))
            assert abs(estimate / tokens - 1) < 0.21, (table, text[:20], estimate, tokens)


@pytest.mark.parametrize("known", [None, *VOCABULARIES], ids=lambda v: v.name if v else "unknown")
def test_what_is_assumed_can_be_learned_from(known) -> None:
    for dialect in (LOCAL, OPENAI, ANTHROPIC):
        start = assumed(known, known.table if known else OLDER, dialect)
        assert all(LEAST_RATE <= rate <= MAX_RATE for rate in start.rates[:RATIO_KINDS])
        assert all(abs(extra) <= MAX_EXTRA_TOKENS_A_CHAR for extra in start.rates[RATIO_KINDS:-1])
        assert all(doubt > 0 for doubt in start.doubts) and not start.samples
