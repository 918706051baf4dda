"""Models of a person's settings as they are listed: with what their server says, whether it is there, whose key is missing."""

from __future__ import annotations

from ctxchat.models.discovery import configured
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble

LLAMA_CPP = {"/props": {"default_generation_settings": {"n_ctx": 4096}}}


async def test_a_server_of_ones_own_says_its_window() -> None:
    async with ModelDouble(pages=LLAMA_CPP) as double:
        row = await configured(ModelSettings("openai/mine", api_base=double.base_url, window=99_000), {})
        locked = await configured(ModelSettings("openai/mine", api_base=double.base_url, api_key_env="MINE"), {})
        opened = await configured(
            ModelSettings("openai/mine", api_base=double.base_url, api_key_env="MINE"), {"MINE": "k"}
        )
    assert (row.reachable, row.window, row.window_source, row.input_cost) == (True, 4096, "loaded", None)
    assert row.api_base == double.base_url and row.note == "in your settings"
    assert not locked.reachable and "MINE is not set" in locked.note and opened.reachable


async def test_one_that_is_away_says_so() -> None:
    row = await configured(ModelSettings("openai/mine", api_base="http://127.0.0.1:9/v1", window=16_000), {})
    assert not row.reachable and "nobody listens at http://127.0.0.1:9/v1" in row.note
    assert (row.window, row.window_source) == (16_000, "configured")


async def test_a_providers_model_has_its_price_and_wants_its_key() -> None:
    without = await configured(ModelSettings("anthropic/claude-sonnet-4-5"), {})
    there = await configured(ModelSettings("anthropic/claude-sonnet-4-5"), {"ANTHROPIC_API_KEY": "k"})
    assert not without.reachable and "ANTHROPIC_API_KEY is not set" in without.note
    assert there.reachable and there.input_cost == 3.0 and there.window_source == "catalogue"
