"""Reads litellm's list of models (windows, output limits, abilities, prices) from its file, without importing litellm, and adds
what `newer_models` knows."""

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
"""Seconds in an hour."""

OPENAI_CACHE_LIFE_S = 1800
"""The seconds after its last use for which OpenAI promises to cache a prompt, since GPT-5.6 (its guide to prompt caching)."""

MARKED_CACHE_LIFE_S = 300
"""The seconds after its last use for which Anthropic, and Qwen's provider, promise to cache a prompt that has cache marks (their
pages on prompt caching)."""

T = TypeVar("T")

_FILES = ("model_prices_and_context_window_backup.json", "provider_endpoints_support_backup.json")


class Hours(msgspec.Struct, frozen=True):
    """Hours at which a model costs less, in UTC: spans such as `10:00-00:00`, on these days of the week (1 is Monday)."""

    hours_utc: str | tuple[str, ...] = ()
    weekdays: tuple[int, ...] = ()

    def includes(self, at: datetime) -> bool:
        """True for a moment in these hours."""
        spans = (self.hours_utc,) if isinstance(self.hours_utc, str) else self.hours_utc
        times = (span.split("-", 1) for span in spans)
        return at.isoweekday() in self.weekdays and any(
            first <= f"{at:%H:%M}" < ("24:00" if last == "00:00" else last) for first, last in times
        )


class OffPeak(msgspec.Struct, frozen=True):
    """The lower prices of a model, in US dollars per token, and the hours for which they hold."""

    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None
    windows: tuple[Hours, ...] = ()


class CatalogueModel(msgspec.Struct, frozen=True):
    """An entry of the list. Sizes are in tokens, prices in US dollars per token; None where litellm does not know."""

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
    """Whether it is in no list, and this is the entry of another model of its family."""

    @property
    def window(self) -> int:
        """The context window in tokens; 0 where unknown."""
        return self.max_input_tokens if isinstance(self.max_input_tokens, int) else 0

    @property
    def output(self) -> int:
        """The longest reply in tokens; 0 where unknown."""
        return self.max_output_tokens if isinstance(self.max_output_tokens, int) else 0


class _Support(msgspec.Struct, frozen=True):
    providers: dict[str, object] = {}


def package_folder() -> Path | None:
    """The folder in which litellm is installed; None where it is not."""
    spec = importlib.util.find_spec("litellm")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


@functools.cache
def entries() -> dict[str, CatalogueModel]:
    """All entries by litellm's name of the model; empty where the file cannot be read. Takes about 10 ms the first time."""
    return _read_table(_FILES[0], dict[str, CatalogueModel], {})


@functools.cache
def prefixes() -> frozenset[str]:
    """All prefixes of providers in litellm's files."""
    listed = _read_table(_FILES[1], _Support, _Support()).providers
    known = {
        entry.provider.split("-")[0] for entry in entries().values() if entry.provider and " " not in entry.provider
    }
    return frozenset(name for name in {*listed, *known} if "/" not in name)


def catalogue_model(name: str) -> CatalogueModel | None:
    """The entry of a model: under its full name, else under its name without the provider's prefix, where the entry is for that
    provider; for a newer model, that of the model it is like, or of one of its family (`guessed`). None for an unknown model."""
    name = _without_form(name)
    if key := _listed(name):
        return entries()[key]
    if newer := newer_models.newer_model(name):
        return entries().get(newer.like)
    alike = entries().get(newer_models.family(name))
    return msgspec.structs.replace(alike, guessed=True) if alike else None


def _without_form(name: str) -> str:
    """The name without the part that only chooses an API: `openai/gpt-6.2-sol` for `openai/responses/gpt-6.2-sol`."""
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
    """The prefixes of models whose entry names this provider, since litellm has several names for some providers."""
    family = provider.split("-")[0]
    return {family, family.removesuffix("_converse"), family.removesuffix("_chat")}


def prices(name: str, at: datetime | None = None) -> ModelPrices | None:
    """The prices of a model at a moment (default: now), with the steps for long prompts and the lifetime of its provider's cache;
    None where they are unknown. Slow the first time for each model, since litellm's file is read."""
    name = _without_form(name)
    if key := _listed(name):
        fields, entry = _fields(key), entries()[key]
    elif newer := newer_models.newer_model(name):
        fields, entry = newer.fields, entries().get(newer.like)
    else:
        return None
    if entry is None or (rates := _rates(fields)) is None:
        return None
    off_peak = entry.off_peak_pricing
    if off_peak and any(hours.includes(at or datetime.now(UTC)) for hours in off_peak.windows):
        lower = {name: price for name, price in msgspec.to_builtins(off_peak).items() if price is not None}
        rates = _rates({**fields, **lower}) or rates
    life, long = _lives(fields, entry)
    return ModelPrices(rates, _steps(fields), life, long, int(entry.prompt_cache_min_tokens or 0))


def usual_prices(name: str) -> tuple[float | None, float | None]:
    """The prices in US dollars per million tokens of a short prompt and of a reply; None where unknown. Fast enough for all
    models at once."""
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
    """The levels of reasoning effort that can be requested of a model, the least first; empty where it has none, None where that
    is unknown."""
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
"""Levels by the beginning of a model's name, from the makers' pages, where litellm's list does not have them."""

Fields = Mapping[str, Any]
"""An entry of litellm's file as a dictionary."""

_STEP = re.compile(r"input_cost_per_token(_above_(\d+)k_tokens)")


@functools.cache
def _fields(name: str) -> Fields:
    """The entry of a model, with the prices of its first tier where it has only prices by the length of a prompt."""
    fields = msgspec.json.decode(_read_table(_FILES[0], dict[str, msgspec.Raw], {}).get(name, b"{}"))
    return {**next(iter(_tiers(fields).values()), {}), **fields}


def _rates(fields: Fields) -> Rates | None:
    """The rates in an entry; None where it has no price for prompts."""

    def million(*names: str) -> float | None:
        """US dollars per million tokens, from the first of these fields that has a price."""
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
    """The prices by the length of a prompt, where an entry has such a list: by the number of tokens above which they hold."""
    tiers = (t for t in fields.get("tiered_pricing") or () if isinstance(t, dict) and t.get("range"))
    return {int(tier["range"][0]): tier for tier in tiers}


def _steps(fields: Fields) -> tuple[PriceStep, ...]:
    """The lengths of a prompt above which the whole call costs more, with the rates then. A price that a step does not have is
    the usual one."""
    steps = dict(_tiers(fields))
    for match in filter(None, map(_STEP.fullmatch, fields)):
        steps[int(match[2]) * 1000] = {n.removesuffix(match[1]): v for n, v in fields.items() if n.endswith(match[1])}
    priced = ((above, _rates({**fields, **step})) for above, step in sorted(steps.items()))
    return tuple(PriceStep(above, rates) for above, rates in priced if rates and above)


def _lives(fields: Fields, entry: CatalogueModel) -> tuple[int, int]:
    """The usual and the longer lifetime of a provider's cache, in seconds; 0 where it promises none."""
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
    """One of litellm's JSON files as a value of the type `kind`; `otherwise` where it cannot be read."""
    folder = package_folder()
    try:
        return msgspec.json.decode((folder / file).read_bytes(), type=kind) if folder else otherwise
    except (OSError, msgspec.DecodeError):
        return otherwise
