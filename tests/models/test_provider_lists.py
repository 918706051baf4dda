"""Providers' own lists of models: asked once a day, kept in a file, read as they come, never in the way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.prices import Rates
from ctxchat.models.client import ModelClient
from ctxchat.models.provider_lists import MAX_AGE_S, RETRY_S, ListedModel, ProviderLists
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble

FABLE = {
    "id": "claude-fable-6",
    "max_input_tokens": 2_000_000,
    "max_tokens": 256_000,
    "capabilities": {
        "effort": {
            "supported": True,
            "low": {"supported": True},
            "high": {"supported": True},
            "max": {"supported": False},
        },
        "image_input": {"supported": True},
    },
}
SOL = {
    "id": "openai/gpt-9-sol",
    "context_length": 1_050_000,
    "pricing": {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000001", "image": "0"},
    "top_provider": {"context_length": 922_000, "max_completion_tokens": 128_000},
    "supported_parameters": ["tools", "reasoning"],
    "architecture": {"input_modalities": ["text", "image"]},
}
PAGES = {"/v1/models": {"data": [FABLE, {"id": "claude-odd", "max_input_tokens": "many"}, 3]}, "/or": {"data": [SOL]}}


class Day:
    """A clock to set."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@asynccontextmanager
async def lists_at(folder: Path, day: Day, pages: Any = PAGES) -> AsyncIterator[tuple[ProviderLists, ModelDouble]]:
    async with ModelDouble(pages=pages) as double:
        lists = ProviderLists(folder, day, {"anthropic": f"{double.root}/v1/models", "openrouter": f"{double.root}/or"})
        try:
            yield lists, double
        finally:
            await lists.close()


FABLE_6 = ModelSettings(name="anthropic/claude-fable-6")
SOL_9 = ModelSettings(name="openrouter/openai/gpt-9-sol")


async def renewed(lists: ProviderLists, settings: ModelSettings, key: str = "key") -> bool:
    task = lists.renew(settings, key)
    if task:
        await task
    return task is not None


async def test_what_providers_say(tmp_path: Path) -> None:
    async with lists_at(tmp_path, Day()) as (lists, double):
        assert lists.find(FABLE_6) is None
        await renewed(lists, FABLE_6)
        await renewed(lists, SOL_9)
        assert lists.find(FABLE_6) == ListedModel(2_000_000, 256_000, None, ("low", "high"), True)
        assert lists.find(ModelSettings(name="anthropic/claude-odd")) == ListedModel()
        rates = Rates(2.0, 10.0, 0.1, 2.0, 2.0)
        assert lists.find(SOL_9) == ListedModel(922_000, 128_000, rates, ("low", "medium", "high"), True)
        anthropic, openrouter = ({k.lower(): v for k, v in seen.headers.items()} for seen in double.pages)
    assert anthropic["x-api-key"] == "key" and anthropic["anthropic-version"]
    assert "key" not in openrouter.values(), "its list is open to all"


async def test_a_list_is_asked_for_once_a_day_and_kept(tmp_path: Path) -> None:
    day = Day()
    async with lists_at(tmp_path, day) as (lists, double):
        assert await renewed(lists, FABLE_6)
        assert not await renewed(lists, FABLE_6)
        day.seconds += MAX_AGE_S + 1
        assert await renewed(lists, FABLE_6)
        assert len(double.pages) == 2
    async with lists_at(tmp_path, day, {}) as (lists, double):
        assert lists.find(FABLE_6) == ListedModel(2_000_000, 256_000, None, ("low", "high"), True)
        assert not await renewed(lists, FABLE_6) and not double.pages


async def test_a_provider_that_says_nothing_is_left_alone_for_a_while_and_takes_nothing_away(tmp_path: Path) -> None:
    day = Day()
    async with lists_at(tmp_path, day) as (lists, _):
        await renewed(lists, FABLE_6)
    day.seconds += MAX_AGE_S + 1
    async with lists_at(tmp_path, day, {"/v1/models": ["?"]}) as (lists, double):
        assert await renewed(lists, FABLE_6)
        assert lists.find(FABLE_6) is not None
        assert not await renewed(lists, FABLE_6)
        day.seconds += RETRY_S + 1
        assert await renewed(lists, FABLE_6)
        assert len(double.pages) == 2


async def test_nobody_is_asked_without_a_key_or_for_another_server(tmp_path: Path) -> None:
    async with lists_at(tmp_path, Day()) as (lists, double):
        await renewed(lists, FABLE_6)
        elsewhere = ModelSettings(name="anthropic/claude-fable-6", api_base="http://127.0.0.1:9")
        assert lists.find(elsewhere) is None
        for settings, key in ((SOL_9, ""), (elsewhere, "key"), (ModelSettings(name="openai/gpt-6.1-sol"), "key")):
            assert lists.renew(settings, key) is None
        assert len(double.pages) == 1


@pytest.mark.parametrize("text", [b"", b"[]", b'{"at": 1, "models": 3}', b"\xff\xfe"])
async def test_a_damaged_file_counts_as_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "anthropic.json").write_bytes(text)
    async with lists_at(tmp_path, Day()) as (lists, _):
        assert lists.find(FABLE_6) is None
        await renewed(lists, FABLE_6)
        assert lists.find(FABLE_6) is not None


class NoLane:
    """Nothing is streamed here."""

    async def start(self) -> None: ...

    def stream(self, arguments: dict[str, Any], timeout: float) -> Any:
        raise NotImplementedError


async def test_a_model_goes_by_its_providers_list(tmp_path: Path) -> None:
    pages = {"/or": {"data": [SOL, {"id": "new/one", "context_length": 70_000}]}}
    async with lists_at(tmp_path, Day(), pages) as (lists, _):
        unheard = ModelClient(SOL_9, NoLane(), lambda _: "key", lists)
        nowhere = ModelSettings(name="openrouter/new/one")
        assert unheard.stated().source == "family", "its family is known"
        first = ModelClient(nowhere, NoLane(), lambda _: "key", lists)
        assert first.stated().source == "assumed"
        assert await first.window() == Window(70_000, "provider"), "nothing else is known: the list is waited for"
        assert await unheard.window() == Window(922_000, "provider")
        assert unheard.stated() == Window(922_000, "provider")
        prices = unheard.prices()
        assert prices is not None and prices.rates.output == 10.0
        assert unheard.efforts == ("low", "medium", "high") and unheard.count_image(100, 100) > 0
