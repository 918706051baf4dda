"""Finds models that a person can choose: those of providers whose key is set, and those of servers on the usual local ports,
which are all asked at once, with a short timeout."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from ctxchat.core.budget import Window, WindowSource
from ctxchat.models import catalogue, windows
from ctxchat.models.probes import listens, probe
from ctxchat.models.providers import PROVIDERS, Provider
from ctxchat.models.settings import ModelSettings, lookup, where


class FoundModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model that can be chosen. Costs are in US dollars per million tokens, None where unknown. `api_base` is the address to
    set for it, empty for the provider's own. `reachable`: its local server answered, or its provider's key is set. `note` says
    where it was found."""

    name: str
    provider: str
    reachable: bool
    window: int
    window_source: WindowSource
    input_cost: float | None = None
    output_cost: float | None = None
    note: str = ""
    api_base: str = ""


class Offer(msgspec.Struct, frozen=True):
    """A source of models (a server, an account): the model proposed, and how many `others` it has."""

    model: FoundModel
    others: int = 0


class FirstLook(msgspec.Struct, frozen=True):
    """What a person is shown when no model is set: the `offers` to choose from, or a `note` where there is nothing to choose."""

    offers: tuple[Offer, ...] = ()
    note: str = ""


MAX_LISTED_MODELS = 50
"""The most models of one server that are shown."""


class LocalServer(msgspec.Struct, frozen=True):
    """A kind of local server: litellm's prefix for it, and the address without a path where it usually listens."""

    prefix: str
    root: str


_EMBEDS = re.compile(r"embed|bge-|rerank|whisper|tts", re.I)

LOCAL_SERVERS = (
    LocalServer("ollama_chat", "http://127.0.0.1:11434"),
    LocalServer("lm_studio", "http://127.0.0.1:1234"),
    LocalServer("llamafile", "http://127.0.0.1:8080"),
    LocalServer("hosted_vllm", "http://127.0.0.1:8000"),
)


async def discover(
    servers: Sequence[LocalServer] | None = None, environment: Mapping[str, str] = os.environ, *, keyring: bool = False
) -> tuple[FoundModel, ...]:
    """The models that can be used, those of local servers first. Takes about three seconds at most; never raises. `keyring`: look
    for keys in the system's keyring as well, which may ask the person to unlock it."""
    places = local_servers(environment) if servers is None else servers
    found = await asyncio.gather(*(_served(place) for place in places))
    hosted = await asyncio.to_thread(with_keys, environment, keyring=keyring)
    return (*(model for models in found for model in models), *hosted)


def local_servers(environment: Mapping[str, str]) -> tuple[LocalServer, ...]:
    """The local servers to ask, with Ollama's address from its own variable `OLLAMA_HOST` where that is set."""
    host = environment.get("OLLAMA_HOST", "").strip().rstrip("/")
    if not host:
        return LOCAL_SERVERS
    scheme, mark, place = host.rpartition("://")
    place, slash, path = place.partition("/")
    if place.count(":") > 1 and "[" not in place:
        place = f"[{place}]"  # an IPv6 address as it takes it, too
    place = re.sub(r"^(?:0\.0\.0\.0|\[::\])?(?=:|$)", "127.0.0.1", place)  # where it listens: at all of this machine's
    if not mark and ":" not in place.rpartition("]")[2]:
        place += ":11434"
    root = f"{scheme or 'http'}://{place}{slash}{path}"
    return (LocalServer("ollama_chat", root), *LOCAL_SERVERS[1:])


