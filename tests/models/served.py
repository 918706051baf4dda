"""Models of every family whose streams are played, as a server double on loopback serves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxchat.models.client import ModelClient, ModelTransport
from ctxchat.models.direct import Connections, DirectTransport, server_of
from ctxchat.models.openai_servers import SERVERS
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble, Script


@dataclass(frozen=True)
class Family:
    """A model by litellm's name, whose form of a stream it speaks, what stands behind the server's address, and what has to be
    set. `keyed` False: it takes no API key."""

    model: str
    form: str = "openai"
    base: str = "/v1"
    extra: Mapping[str, object] = field(default_factory=dict)
    keyed: bool = True


_ACCOUNT = {"aws_access_key_id": "AKIADOUBLE", "aws_secret_access_key": "none", "aws_region_name": "us-east-1"}

FAMILIES: dict[str, Family] = {
    "openai": Family("openai/double"),
    "responses": Family("openai/gpt-5.3-codex", "responses"),
    "anthropic": Family("anthropic/claude-sonnet-4-5", "anthropic", ""),
    "gemini": Family("gemini/gemini-2.5-pro", "gemini", ""),
    "ollama": Family("ollama_chat/double", "ollama", ""),
    "azure": Family("azure/my-deployment", "azure", "", {"api_version": "2024-10-21"}),
    "openrouter": Family("openrouter/google/gemini-3-pro-preview", "openrouter"),
    "deepseek": Family("deepseek/deepseek-v4-pro", "deepseek"),
    "moonshot": Family("moonshot/kimi-k2.6", "moonshot"),
    "mistral": Family("mistral/mistral-medium-3-5", "mistral"),
    "groq": Family("groq/openai/gpt-oss-120b", "groq"),
    "xai": Family("xai/grok-4.7", "xai"),
    "vllm": Family("hosted_vllm/qwen3", "vllm"),
    "lm_studio": Family("lm_studio/qwen3"),
    "cohere": Family("cohere_chat/command-a-reasoning-08-2025", "cohere", "/v2/chat"),
    "bedrock": Family("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", "", _ACCOUNT, keyed=False),
}


STRAIGHT = {name for name, family in FAMILIES.items() if family.model.partition("/")[0] in {*SERVERS, "anthropic"}} - {
    "responses"
}
"""Those the straight way leads to."""

Way = ModelProcess | Connections
"""To a model: through litellm, or straight to its server."""


def led_to(way: Way) -> set[str]:
    """The families there."""
    return {*FAMILIES} if isinstance(way, ModelProcess) else STRAIGHT


def served(family: str, script: Script) -> ModelDouble:
    """A server that speaks as the family's does."""
    return ModelDouble(script, form=FAMILIES[family].form)


def settings_at(double: ModelDouble, family: str, timeout: float = 30, **more: object) -> ModelSettings:
    """The family's model behind that server; `more` is added to what has to be set."""
    known = FAMILIES[family]
    return ModelSettings(
        name=known.model,
        api_base=double.root + known.base,
        api_key_env="KEY" if known.keyed else "",
        timeout=timeout,
        window=50_000,
        extra={**known.extra, **more},
    )


def lane(settings: ModelSettings, way: Way) -> ModelTransport:
    """That way to a model. Raises LookupError where it does not lead there."""
    if isinstance(way, ModelProcess):
        return way
    server = server_of(settings, {})
    if server is None:
        raise LookupError(f"{settings.name} is reached through litellm")
    return DirectTransport(settings, server, way)


def model_at(double: ModelDouble, way: Way, family: str = "openai", timeout: float = 30, **more: object) -> ModelClient:
    """The family's model behind that server, with a key."""
    settings = settings_at(double, family, timeout, **more)
    return ModelClient(settings, lane(settings, way), lambda _: "key")
