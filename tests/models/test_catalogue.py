"""What is known of models before anybody is asked: litellm's list, the table of newer ones, families; prices as providers have
them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.events import Usage
from ctxchat.core.prices import ModelPrices, cost
from ctxchat.models import catalogue, newer_models
from ctxchat.models.settings import ModelSettings
from ctxchat.models.windows import ASSUMED_WINDOW_TOKENS, without_server


def prices_of(name: str) -> ModelPrices:
    known = catalogue.prices(name)
    assert known is not None
    return known


SPENT = [
    # name, prompt, of it read, written, of that for longer, completion, US dollars
    ("claude-haiku-5-5", 300_000, 0, 0, 0, 1_000, 0.1525),
    ("claude-haiku-5-5", 100_000, 0, 0, 0, 0, 0.01),
    ("claude-haiku-5-5", 300_000, 0, 300_000, 300_000, 0, 0.30),
    ("openai/gpt-6.1-sol", 300_000, 0, 300_000, 0, 1_000, 1.515),
    ("openai/gpt-6.1-sol", 300_000, 300_000, 0, 0, 0, 0.06),
    ("openai/gpt-6.1-terra", 100_000, 0, 100_000, 100_000, 0, 0.25),
    ("anthropic/claude-fable-5-2", 100_000, 90_000, 10_000, 0, 1_000, 0.018 + 0.1 + 0.04),
    ("anthropic/claude-fable-5-2", 10_000, 0, 10_000, 10_000, 0, 0.16),
    ("openai/gpt-6.2-astra", 100_000, 90_000, 10_000, 0, 1_000, 0.036 + 0.1 + 0.04),
    ("openai/gpt-6.2-sol", 100_000, 90_000, 10_000, 0, 1_000, 0.009 + 0.025 + 0.01),
    ("openai/gpt-6.2-sol", 300_000, 0, 300_000, 0, 1_000, 1.515),
    ("anthropic/claude-sonnet-4-5", 1_000, 300, 500, 0, 100, (200 * 3 + 300 * 0.3 + 500 * 3.75 + 100 * 15) / 1e6),
    ("openai/gpt-5-mini", 1_000, 400, 0, 0, 100, (600 * 0.25 + 400 * 0.025 + 100 * 2) / 1e6),
    ("gemini/gemini-3.1-pro-preview", 300_000, 200_000, 0, 0, 1_000, 0.08 + 0.4 + 0.018),
    ("dashscope/qwen-flash", 300_000, 0, 0, 0, 1_000, 0.075 + 0.002),
]


@pytest.mark.parametrize(("name", "prompt", "read", "written", "long", "completion", "dollars"), SPENT)
def test_a_call_costs_what_the_provider_takes(
    name: str, prompt: int, read: int, written: int, long: int, completion: int, dollars: float
) -> None:
    usage = Usage(prompt, completion, read, written=written, written_long=long)
    assert cost(prices_of(name), usage) == pytest.approx(dollars)


LIVES = [
    ("claude-opus-5-5", 300, 3600, 512),
    ("anthropic/claude-fable-5-2", 300, 3600, 512),
    ("claude-haiku-4-5", 300, 3600, 4096),
    ("bedrock/us.anthropic.claude-opus-5-5", 300, 3600, 512),
    ("openai/gpt-6.1-terra", 1800, 43_200, 0),
    ("openai/gpt-6.2-sol", 1800, 43_200, 0),
    ("dashscope/qwen3.7-max", 300, 0, 0),
    ("openai/gpt-5.5", 0, 0, 0),
    ("gemini/gemini-3.1-pro-preview", 0, 0, 4096),
    ("deepseek/deepseek-v4-pro", 0, 0, 0),
    ("moonshot/kimi-k3", 0, 0, 0),
]


@pytest.mark.parametrize(("name", "life", "long", "least"), LIVES)
def test_a_cache_lives_as_long_as_is_promised(name: str, life: int, long: int, least: int) -> None:
    known = prices_of(name)
    assert (known.cache_life, known.long_cache_life, known.least_cached) == (life, long, least)


def test_all_of_the_list_can_be_priced() -> None:
    for name, entry in catalogue.entries().items():
        if entry.mode == "chat" and entry.provider in {"anthropic", "openai", "gemini", "dashscope", "xai"}:
            known = catalogue.prices(name)
            assert known is None or known.rates.cached <= known.rates.input or not known.rates.input, name
            assert known is None or list(known.steps) == sorted(known.steps, key=lambda step: step.above), name


WINDOWS = [
    ("anthropic/claude-fable-5-2", Window(1_000_000, "catalogue")),
    ("claude-fable-5-2", Window(1_000_000, "catalogue")),
    ("openai/gpt-6.2-astra", Window(922_000, "catalogue")),
    ("anthropic/claude-opus-5-9", Window(1_000_000, "family")),
    ("anthropic/claude-haiku-6", Window(1_000_000, "family")),
    ("openrouter/anthropic/claude-opus-5.5", Window(1_000_000, "family")),
    ("openrouter/openai/gpt-6.1-sol", Window(922_000, "family")),
    ("openai/gpt-7", Window(922_000, "family")),
    ("dashscope/qwen4-max", Window(991_808, "family")),
    ("openrouter/x-ai/grok-5", Window(500_000, "family")),
    ("openrouter/openai/gpt-oss-300b", Window(ASSUMED_WINDOW_TOKENS, "assumed")),
    ("openrouter/no/such", Window(ASSUMED_WINDOW_TOKENS, "assumed")),
]


@pytest.mark.parametrize(("name", "window"), WINDOWS)
def test_a_model_that_nobody_lists_holds_what_its_family_does(name: str, window: Window) -> None:
    assert without_server(ModelSettings(name=name)) == window
    if window.source != "catalogue":
        assert catalogue.prices(name) is None, "a price is never guessed"


def test_a_name_on_a_server_of_ones_own_says_nothing() -> None:
    settings = ModelSettings(name="openai/gpt-6.2-sol", api_base="http://127.0.0.1:9/v1")
    assert without_server(settings) == Window(ASSUMED_WINDOW_TOKENS, "assumed")
    assert without_server(ModelSettings(name="openai/x"), listed=70_000) == Window(70_000, "provider")
    assert without_server(ModelSettings(name="openai/x", window=9_000), listed=70_000) == Window(9_000, "configured")


def test_what_stands_for_others_is_in_litellms_list() -> None:
    named = {*(newer.like for newer in newer_models.NEWER.values()), *(like for _, like in newer_models._FAMILIES)}  # pyright: ignore[reportPrivateUsage]
    assert named <= catalogue.entries().keys()
    assert not newer_models.NEWER.keys() & catalogue.entries().keys(), "litellm lists it now: take it off the table"


EFFORTS = [
    ("openai/gpt-6.2-sol", ("low", "medium", "high", "xhigh", "max")),
    ("openai/gpt-6-luna", ("none", "low", "medium", "high", "xhigh", "max")),
    ("anthropic/claude-fable-5-2", ("low", "medium", "high", "xhigh", "max")),
    ("anthropic/claude-sonnet-4-5", ()),
    ("openai/gpt-4o", ()),
    ("deepseek/deepseek-v4-pro", ("low", "high", "max")),
    ("openrouter/no/such", None),
]


@pytest.mark.parametrize(("name", "levels"), EFFORTS)
def test_levels_of_effort(name: str, levels: tuple[str, ...] | None) -> None:
    assert catalogue.efforts(name) == levels


def test_some_hours_cost_less() -> None:
    def at(day: int, hour: int) -> float:
        known = catalogue.prices("deepseek/deepseek-v4-pro", datetime(2026, 11, day, hour, 59, tzinfo=UTC))
        assert known is not None
        return known.rates.input

    assert at(20, 8) > at(20, 23) == at(21, 8), "a Friday by day, late, and a Saturday"