def usual_base(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The address in `OLLAMA_HOST`, for a model of Ollama; empty for other models and where it is the usual one."""
    ours, usual = local_servers(environment)[0], LOCAL_SERVERS[0]
    return ours.root if name.startswith(("ollama/", "ollama_chat/")) and ours != usual else ""


def with_keys(environment: Mapping[str, str], *, keyring: bool = False) -> list[FoundModel]:
    """Models to propose for every provider whose key is in the environment, or in the keyring."""
    return [
        row(f"{provider.prefix}/{offer}", provider, note=place)
        for provider in PROVIDERS.values()
        if provider.offers and (place := where(provider.keys, environment, keyring=keyring))
        for offer in provider.offers
    ]


def offers(found: Sequence[FoundModel]) -> tuple[Offer, ...]:
    """An offer for each source of these models, in the order they were found; each proposes its first model that can chat."""
    places: dict[tuple[str, str], list[FoundModel]] = {}
    for model in found:
        if model.reachable and not _EMBEDS.search(model.name):
            places.setdefault((model.provider, model.note), []).append(model)
    return tuple(Offer(models[0], len(models) - 1) for models in places.values())


def row(name: str, provider: Provider, *, note: str = "") -> FoundModel:
    """A provider's model as a choice, with window and prices from the catalogue."""
    window = windows.without_server(ModelSettings(name=name))
    costs = catalogue.usual_prices(name)
    return FoundModel(name, provider.title, True, window.tokens, window.source, *costs, note)


async def served_beside(settings: ModelSettings) -> tuple[FoundModel, ...]:
    """The other models on this model's server, as it lists them; none for a provider's server, or where it does not answer."""
    if not windows.names_anything(settings):
        return ()
    key = await asyncio.to_thread(lookup, settings.api_key_env) if settings.api_key_env else ""
    if settings.provider.prefix == "ollama_chat":
        names, listed = await _ollama(settings.place), None
    else:
        listed = await probe(windows.listing(settings), key=key)
        names = _ids(listed, "data", "id")
    others = [name for name in names if name != settings.model and not _EMBEDS.search(name)]
    return tuple(_beside(settings, name, windows.from_models(listed, name)) for name in others[:MAX_LISTED_MODELS])


def _beside(settings: ModelSettings, name: str, tokens: int) -> FoundModel:
    """Another model on the server of a configured one, as a choice; `tokens` is its window, 0 where unknown."""
    other = msgspec.structs.replace(settings, name=f"{settings.provider.prefix}/{name}", window=0)
    window = Window(tokens, "loaded") if tokens else windows.without_server(other)
    title, note = settings.provider.title, f"at {settings.shown_base.partition('://')[2]}"
    return FoundModel(other.name, title, True, window.tokens, window.source, None, None, note, settings.api_base)


async def configured(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> FoundModel:
    """The model of a person's settings as a choice: asks its server for the window, where it is a local one, and looks for its
    key."""
    usual = () if settings.base else settings.provider.keys  # a server of one's own wants none
    names: tuple[str, ...] = (settings.api_key_env,) if settings.api_key_env else usual
    window, there, key = await asyncio.gather(
        windows.detect(settings),
        listens(settings.base) if settings.base else asyncio.sleep(0, True),
        asyncio.to_thread(where, names, environment, keyring=True),
    )
    missing = bool(names) and not key
    trouble = (
        f"{' or '.join(names)} is not set" if missing else "" if there else f"nobody listens at {settings.shown_base}"
    )
    note = "; ".join(part for part in ("in your settings", trouble) if part)
    costs = (None, None) if settings.base else catalogue.usual_prices(settings.name)
    return FoundModel(
        settings.name,
        settings.provider.title,
        there and not missing,
        window.tokens,
        window.source,
        *costs,
        note,
        settings.api_base,
    )


async def _served(place: LocalServer) -> list[FoundModel]:
    names = await (_ollama(place.root) if place.prefix == "ollama_chat" else _openai_style(place))
    return list(await asyncio.gather(*(_local(place, name) for name in names[:MAX_LISTED_MODELS])))


async def _ollama(root: str) -> list[str]:
    tags = await probe(f"{root}/api/tags")
    return _ids(tags, "models", "name")


async def _openai_style(place: LocalServer) -> list[str]:
    """The names of the models on a server that speaks OpenAI's format."""
    if place.prefix == "lm_studio":
        new, old = await asyncio.gather(probe(f"{place.root}/api/v1/models"), probe(f"{place.root}/api/v0/models"))
        if names := _ids(new, "models", "key", {"llm"}) or _ids(old, "data", "id", {"llm", "vlm"}):
            return names
    return _ids(await probe(f"{place.root}/v1/models"), "data", "id")


async def _local(place: LocalServer, name: str) -> FoundModel:
    """A model on a local server as a choice."""
    base = place.root if place.prefix == "ollama_chat" else f"{place.root}/v1"
    settings = ModelSettings(name=f"{place.prefix}/{name}", api_base=base)
    window = await windows.detect(settings)
    title, where = PROVIDERS[place.prefix].title, place.root.partition("://")[2]
    return FoundModel(settings.name, title, True, window.tokens, window.source, 0.0, 0.0, f"at {where}", base)


def _ids(answer: Any, field: str, id: str, kinds: Collection[str] = ()) -> list[str]:
    """The names in a server's list of models: the field `id` of the rows in `field`, of those rows whose type is in `kinds`,
    unless that is empty."""
    rows = answer.get(field) if isinstance(answer, Mapping) else None
    if not isinstance(rows, list):
        return []
    named = (row for row in rows if isinstance(row, Mapping) and isinstance(row.get(id), str) and row[id])
    return [row[id] for row in named if not kinds or row.get("type") in kinds]
