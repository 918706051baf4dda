"""Finds out the size of a model's context window in tokens. In this order: what its local server has loaded it with (or the
setting, where that is less), the setting, its provider's list, litellm's catalogue, the window of its family, an assumption.

Asks only local servers, with a short timeout; a provider's list is passed in.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from ctxchat.core.budget import Window
from ctxchat.models import catalogue
from ctxchat.models.probes import probe
from ctxchat.models.settings import ModelSettings, lookup

ASSUMED_WINDOW_TOKENS = 32_768
"""The window that is assumed where nothing is known."""

ANYBODYS = {"openai", "text-completion-openai", "openai_like", "custom_openai", "litellm_proxy"}
"""litellm's prefixes under which any server that speaks OpenAI's format can be used."""

OLLAMA_DEFAULT_TOKENS = 4_096
"""The window with which Ollama loads a model where neither the model nor a request sets one (its documentation on context
length)."""

OLLAMA_ASKED_TOKENS = 16_384
"""The window that ctxchat requests of Ollama where none is set: large enough to work, small enough for most machines' memory."""


STATED = (
    *("loaded_context_length", "n_ctx", "num_ctx", "max_model_len", "context_length", "context_window"),
    *("max_context_length", "max_context_len", "max_context_tokens", "max_sequence_length", "max_input_tokens"),
)
"""Names that servers give the window in their list of models: those for what is loaded first, then those for what is possible."""

INNER = ("meta", "top_provider", "limits", "parameters", "config", "details", "model_info")
"""Objects inside an entry of such a list in which some servers have it."""


def sets_window(settings: ModelSettings) -> bool:
    """True where each request sets the window (Ollama's own API), so that the configured one is the one in force."""
    return settings.provider.prefix in {"ollama", "ollama_chat"}


async def detect(settings: ModelSettings, listed: int = 0) -> Window:
    """The window of a model, with its source. `listed` is the window in its provider's list, 0 for none. Takes two seconds at
    most; raises nothing where a server does not answer."""
    if sets_window(settings):
        return await _ollama_native(settings)
    if settings.base and (found := await loaded(settings)):
        return Window(settings.window, "configured") if 0 < settings.window < found.tokens else found
    return without_server(settings, listed)


def without_server(settings: ModelSettings, listed: int = 0) -> Window:
    """The window as far as it is known without asking a server; `listed` as in `detect`."""
    if settings.window > 0:
        return Window(settings.window, "configured")
    if listed:
        return Window(listed, "provider")
    entry = None if names_anything(settings) else catalogue.catalogue_model(settings.name)
    if entry is None or not entry.window:
        return Window(ASSUMED_WINDOW_TOKENS, "assumed")
    return Window(entry.window, "family" if entry.guessed else "catalogue")


def names_anything(settings: ModelSettings) -> bool:
    """True for a local server that may give its models any name, so that the catalogue's entry of that name says nothing about
    them. An address for another provider's format (an Azure resource, a gateway to Anthropic) leads to that provider's models."""
    return bool(settings.api_base) and (settings.provider.local or settings.provider.prefix in ANYBODYS)


def listing(settings: ModelSettings) -> str:
    """The URL at which a server that speaks OpenAI's format lists its models."""
    base = settings.place
    return f"{base}/models" if re.search(r"/v\d+$", base) else f"{base}/v1/models"


async def loaded(settings: ModelSettings) -> Window | None:
    """The window with which the server behind `settings.base` has loaded the model; None where it does not say. The pages of all
    known kinds of servers are requested at once."""
    base = settings.place
    root = re.sub(r"/v\d+$", "", base)
    key = await asyncio.to_thread(lookup, settings.api_key_env) if settings.api_key_env else ""
    lists = (f"{root}/api/v1/models", f"{root}/api/v0/models", f"{root}/props", listing(settings))
    pages = (*lists, f"{root}/api/ps")
    studio, older, props, listed, running = await asyncio.gather(*(probe(page, key=key) for page in pages))
    if isinstance(running, Mapping) and "models" in running:
        return await _ollama_openai_style(settings, root, running)
    tokens = from_lm_studio(studio, settings.model) or from_older_lm_studio(older, settings.model)
    tokens = tokens or from_props(props) or from_models(listed, settings.model)
    return Window(tokens, "loaded") if tokens else None


