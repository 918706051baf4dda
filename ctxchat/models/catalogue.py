"""litellm's list of models: windows, output limits, prices. Read from its file, without importing litellm."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ctxchat.core.prices import TOKENS_PER_PRICE, ModelPrices, PriceStep, Rates
from ctxchat.models import newer_models

HOUR_S = 3600
"""Seconds."""

OPENAI_CACHE_LIFE_S = 1800
"""Seconds from the last use that OpenAI promises at least, since GPT-5.6 (its guide to prompt caching)."""

MARKED_CACHE_LIFE_S = 300
"""Seconds from the last use that Anthropic, and Qwen where a request is marked, promise (their pages on prompt caching)."""

T = TypeVar("T")

_FILES = ("model_prices_and_context_window_backup.json", "provider_endpoints_support_backup.json")


class Hours(msgspec.Struct, frozen=True):
    """When something costs less, in UTC: spans such as `10:00-00:00`, on these days (1 is Monday)."""

    hours_utc: str | tuple[str, ...] = ()
    weekdays: tuple[int, ...] = ()

    def includes(self, at: datetime) -> bool:
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
    off_peak_pricing: OffPeak | None = None
    prompt_cache_min_tokens: float | None = None
    supports_prompt_cache_breakpoint: bool | None = None
    supports_vision: bool | None = None
    supports_sampling_params: bool | None = None
    supports_reasoning: bool | None = None
    supports_none_reasoning_effort: bool | None = None
    supports_minimal_reasoning_effort: bool | None = None
    supports_xhigh_reasoning_effort: bool | None = None
    supports_max_reasoning_effort: bool | None = None
    reasoning_effort_levels: tuple[str, ...] | None = None
    supports_adaptive_thinking: bool | None = None
    supports_anthropic_compaction: bool | None = None
    supports_legacy_thinking: bool | None = None
    thinking_always_on: bool | None = None
    guessed: bool = False
    """It is in no list: what a model of the same family has."""

    @property
    def window(self) -> int:
        """Tokens the model can hold, 0 where unknown."""
        return self.max_input_tokens if isinstance(self.max_input_tokens, int) else 0

    @property
    def output(self) -> int:
        """Tokens it can answer with, 0 where unknown."""
        return self.max_output_tokens if isinstance(self.max_output_tokens, int) else 0


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
    return _read_table(_FILES[0], dict[str, CatalogueModel], {})


@functools.cache
def prefixes() -> frozenset[str]:
    """Every provider prefix litellm's files name."""
    listed = _read_table(_FILES[1], _Support, _Support()).providers
    known = {
        entry.provider.split("-")[0] for entry in entries().values() if entry.provider and " " not in entry.provider
    }
    return frozenset(name for name in {*listed, *known} if "/" not in name)


def catalogue_model(name: str) -> CatalogueModel | None:
    """What is known of a model: by its full name, else by the name without its provider where that provider made it; one that is
    newer than litellm's list by `newer_models`, or as a model of its family, without prices (`guessed`)."""
    name = _without_form(name)
    if key := _listed(name):
        return entries()[key]
    if newer := newer_models.newer_model(name):
        return entries().get(newer.like)
    alike = entries().get(newer_models.family(name))
    return msgspec.structs.replace(alike, guessed=True) if alike else None


def _without_form(name: str) -> str:
    """The name without what says only in which form the model is asked: `openai/responses/gpt-6.2-sol`."""
    return name.replace("/responses/", "/", 1)


def _listed(name: str) -> str:
    """The name under which litellm lists a model; empty where it does not."""
    table = entries()
    if name in table:
        return name
    head, slash, rest = name.partition("/")
    entry = table.get(rest) if slash else None
    return rest if entry and head in _prefixes(entry.provider or "") else ""


def _prefixes(provider: str) -> set[str]:
    """What stands before a model's name, by the provider its entry names: litellm has several of those for one."""
    family = provider.split("-")[0]
    return {family, family.removesuffix("_converse"), family.removesuffix("_chat")}


def prices(name: str, at: datetime | None = None) -> ModelPrices | None:
    """What a model costs at a moment (now), with its steps and how long its provider keeps what it was sent; None where nobody
    says. Reads litellm's file the first time a model is asked for."""
    name = _without_form(name)
    if key := _listed(name):
        fields, entry = _fields(key), entries()[key]
    elif newer := newer_models.newer_model(name):
        fields, entry = newer.fields, entries().get(newer.like)
    else:
        return None
    if entry is None or (rates := _rates(fields)) is None:
        return None
    cheap = entry.off_peak_pricing
    if cheap and any(hours.includes(at or datetime.now(UTC)) for hours in cheap.windows):
        less = {name: price for name, price in msgspec.to_builtins(cheap).items() if price is not None}
        rates = _rates({**fields, **less}) or rates
    life, long = _lives(fields, entry)
    return ModelPrices(rates, _steps(fields), life, long, int(entry.prompt_cache_min_tokens or 0))


