"""Fetches and stores providers' own lists of their models: windows, output limits, prices. A list is renewed once a day when one
of the provider's models is used, and kept in the data folder.

No caller has to wait for a provider: a new list counts from the next look-up on. If a provider does not answer, or a file cannot
be read, only its information is missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.core.prices import TOKENS_PER_PRICE, ModelPrices, Rates
from ctxchat.models.anthropic import authorised
from ctxchat.models.probes import probe
from ctxchat.models.settings import ModelSettings

MAX_AGE_S = 86_400.0
"""Seconds until a list is renewed."""

RETRY_S = 600.0
"""Seconds after which a provider that did not answer is asked again."""

TIMEOUT_S = 10.0
"""Seconds a provider has for its list."""

ADDRESSES = {
    "anthropic": "https://api.anthropic.com/v1/models?limit=1000",
    "openrouter": "https://openrouter.ai/api/v1/models",
}
"""The URL of a provider's model list, by litellm's prefix."""


class ListedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model in its provider's list. `window` and `output` in tokens, 0 where not listed; `efforts` as in `ModelPort.efforts`;
    `sees`: it takes images."""

    window: int = 0
    output: int = 0
    rates: Rates | None = None
    efforts: tuple[str, ...] | None = None
    sees: bool | None = None

    @property
    def prices(self) -> ModelPrices | None:
        """The model's prices, without cache lifetimes, which the lists do not have."""
        return ModelPrices(self.rates) if self.rates else None


class ProviderList(msgspec.Struct, frozen=True):
    """A provider's models by its own names for them, and when the list was fetched, in seconds since 1970."""

    at: float = 0.0
    models: dict[str, ListedModel] = {}


class ProviderLists:
    """The lists of all providers that have one. `folder` stores them and is created with the first; `now` returns the time in
    seconds since 1970; `addresses` are the lists' URLs."""

    def __init__(
        self, folder: Path, now: Callable[[], float] = time.time, addresses: Mapping[str, str] = ADDRESSES
    ) -> None:
        self._folder = folder
        self._now = now
        self._addresses = addresses
        self._lists: dict[str, ProviderList] = {}
        self._asked: dict[str, float] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def find(self, settings: ModelSettings) -> ListedModel | None:
        """A model's entry in its provider's latest list; None where there is none, or the model is called at another address. The
        first call reads a file."""
        prefix = settings.provider.prefix
        if prefix not in self._addresses or settings.base:
            return None
        return self._stored_list(prefix).models.get(settings.model)

    def renew(self, settings: ModelSettings, key: str) -> asyncio.Task[None] | None:
        """Begin to renew the list of a model's provider if it is old; None where it need not be renewed, or there is no key."""
        prefix = settings.provider.prefix
        if prefix not in self._addresses or settings.base or not key:
            return None
        if prefix in self._under_way:
            return self._under_way[prefix]
        now = self._now()
        if 0 <= now - self._stored_list(prefix).at < MAX_AGE_S or 0 <= now - self._asked.get(prefix, 0.0) < RETRY_S:
            return None
        self._asked[prefix] = now
        task = self._under_way[prefix] = asyncio.create_task(self._renewed(prefix, key))
        task.add_done_callback(lambda _: self._under_way.pop(prefix, None))
        return task

    async def close(self) -> None:
        """Cancel all requests under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _renewed(self, prefix: str, key: str) -> None:
        """Fetch a provider's list and store it; where that fails, the old one stays."""
        # OpenRouter's list is public, so no key is sent.
        headers = {**authorised(key), "anthropic-version": "2023-06-01"} if prefix == "anthropic" else {}
        answer = await probe(self._addresses[prefix], headers=headers, seconds=TIMEOUT_S)
        rows = answer.get("data") if isinstance(answer, Mapping) else None
        read = _anthropic if prefix == "anthropic" else _openrouter
        models = {
            row["id"]: read(row) for row in rows or () if isinstance(row, dict) and isinstance(row.get("id"), str)
        }
        if models:
            self._lists[prefix] = ProviderList(self._now(), models)
            await asyncio.to_thread(self._keep, prefix)

    def _stored_list(self, prefix: str) -> ProviderList:
        """A provider's list as it is stored; an empty one where there is none."""
        if prefix not in self._lists:
            self._lists[prefix] = ProviderList()
            with suppress(OSError, msgspec.MsgspecError, UnicodeError):
                text = (self._folder / f"{prefix}.json").read_bytes()
                self._lists[prefix] = msgspec.json.decode(text, type=ProviderList)
        return self._lists[prefix]

    def _keep(self, prefix: str) -> None:
        """Write a provider's list to its file; a failure is ignored, since the list can be fetched again."""
        whole, new = self._folder / f"{prefix}.json", self._folder / f"{prefix}.json.new"
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(msgspec.json.encode(self._lists[prefix]))
            new.replace(whole)


def _anthropic(row: Mapping[str, Any]) -> ListedModel:
    """A row of Anthropic's /v1/models."""
    able = _object(row, "capabilities")
    effort = _object(able, "effort")
    levels = tuple(name for name, level in effort.items() if isinstance(level, dict) and level.get("supported") is True)
    images = _object(able, "image_input").get("supported")
    return ListedModel(
        _tokens(row.get("max_input_tokens")),
        _tokens(row.get("max_tokens")),
        efforts=(levels if effort.get("supported") else ()) if effort else None,
        sees=images if isinstance(images, bool) else None,
    )


def _openrouter(row: Mapping[str, Any]) -> ListedModel:
    """A row of OpenRouter's /api/v1/models, whose prices are dollars a token as text."""
    price, first, shape = _object(row, "pricing"), _object(row, "top_provider"), _object(row, "architecture")
    new, out = _price(price.get("prompt")), _price(price.get("completion"))
    read, write = _price(price.get("input_cache_read")), _price(price.get("input_cache_write"))
    rates = None
    if new is not None and out is not None:
        written = new if write is None else max(new, write)
        rates = Rates(new, out, new if read is None else read, written, written)
    takes, sorts = row.get("supported_parameters"), shape.get("input_modalities")
    thinks = "reasoning" in takes if isinstance(takes, list) else None
    return ListedModel(
        _tokens(first.get("context_length")) or _tokens(row.get("context_length")),
        _tokens(first.get("max_completion_tokens")),
        rates,
        None if thinks is None else ("low", "medium", "high") if thinks else (),
        "image" in sorts if isinstance(sorts, list) else None,
    )


def _object(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else 0


def _price(value: object) -> float | None:
    """US dollars a million tokens; None for what is no price, as the -1 of models whose price depends."""
    try:
        price = float(value) if isinstance(value, str | int | float) else -1.0
    except ValueError:
        return None
    return round(price * TOKENS_PER_PRICE, 6) if 0 <= price < 1 else None
