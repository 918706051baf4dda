"""What to do about a model that cannot be reached, in the words of whoever serves it. Values in, a sentence out."""

from __future__ import annotations

import re

from ctxchat.core.errors import ModelError
from ctxchat.models.settings import ModelSettings

_START = {
    "Ollama": "Start it with `ollama serve`",
    "LM Studio": "Start its server with `lms server start`, or in its Developer tab",
    "llama.cpp": "Start it with `llama-server -m MODEL.gguf --port 8080`",
    "vLLM": "Start it with `vllm serve {model}`",
}
_FETCH = {
    "Ollama": "`ollama pull {model}` fetches it; `ollama list` shows what is there.",
    "LM Studio": "`lms load {model}` loads it; `lms ls` shows what is there.",
}

_ACCOUNT = {
    "bedrock": "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION_NAME, or AWS_PROFILE, or AWS_BEARER_TOKEN_BEDROCK.",
    "sagemaker": "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION_NAME, or AWS_PROFILE.",
    "azure": "Set AZURE_API_KEY, and api_base to the address of your resource (https://NAME.openai.azure.com).",
    "vertex_ai": "Set VERTEXAI_PROJECT and VERTEXAI_LOCATION, and sign in with `gcloud auth application-default login`.",
}
"""What litellm finds its own way with, where there is no key of ours."""

_PACKAGES = {
    "vertex_ai": " (google-auth, and google-cloud-aiplatform for Claude; gemini/… and anthropic/… need neither)"
}
_MISSING = re.compile(r"credentials|must provide one of the `base_url`", re.I)
_PACKAGE = re.compile(r"no module named|cloud sdk not found|must be installed", re.I)
_OPENAI_STYLE = {"openai", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy"}


def remedy(settings: ModelSettings, problem: ModelError) -> str:
    """What helps against `problem` with this model; empty where its provider makes no difference."""
    match problem.kind:
        case "connection":
            return _unreachable(settings)
        case "timeout":
            return f"The server took longer than {settings.timeout:g} s; raise `timeout` for this model, or send less."
        case "auth" | "not_found" if _MISSING.search(problem.text) and settings.provider.prefix in _ACCOUNT:
            return _ACCOUNT[settings.provider.prefix]
        case "auth" if problem.status:
            return _refused(settings)
        case "auth":
            return "Set the provider's own variables, or name the one that holds the key with api_key_env (or --api-key-env)."
        case "not_found" if _PACKAGE.search(problem.text):
            named = _PACKAGES.get(settings.provider.prefix, "")
            return f"litellm needs that Python package for this provider{named}: install it beside ctxchat."
        case "not_found":
            return _not_there(settings)
        case _:
            return ""


def _unreachable(settings: ModelSettings) -> str:
    provider = settings.provider
    if start := _START.get(provider.title):
        return f"{start.format(model=settings.model)}, or set where it listens (api_base, now {settings.shown_base})."
    if settings.api_base:
        return f"Check that a server runs at {settings.shown_base}, and that the address is right."
    return f"{provider.title} could not be reached: check the network, a proxy, a firewall."


def _refused(settings: ModelSettings) -> str:
    if settings.api_key_env:
        return f"The key in {settings.api_key_env} was not accepted. Put the right one there, then start ctxchat again."
    if settings.api_base or settings.provider.local:
        return "This server wants a key: name the variable that holds it with api_key_env (or --api-key-env)."
    if names := settings.provider.keys:
        return f"The key in {' or '.join(names)} was not accepted. Put the right one there, then start ctxchat again."
    return ""


def _not_there(settings: ModelSettings) -> str:
    provider = settings.provider
    if fetch := _FETCH.get(provider.title):
        return fetch.format(model=settings.model)
    if settings.api_base and provider.prefix in _OPENAI_STYLE and not settings.base.endswith("/v1"):
        return "Check the name and the address: those of OpenAI's style mostly end in /v1."
    return "Check the name: /model, or `ctxchat models`, shows what can be had."
