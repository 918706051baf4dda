"""litellm's list of models: windows, output limits, prices. Read from its file, without importing litellm."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

_FILES = ("model_prices_and_context_window_backup.json", "provider_endpoints_support_backup.json")


class Entry(msgspec.Struct, frozen=True):
    """One model. Tokens, and US dollars a token; None where litellm does not know."""

    provider: str | None = msgspec.field(name="litellm_provider", default=None)
    mode: str | None = None
    max_input_tokens: int | str | None = None
    max_output_tokens: int | str | None = None
    input_cost_per_token: float | str | None = None
    output_cost_per_token: float | str | None = None
    cache_read_input_token_cost: float | str | None = None
    supports_vision: bool | None = None

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
def entries() -> dict[str, Entry]:
    """All models by litellm's name; empty where the file cannot be read. Some 10 ms the first time."""
    return _read(_FILES[0], dict[str, Entry], {})


@functools.cache
def prefixes() -> frozenset[str]:
    """Every provider prefix litellm's files name."""
    listed = _read(_FILES[1], _Support, _Support()).providers
    known = {
        entry.provider.split("-")[0] for entry in entries().values() if entry.provider and " " not in entry.provider
    }
    return frozenset(name for name in {*listed, *known} if "/" not in name)


def find(name: str) -> Entry | None:
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


def _read(file: str, kind: type[T], otherwise: T) -> T:
    folder = package_folder()
    try:
        return msgspec.json.decode((folder / file).read_bytes(), type=kind) if folder else otherwise
    except (OSError, msgspec.DecodeError):
        return otherwise
