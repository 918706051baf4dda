"""Finds out whether a model accepts images, from a local server or the catalogue, and computes how many tokens an image takes,
which each family of models counts in its own way, by pixels. Raises nothing where a server does not answer."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from typing import Any

from ctxchat.core.tokens import image_tokens
from ctxchat.models import catalogue
from ctxchat.models.dialects import ANTHROPIC, GEMINI, OPENAI, Dialect
from ctxchat.models.probes import probe
from ctxchat.models.settings import ModelSettings, lookup


async def taken_there(settings: ModelSettings) -> bool | None:
    """Whether the local server behind `settings.base` says that the model accepts images; None where it does not say or need not
    be asked. Takes two seconds at most."""
    if not settings.base or settings.vision is not None:
        return None
    root = re.sub(r"/v\d+$", "", settings.base)
    key = await asyncio.to_thread(lookup, settings.api_key_env) if settings.api_key_env else ""
    shown, props, studio, older = await asyncio.gather(
        probe(f"{root}/api/show", post={"model": settings.model}, key=key),
        probe(f"{root}/props", key=key),
        probe(f"{root}/api/v1/models", key=key),
        probe(f"{root}/api/v0/models", key=key),
    )
    lm_studio = from_lm_studio(studio, settings.model), from_older_lm_studio(older, settings.model)
    answers = (from_ollama_show(shown), from_props(props), *lm_studio)
    return next((answer for answer in answers if answer is not None), None)


def from_ollama_show(answer: Any) -> bool | None:
    """Whether Ollama's /api/show has `vision` among the `capabilities` of the model; None where it does not say."""
    named = answer.get("capabilities") if isinstance(answer, Mapping) else None
    return "vision" in named if isinstance(named, list) else None


def from_props(answer: Any) -> bool | None:
    """`modalities.vision` in llama.cpp's /props, which is false where it was started without a projector; None where it is
    missing."""
    named = answer.get("modalities") if isinstance(answer, Mapping) else None
    seen = named.get("vision") if isinstance(named, Mapping) else None
    return seen if isinstance(seen, bool) else None


def from_lm_studio(answer: Any, model: str) -> bool | None:
    """`vision` in the `capabilities` of the model, or of the one it is loaded from, in LM Studio's /api/v1/models; None where it
    is missing."""
    rows = answer.get("models") if isinstance(answer, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, Mapping):
            continue
        loaded = row.get("loaded_instances")
        ids = {i.get("id") for i in loaded if isinstance(i, Mapping)} if isinstance(loaded, list) else set[object]()
        able = row.get("capabilities")
        if model in {row.get("key"), *ids} and isinstance(able, Mapping) and isinstance(able.get("vision"), bool):
            return able["vision"]
    return None


def from_older_lm_studio(answer: Any, model: str) -> bool | None:
    """Whether the model's `type` is `vlm` in LM Studio's /api/v0/models (before its version 0.4); None where it is missing."""
    rows = answer.get("data") if isinstance(answer, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("id") == model and isinstance(row.get("type"), str):
            return row["type"] == "vlm"
    return None


UNKNOWN = (1024, 1024)
"""The size in pixels that is assumed for an image of unknown size."""

_PATCHES = (
    (re.compile(r"gpt-4\.1-mini|gpt-5-mini"), 1.62),
    (re.compile(r"gpt-4\.1-nano|gpt-5-nano"), 2.46),
    (re.compile(r"o4-mini"), 1.72),
)
"""OpenAI's models that count patches of 32 pixels, at most 1,536, times a factor (its guide to images)."""

_TILES = (
    (re.compile(r"gpt-4o-mini"), 2833, 5667),
    (re.compile(r"gpt-5"), 70, 140),
    (re.compile(r"(?:^|/)o[13]\b"), 75, 150),
)
"""OpenAI's models whose tiles of 512 pixels do not take the usual 85 + 170 tokens: the tokens of an image, and of each tile."""


def takes_images(settings: ModelSettings) -> bool:
    """Whether images are sent to a model: by its setting `vision` (into which a local server's answer goes), else by litellm's
    catalogue; false where neither says so, since the server would refuse the whole request."""
    if settings.vision is not None:
        return settings.vision
    entry = catalogue.catalogue_model(settings.name)
    return bool(entry and entry.supports_vision)


def token_count(dialect: Dialect, name: str, width: int, height: int) -> int:
    """The tokens of an image of this size in pixels (0 × 0: unknown), as the model's family counts them. `name` is litellm's
    name."""
    if width <= 0 or height <= 0:
        width, height = UNKNOWN
    if dialect is ANTHROPIC:
        return _anthropic(width, height)
    if dialect is GEMINI:
        return _gemini(width, height)
    return _openai(name, width, height) if dialect is OPENAI else image_tokens(width, height)


def _anthropic(width: int, height: int) -> int:
    """width × height / 750, once the longer side is brought down to 1,568 pixels and the whole to some 1,600 tokens (its guide
    to vision)."""
    scale = min(1.0, 1568 / max(width, height))
    return max(1, min(1600, math.ceil(width * scale * height * scale / 750)))


def _gemini(width: int, height: int) -> int:
    """258 for a small image, else 258 for each tile of 768 pixels (Google's guide to tokens)."""
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)


def _openai(name: str, width: int, height: int) -> int:
    """The tokens of an image by OpenAI's rules, which differ from model to model."""
    for pattern, factor in _PATCHES:
        if pattern.search(name):
            patches = math.ceil(width / 32) * math.ceil(height / 32)
            return math.ceil(min(1536, patches) * factor)
    for pattern, base, tile in _TILES:
        if pattern.search(name):
            return base + (image_tokens(width, height) - 85) // 170 * tile
    return image_tokens(width, height)
