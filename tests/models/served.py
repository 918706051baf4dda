"""Models of several families, as a server double on loopback serves them."""

from __future__ import annotations

from ctxchat.models.litellm_client import LitellmModel
from ctxchat.models.process import Worker
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble

FAMILIES = ["openai/double", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "ollama_chat/double"]


def model_at(double: ModelDouble, worker: Worker, name: str = "openai/double", timeout: float = 5) -> LitellmModel:
    base = double.base_url if name.startswith("openai/") else double.root
    return LitellmModel(
        ModelSettings(name=name, api_base=base, timeout=timeout, api_key_env="KEY"), worker, lambda _: "key"
    )
