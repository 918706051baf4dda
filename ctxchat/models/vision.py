"""Whether a server of one's own says that its model takes images, as llama.cpp, Ollama and LM Studio do. Never raises."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from ctxchat.models.keys import lookup
from ctxchat.models.probes import ask
from ctxchat.models.settings import ModelSettings


async def told(settings: ModelSettings) -> bool | None:
    """What the server behind `settings.base` says; None where it says nothing, and where nobody need ask it. Takes two seconds
    at most."""
    if not settings.base or settings.vision is not None:
        return None
    root = re.sub(r"/v\d+$", "", settings.base)
    key = await asyncio.to_thread(lookup, settings.api_key_env) if settings.api_key_env else ""
    shown, props, studio = await asyncio.gather(
        ask(f"{root}/api/show", post={"model": settings.model}, key=key),
        ask(f"{root}/props", key=key),
        ask(f"{root}/api/v0/models", key=key),
    )
    said = (from_ollama_show(shown), from_props(props), from_lm_studio(studio, settings.model))
    return next((answer for answer in said if answer is not None), None)


def from_ollama_show(answer: Any) -> bool | None:
    """`vision` among the `capabilities` of the model (Ollama's /api/show)."""
    named = answer.get("capabilities") if isinstance(answer, Mapping) else None
    return "vision" in named if isinstance(named, list) else None


def from_props(answer: Any) -> bool | None:
    """`modalities.vision` (llama.cpp's /props): false where it was started without a projector."""
    named = answer.get("modalities") if isinstance(answer, Mapping) else None
    seen = named.get("vision") if isinstance(named, Mapping) else None
    return seen if isinstance(seen, bool) else None


def from_lm_studio(answer: Any, model: str) -> bool | None:
    """The model's `type`, `vlm` for one that takes images (LM Studio's /api/v0/models)."""
    rows = answer.get("data") if isinstance(answer, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("id") == model and isinstance(row.get("type"), str):
            return row["type"] == "vlm"
    return None