def usual_prices(name: str) -> tuple[float | None, float | None]:
    """US dollars a million tokens of a short prompt, and of a reply; None where unknown. Quick enough for all models at once."""
    name = _without_form(name)
    entry = catalogue_model(name)
    newer = newer_models.newer_model(name) if entry and not _listed(name) else None
    if entry is None or entry.guessed:
        return None, None
    each = entry.input_cost_per_token, entry.output_cost_per_token
    if newer:
        each = newer.fields["input_cost_per_token"], newer.fields["output_cost_per_token"]
    new, out = (round(cost * TOKENS_PER_PRICE, 6) if isinstance(cost, int | float) else None for cost in each)
    return new, out


def efforts(name: str) -> tuple[str, ...] | None:
    """The levels of effort a model has, the least first; none for one that has no such thing, None where nobody says."""
    entry = catalogue_model(name)
    if entry is None:
        return None
    if entry.reasoning_effort_levels is not None:
        return entry.reasoning_effort_levels
    legacy = "claude" in name and not entry.supports_adaptive_thinking  # its thinking is switched on and off
    if not entry.supports_reasoning or legacy:
        return ()
    if three := next((levels for begins, levels in _THREE.items() if begins in name), ()):
        return three
    marked = (
        (entry.supports_none_reasoning_effort, "none"),
        (entry.supports_minimal_reasoning_effort, "minimal"),
        *((True, level) for level in ("low", "medium", "high")),
        (entry.supports_xhigh_reasoning_effort, "xhigh"),
        (entry.supports_max_reasoning_effort, "max"),
    )
    return tuple(level for has, level in marked if has)


_THREE = {"deepseek-v": ("low", "high", "max"), "glm-5": ("low", "high", "max")}
"""Levels as the makers' own pages have them, where litellm's list does not say."""

Fields = Mapping[str, Any]
"""An entry of litellm's file as it is."""

_STEP = re.compile(r"input_cost_per_token(_above_(\d+)k_tokens)")


@functools.cache
def _fields(name: str) -> Fields:
    """As a model without a usual price but with one by length begins: from its first tier on."""
    fields = msgspec.json.decode(_read_table(_FILES[0], dict[str, msgspec.Raw], {}).get(name, b"{}"))
    return {**next(iter(_tiers(fields).values()), {}), **fields}


def _rates(fields: Fields) -> Rates | None:
    """What a call costs; None where the price of a prompt is not said."""

    def million(*names: str) -> float | None:
        given = (fields.get(name) for name in names)
        prices = (v for v in given if isinstance(v, int | float) and not isinstance(v, bool))
        return next((round(price * TOKENS_PER_PRICE, 6) for price in prices), None)

    new, out = million("input_cost_per_token"), million("output_cost_per_token")
    if new is None:
        return None
    read = ("explicit_cache_read_input_token_cost", "cache_read_input_token_cost", "input_cost_per_token_cache_hit")
    cached = million(*read)
    written = max(new, million("cache_creation_input_token_cost") or 0.0)
    long = million(f"{_WRITE}_above_1hr", f"{_WRITE}_above_12hr") or 0.0
    return Rates(new, out or 0.0, new if cached is None else cached, written, max(written, long))


_WRITE = "cache_creation_input_token_cost"


def _tiers(fields: Fields) -> dict[int, Fields]:
    """Prices by the length of a prompt, where an entry lists them so: by the tokens above which they hold."""
    tiers = (t for t in fields.get("tiered_pricing") or () if isinstance(t, dict) and t.get("range"))
    return {int(tier["range"][0]): tier for tier in tiers}


def _steps(fields: Fields) -> tuple[PriceStep, ...]:
    """Where all of a call begins to cost more, by the length of its prompt. What a step does not name stays as it was."""
    steps = dict(_tiers(fields))
    for match in filter(None, map(_STEP.fullmatch, fields)):
        steps[int(match[2]) * 1000] = {n.removesuffix(match[1]): v for n, v in fields.items() if n.endswith(match[1])}
    found = ((above, _rates({**fields, **step})) for above, step in sorted(steps.items()))
    return tuple(PriceStep(above, rates) for above, rates in found if rates and above)


def _lives(fields: Fields, entry: CatalogueModel) -> tuple[int, int]:
    """Seconds for which a provider promises to keep what it was sent, and its longer life; 0 where it promises nothing."""
    long = HOUR_S if "cache_creation_input_token_cost_above_1hr" in fields else 0
    long = 12 * HOUR_S if "cache_creation_input_token_cost_above_12hr" in fields else long
    if entry.supports_prompt_cache_breakpoint:
        return OPENAI_CACHE_LIFE_S, long
    provider = entry.provider or ""
    writes = bool(fields.get("cache_creation_input_token_cost"))
    if writes and (entry.supports_adaptive_thinking is not None or provider == "anthropic" or "anthropic" in provider):
        return MARKED_CACHE_LIFE_S, long
    return (MARKED_CACHE_LIFE_S, long) if writes and provider == "dashscope" else (0, 0)


def _read_table(file: str, kind: type[T], otherwise: T) -> T:
    folder = package_folder()
    try:
        return msgspec.json.decode((folder / file).read_bytes(), type=kind) if folder else otherwise
    except (OSError, msgspec.DecodeError):
        return otherwise
