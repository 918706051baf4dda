"""Counting offline: by family, never raising, never stalling."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.models.tokenizers import counter
from ctxchat.models.vocabularies import NEWER, OLDER, table_of

HARD = {
    "spaces": " " * 1_000_000,
    "one letter": "a" * 1_000_000,
    "line ends": "\n" * 1_000_000,
    "special tokens": "<|endoftext|><|im_start|>" * 100,
    "halves of characters": "\ud800\udfff" * 100,
    "base64": "QUJDRA==" * 100_000,
    "emoji": "👩‍👩‍👧‍👦" * 10_000,
}


@pytest.mark.parametrize("model", ["gpt-4o", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize("name", HARD)
def test_hard_texts_have_a_sensible_count(model: str, name: str) -> None:
    count = counter(model)(HARD[name])
    assert len(HARD[name]) / 200 < count <= 4 * len(HARD[name].encode("utf-8", "replace"))


def test_families() -> None:
    newer = [
        "gpt-4o",
        "openai/gpt-5-mini",
        "o3",
        "openrouter/openai/gpt-4.1",
        "azure/gpt-4o",
        "groq/openai/gpt-oss-20b",
    ]
    assert {table_of(name) for name in newer} == {NEWER}
    older = ["gpt-4", "gpt-3.5-turbo", "anthropic/claude-sonnet-4-5", "ollama_chat/llama3", "openai/olmo-2", "double"]
    assert {table_of(name) for name in older} == {OLDER}


def test_known_counts() -> None:
    assert counter("gpt-4o")("Hello, world!") == 4
    assert counter("gpt-4")("") == 0
    japanese = "吾輩は猫である。名前はまだ無い。"
    assert counter("anthropic/claude")(japanese) >= counter("gpt-4o")(japanese)


@given(st.text(st.characters(codec=None), max_size=300))
def test_any_text_counts(text: str) -> None:
    assert 0 <= counter("gpt-4o")(text) <= 4 * len(text)


def test_a_slice_border_adds_next_to_nothing() -> None:
    words = "the quick brown fox jumps over the lazy dog. " * 2000
    whole, parts = counter("gpt-4")(words), sum(map(counter("gpt-4"), words.split(". ")))
    assert whole == pytest.approx(parts, rel=0.15)


def test_counting_loads_without_litellm_and_leaves_the_environment_alone() -> None:
    code = (
        "import os, sys; before = dict(os.environ)\n"
        "from ctxchat.models.tokenizers import counter\n"
        "assert 'tiktoken' not in sys.modules\n"
        "assert counter('gpt-4o')('Hello, world!') == 4\n"
        "assert 'litellm' not in sys.modules and dict(os.environ) == before\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
