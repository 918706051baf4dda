"""litellm's list of models: windows, output limits, prices. Read from its file, without importing litellm."""

from __future__ import annotations

import functools
import importlib.util
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

_FILES = ("model_prices_and_context_window_backup.json", "provider_endpoints_support_backup.json")


class Hours(msgspec.Struct, frozen=True):
    """When something costs less, in UTC: spans such as `10:00-00:00`, on these days (1 is Monday)."""

    hours_utc: str | tuple[str, ...] = ()
    weekdays: tuple[int, ...] = ()

    def hold(self, at: datetime) -> bool:
        """That moment is among them."""
        spans = (self.hours_utc,) if isinstance(self.hours_utc, str) else self.hours_utc
        times = (span.split("-", 1) for span in spans)
        return at.isoweekday() in self.weekdays and any(
            first <= f"{at:%H:%M}" < ("24:00" if last == "00:00" else last) for first, last in times
        )


class OffPeak(msgspec.Struct, frozen=True):
    """What a model costs at some hours."""

    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None
    windows: tuple[Hours, ...] = ()


class CatalogueModel(msgspec.Struct, frozen=True):
    """One model. Tokens, and US dollars a token; None where litellm does not know."""

    provider: str | None = msgspec.field(name="litellm_provider", default=None)
    mode: str | None = None
    max_input_tokens: int | str | None = None
    max_output_tokens: int | str | None = None
    input_cost_per_token: float | str | None = None
    output_cost_per_token: float | str | None = None
    cache_read_input_token_cost: float | str | None = None
    cache_creation_input_token_cost: float | str | None = None
    input_cost_per_token_above_200k_tokens: float | None = None
    output_cost_per_token_above_200k_tokens: float | None = None
    cache_read_input_token_cost_above_200k_tokens: float | None = None
    input_cost_per_token_above_272k_tokens: float | None = None
    output_cost_per_token_above_272k_tokens: float | None = None
    cache_read_input_token_cost_above_272k_tokens: float | None = None
    off_peak_pricing: OffPeak | None = None
    supports_vision: bool | None = None
    supports_sampling_params: bool | None = None
    supports_adaptive_thinking: bool | None = None
    supports_legacy_thinking: bool | None = None
    thinking_always_on: bool | None = None

    @property
    def window(self) -> int:
        """Tokens the model can hold, 0 where unknown."""
        return self.max_input_tokens if isinstance(self.max_input_tokens, int) else 0

    @property
    def output(self) -> int:
        """Tokens it can answer with, 0 where unknown."""
        return self.max_output_tokens if isinstance(self.max_output_tokens, int) else 0


class Prices(msgspec.Struct, frozen=True):
    """US dollars a million tokens; None where unknown."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None


class _Support(msgspec.Struct, frozen=True):
    providers: dict[str, object] = {}


def package_folder() -> Path | None:
    """Where litellm is installed; None where it is not."""
    spec = importlib.util.find_spec("litellm")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


@functools.cache
def entries() -> dict[str, CatalogueModel]:
    """All models by litellm's name; empty where the file cannot be read. Some 10 ms the first time."""
    return _read(_FILES[0], dict[str, CatalogueModel], {})


@functools.cache
def prefixes() -> frozenset[str]:
    """Every provider prefix litellm's files name."""
    listed = _read(_FILES[1], _Support, _Support()).providers
    known = {
        entry.provider.split("-")[0] for entry in entries().values() if entry.provider and " " not in entry.provider
    }
    return frozenset(name for name in {*listed, *known} if "/" not in name)


def find(name: str) -> CatalogueModel | None:
    """The entry of a model, by its full name, else by the name without its provider where that provider made it."""
    table = entries()
    if name in table:
        return table[name]
    head, slash, rest = name.partition("/")
    entry = table.get(rest) if slash else None
    return entry if entry and head in _prefixes(entry.provider or "") else None


def _prefixes(provider: str) -> set[str]:
    """What stands before a model's name, by the provider its entry names: litellm has several of those for one."""
    family = provider.split("-")[0]
    return {family, family.removesuffix("_converse"), family.removesuffix("_chat")}


def prices(name: str) -> Prices:
    """What a model costs."""
    entry = find(name)
    if entry is None:
        return Prices()
    million = (entry.input_cost_per_token, entry.output_cost_per_token, entry.cache_read_input_token_cost)
    return Prices(*(round(cost * 1e6, 6) if isinstance(cost, int | float) else None for cost in million))


def cost(name: str, prompt: int, cached: int, completion: int, at: datetime, written: int = 0) -> float:
    """US dollars for a call: `prompt` tokens, of them `cached` ones and those `written` to a cache, and `completion`. 0 for a
    model without prices; long prompts cost more with some, and some hours less."""
    entry = find(name)
    if entry is None:
        return 0.0
    fields = ("input_cost_per_token", "cache_read_input_token_cost", "output_cost_per_token")
    each = [getattr(entry, field) for field in fields]
    for above in (200, 272):
        if prompt > above * 1000:
            each = _instead(each, [getattr(entry, f"{field}_above_{above}k_tokens") for field in fields])
    cheap = entry.off_peak_pricing
    if cheap and any(hours.hold(at) for hours in cheap.windows):
        each = _instead(each, [getattr(cheap, field) for field in fields])
    new, again, out = (price if isinstance(price, int | float) else None for price in each)
    again = new if again is None else again
    keep = entry.cache_creation_input_token_cost
    kept = min(written, prompt - cached) if isinstance(keep, int | float) else 0
    dearer = kept * (float(keep or 0.0) - (new or 0.0))
    return (prompt - cached) * (new or 0.0) + dearer + cached * (again or 0.0) + completion * (out or 0.0)


def _instead(usual: list[T], other: list[T]) -> list[T]:
    return [before if price is None else price for before, price in zip(usual, other, strict=True)]


def _read(file: str, kind: type[T], otherwise: T) -> T:
    folder = package_folder()
    try:
        return msgspec.json.decode((folder / file).read_bytes(), type=kind) if folder else otherwise
    except (OSError, msgspec.DecodeError):
        return otherwise
