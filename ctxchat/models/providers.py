"""A table of providers: litellm's prefix, the environment variables of their keys, the usual address of a local server, and
models to propose. Knows nothing of how a provider is called.
"""

from __future__ import annotations

import difflib

import msgspec

from ctxchat.core.errors import UsageError
from ctxchat.models import catalogue


class Provider(msgspec.Struct, frozen=True):
    """A provider of models. `keys` are the environment variables that may hold its key, the usual one first; empty where litellm
    authenticates by itself (cloud accounts) or no key is needed. `base` is the usual address of a local server, empty for a
    provider on the internet. `offers` are models to propose."""

    prefix: str
    title: str
    keys: tuple[str, ...] = ()
    base: str = ""
    offers: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """True for a local server."""
        return bool(self.base)


_HOSTED = (
    Provider(
        "anthropic",
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        offers=("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-2"),
    ),
    Provider("openai", "OpenAI", ("OPENAI_API_KEY",), offers=("gpt-6.2-sol", "gpt-6-luna")),
    Provider(
        "gemini",
        "Google Gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        offers=("gemini-3.1-pro-preview", "gemini-3.8-flash"),
    ),
    Provider("mistral", "Mistral", ("MISTRAL_API_KEY",), offers=("mistral-large-latest", "mistral-small-latest")),
    Provider("groq", "Groq", ("GROQ_API_KEY",), offers=("openai/gpt-oss-120b",)),
    Provider("deepseek", "DeepSeek", ("DEEPSEEK_API_KEY",), offers=("deepseek-v4-pro",)),
    Provider("openrouter", "OpenRouter", ("OPENROUTER_API_KEY", "OR_API_KEY"), offers=("openrouter/auto",)),
    Provider("xai", "xAI", ("XAI_API_KEY",), offers=("grok-4.7",)),
    Provider("together_ai", "Together", ("TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", "Fireworks", ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY")),
    Provider("cerebras", "Cerebras", ("CEREBRAS_API_KEY",)),
    Provider("cohere_chat", "Cohere", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cohere", "Cohere", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("perplexity", "Perplexity", ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY")),
    Provider("moonshot", "Moonshot", ("MOONSHOT_API_KEY",)),
    Provider("dashscope", "DashScope", ("DASHSCOPE_API_KEY",)),
    Provider("zai", "Z.AI", ("ZAI_API_KEY",)),
    Provider("deepinfra", "DeepInfra", ("DEEPINFRA_API_KEY",)),
    Provider("nvidia_nim", "NVIDIA", ("NVIDIA_NIM_API_KEY",)),
    Provider("sambanova", "SambaNova", ("SAMBANOVA_API_KEY",)),
    Provider("minimax", "MiniMax", ("MINIMAX_API_KEY",)),
    Provider("azure", "Azure OpenAI"),
    Provider("bedrock", "Amazon Bedrock"),
    Provider("vertex_ai", "Google Vertex AI"),
)

_LOCAL = (
    Provider("ollama_chat", "Ollama", base="http://127.0.0.1:11434"),
    Provider("ollama", "Ollama", base="http://127.0.0.1:11434"),
    Provider("lm_studio", "LM Studio", base="http://127.0.0.1:1234/v1"),
    Provider("llamafile", "llama.cpp", base="http://127.0.0.1:8080/v1"),
    Provider("hosted_vllm", "vLLM", base="http://127.0.0.1:8000/v1"),
)

PROVIDERS: dict[str, Provider] = {provider.prefix: provider for provider in (*_HOSTED, *_LOCAL)}
"""The providers in this table by prefix; litellm reaches more."""


def provider_of(name: str) -> Provider:
    """The provider of a model, by litellm's name; a name without a prefix is looked up in the catalogue. Raises UsageError where
    none is known."""
    head, slash, rest = name.partition("/")
    if slash and rest:
        if head in PROVIDERS:
            return PROVIDERS[head]
        if head in catalogue.prefixes():
            return Provider(head, head)
        raise UsageError(f"No provider is called {head!r} (in model {name!r}).", _nearest(name))
    entry = catalogue.entries().get(name)
    if entry and entry.provider:
        prefix = entry.provider.split("-")[0]
        return PROVIDERS.get(prefix) or Provider(prefix, prefix)
    raise UsageError(f"Nobody is known to serve a model called {name!r}.", _nearest(name))


def _nearest(name: str) -> str:
    """The remedy for an unknown model or provider: the most similar names, or the form of names."""
    head, slash, rest = name.partition("/")
    if slash and rest:
        close = [
            f"{p}/{rest}" for p in difflib.get_close_matches(head, [*PROVIDERS, *sorted(catalogue.prefixes())], 3, 0.6)
        ]
        close = list(dict.fromkeys(close))
    else:
        close = difflib.get_close_matches(name, [n for n, e in catalogue.entries().items() if e.mode == "chat"], 3, 0.6)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return "Names are provider/model, such as anthropic/claude-sonnet-5-5, or openai/NAME with api_base for a server of your own."