async def _ollama_openai_style(settings: ModelSettings, root: str, running: Any) -> Window | None:
    """The window of a model that Ollama serves in OpenAI's format, where a request cannot set it: that of the running model, else
    that in the model's file, else Ollama's default."""
    tokens = from_ollama_ps(running, settings.model)
    tokens = tokens or from_modelfile(await probe(f"{root}/api/show", post={"model": settings.model}))
    if tokens:
        return Window(tokens, "loaded")
    return None if settings.window else Window(OLLAMA_DEFAULT_TOKENS, "assumed")


async def _ollama_native(settings: ModelSettings) -> Window:
    """The window of a model that Ollama serves in its own format, where each request sets it."""
    shown, running = await asyncio.gather(
        probe(f"{settings.place}/api/show", post={"model": settings.model}), probe(f"{settings.place}/api/ps")
    )
    most = trained_for(shown)
    if settings.window > 0:
        return Window(min(settings.window, most) if most else settings.window, "configured")
    if tokens := from_ollama_ps(running, settings.model) or from_modelfile(shown):
        return Window(tokens, "loaded")
    if most:
        return Window(min(most, OLLAMA_ASKED_TOKENS), "loaded")
    return without_server(settings)


def from_ollama_ps(answer: Any, model: str) -> int:
    """`context_length` of the running model in Ollama's /api/ps; 0 where it does not run. (So do all functions here that read an
    answer: 0 where it does not tell.)"""
    names = {model, f"{model}:latest"}
    for row in _rows(answer, "models"):
        if row.get("name") in names or row.get("model") in names:
            return _tokens(row.get("context_length"))
    return 0


def from_modelfile(answer: Any) -> int:
    """`num_ctx` among the model's own parameters in Ollama's /api/show."""
    text = answer.get("parameters") if isinstance(answer, Mapping) else None
    found = re.search(r"^\s*num_ctx\s+(\d+)", text, re.M) if isinstance(text, str) else None
    return int(found[1]) if found else 0


def trained_for(answer: Any) -> int:
    """The largest window that the model was trained for, in Ollama's /api/show."""
    info = answer.get("model_info") if isinstance(answer, Mapping) else None
    if not isinstance(info, Mapping):
        return 0
    return next((_tokens(v) for k, v in info.items() if str(k).endswith(".context_length")), 0)


def from_lm_studio(answer: Any, model: str) -> int:
    """`context_length` of the loaded instance of that name in LM Studio's /api/v1/models, else the least of the model's
    instances."""
    for row in _rows(answer, "models"):
        loaded = {str(r.get("id")): r.get("config") for r in _rows(row, "loaded_instances")}
        held = {
            id: _tokens(config.get("context_length")) for id, config in loaded.items() if isinstance(config, Mapping)
        }
        if model in held or row.get("key") == model:
            return held.get(model) or min(filter(None, held.values()), default=0)
    return 0


def from_older_lm_studio(answer: Any, model: str) -> int:
    """`loaded_context_length` in LM Studio's /api/v0/models (before its version 0.4)."""
    return next((_tokens(r.get("loaded_context_length")) for r in _rows(answer) if r.get("id") == model), 0)


def from_props(answer: Any) -> int:
    """`n_ctx` of one slot in llama.cpp's /props."""
    settings = answer.get("default_generation_settings") if isinstance(answer, Mapping) else None
    return _tokens(settings.get("n_ctx")) if isinstance(settings, Mapping) else 0


def from_models(answer: Any, model: str) -> int:
    """The window of the model in /v1/models, under any of the names in `STATED`. Where the server has a single model, that
    one's."""
    rows = _rows(answer)
    named = [row for row in rows if row.get("id") == model]
    for row in named or (rows if len(rows) == 1 else []):
        places = (row, *(row.get(inner) for inner in INNER))
        stated = (_tokens(place.get(name)) for name in STATED for place in places if isinstance(place, Mapping))
        return next(filter(None, stated), 0)
    return 0


def _rows(answer: Any, field: str = "data") -> list[Mapping[str, Any]]:
    rows = answer.get(field) if isinstance(answer, Mapping) else None
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _tokens(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
