"""What can be used from here: providers whose key is set, and servers on the usual local ports, asked at once and briefly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxchat.core.budget import WindowSource
from ctxchat.models import catalogue, windows
from ctxchat.models.probes import ask
from ctxchat.models.providers import PROVIDERS, Provider
from ctxchat.models.settings import ModelSettings


class FoundModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model that could be chosen. Costs in US dollars a million tokens, None where unknown. `api_base` belongs into its
    settings; empty for the provider's own. `reachable`: a server answered, or the key is set (providers are not asked)."""

    name: str
    provider: str
    reachable: bool
    window: int
    window_source: WindowSource
    input_cost: float | None = None
    output_cost: float | None = None
    note: str = ""
    api_base: str = ""


class LocalServer(msgspec.Struct, frozen=True):
    """Where a server usually listens: litellm's prefix for it, and its address without a path."""

    prefix: str
    root: str


LOCAL_SERVERS = (
    LocalServer("ollama_chat", "http://127.0.0.1:11434"),
    LocalServer("lm_studio", "http://127.0.0.1:1234"),
    LocalServer("llamafile", "http://127.0.0.1:8080"),
    LocalServer("hosted_vllm", "http://127.0.0.1:8000"),
)


async def discover(
    servers: Sequence[LocalServer] | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[FoundModel, ...]:
    """Local models first, then those of providers with a key. Takes some three seconds at most; never raises."""
    places = local_servers(environment) if servers is None else servers
    found = await asyncio.gather(*(_served(place) for place in places))
    hosted = await asyncio.to_thread(with_keys, environment)
    return (*(model for models in found for model in models), *hosted)


def local_servers(environment: Mapping[str, str]) -> tuple[LocalServer, ...]:
    """The usual places, with Ollama where its own variable says it is."""
    host = environment.get("OLLAMA_HOST", "").strip().rstrip("/")
    if not host:
        return LOCAL_SERVERS
    root = host if "://" in host else f"http://{host}"
    root = root.replace("://0.0.0.0", "://127.0.0.1")
    if root.count(":") == 1:
        root += ":11434"
    return (LocalServer("ollama_chat", root), *LOCAL_SERVERS[1:])


def with_keys(environment: Mapping[str, str]) -> list[FoundModel]:
    """Models to propose for every provider whose key is in the environment."""
    return [
        row(f"{provider.prefix}/{offer}", provider, note=f"key in {variable}")
        for provider in PROVIDERS.values()
        for variable in [next((name for name in provider.keys if environment.get(name, "").strip()), "")]
        if variable
        for offer in provider.offers
    ]


def row(name: str, provider: Provider, *, note: str = "", reachable: bool = True) -> FoundModel:
    """A provider's model as the catalogue knows it."""
    window = windows.without_server(ModelSettings(name=name))
    costs = catalogue.prices(name)
    return FoundModel(name, provider.title, reachable, window.tokens, window.source, costs.input, costs.output, note)


async def _served(place: LocalServer) -> list[FoundModel]:
    names = await (_ollama(place.root) if place.prefix == "ollama_chat" else _openai_style(place))
    return list(await asyncio.gather(*(_local(place, name) for name in names[:50])))


async def _ollama(root: str) -> list[str]:
    tags = await ask(f"{root}/api/tags")
    return _ids(tags, "models", "name")


async def _openai_style(place: LocalServer) -> list[str]:
    if place.prefix == "lm_studio" and (rows := await ask(f"{place.root}/api/v0/models")):
        return _ids({"data": [r for r in rows.get("data", []) if r.get("type") in {"llm", "vlm"}]}, "data", "id")
    return _ids(await ask(f"{place.root}/v1/models"), "data", "id")


async def _local(place: LocalServer, name: str) -> FoundModel:
    base = place.root if place.prefix == "ollama_chat" else f"{place.root}/v1"
    settings = ModelSettings(name=f"{place.prefix}/{name}", api_base=base)
    window = await windows.detect(settings)
    title, where = PROVIDERS[place.prefix].title, place.root.partition("://")[2]
    return FoundModel(settings.name, title, True, window.tokens, window.source, 0.0, 0.0, f"running at {where}", base)


def _ids(answer: Any, field: str, id: str) -> list[str]:
    rows = answer.get(field) if isinstance(answer, Mapping) else None
    if not isinstance(rows, list):
        return []
    return [row[id] for row in rows if isinstance(row, Mapping) and isinstance(row.get(id), str) and row[id]]
