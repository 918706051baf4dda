"""A table of the servers that accept OpenAI's chat format and that we ask without litellm: their addresses, in what they differ,
and how a request to them is encoded. All others are reached through litellm.

Pure values and functions; knows nothing of connections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ctxchat.core.messages import Received
from ctxchat.core.network import with_path
from ctxchat.core.openai import Wire
from ctxchat.core.ports import ReplyNotes
from ctxchat.core.usage import tokens
from ctxchat.models import catalogue
from ctxchat.models.protocol import encode
from ctxchat.models.settings import ModelSettings

_COMMON = frozenset({"temperature", "top_p", "extra_body", "extra_headers"})
"""Parameters that all of these servers accept, or that are sent unchanged."""

_OWN = _COMMON | {
    *("stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "user"),
    *("top_k", "min_p", "repetition_penalty"),
}

"""Parameters that local servers accept."""

_LEFT_ALONE = frozenset({"extra_body", "extra_headers"})


class WireRequest(msgspec.Struct, frozen=True):
    """An encoded HTTP request."""

    url: str
    headers: dict[str, str]
    body: bytes


class Server(msgspec.Struct, frozen=True):
    """A provider's server and in what it differs from OpenAI's.

    `base` is its address, empty where the settings or `providers` have it. `extra` are the parameters of a person's settings that
    it accepts; with others, litellm is used. `usage_asked`: it accepts OpenAI's `stream_options`. `texts`: it wants contents as
    texts and not as lists of parts. `bare_schemas`: it wants schemas without `$id` and `$schema`. `body` are fields to add.
    `session` is the field, or `session_header` the header, in which it takes the session's id, by which it finds the conversation
    in its cache. `effort_inside`: the effort goes into an object `reasoning`.
    """

    base: str = ""
    extra: frozenset[str] = _COMMON
    usage_asked: bool = True
    texts: bool = False
    bare_schemas: bool = False
    body: dict[str, object] = {}
    session: str = ""
    session_header: str = ""
    effort_inside: bool = False

    def request(self, model: str, arguments: Mapping[str, Any]) -> WireRequest:
        """The encoded request for a call's `arguments`, which are in litellm's form; `model` is the server's name of the model.
        Takes a few milliseconds per megabyte."""
        ours = {"model", "messages", "tools", "api_base", "api_key", "max_tokens", "session", "effort", *_LEFT_ALONE}
        body: dict[str, object] = {"model": model, "messages": [_sent(m, self) for m in arguments["messages"]]}
        body |= {name: value for name, value in arguments.items() if name not in ours}
        if tools := arguments.get("tools"):
            body["tools"] = _bare(tools) if self.bare_schemas else tools
        if output := arguments.get("max_tokens"):
            reasons = str(arguments["model"]).startswith(("openai/", "gpt-")) and _REASONING.search(model)
            body["max_completion_tokens" if reasons else "max_tokens"] = output
        body["stream"] = True
        if self.usage_asked:
            body["stream_options"] = {"include_usage": True}
        if effort := arguments.get("effort"):
            body |= {"reasoning": {"effort": effort}} if self.effort_inside else {"reasoning_effort": effort}
        session = arguments.get("session")
        if self.session and session:
            body[self.session] = session
        body |= self.body | dict(arguments.get("extra_body") or {})
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if key := arguments.get("api_key"):
            headers["authorization"] = f"Bearer {key}"
        if self.session_header and session:
            headers[self.session_header] = str(session)
        headers |= {str(name): str(value) for name, value in (arguments.get("extra_headers") or {}).items()}
        whole = self.base.partition("?")[0].endswith("/chat/completions")
        return WireRequest(self.base if whole else with_path(self.base, "/chat/completions"), headers, encode(body))

    @property
    def versioned(self) -> Server | None:
        """The same server at the path `/v1`, where most servers answer; None where its address has a path already."""
        if urlsplit(self.base).path.strip("/"):
            return None
        return msgspec.structs.replace(self, base=with_path(self.base, "/v1"))

    def reading(self, name: str) -> ChatReading:
        """A reader for the pieces of one reply."""
        return ChatReading()


class ChatReading:
    """Reads the pieces of one reply. They are in OpenAI's format already, so only notes about the reply are taken from them."""

    received: Received | None = None

    def __init__(self) -> None:
        self.notes = ReplyNotes()

    def piece(self, event: Wire) -> Wire:
        """The piece unchanged. The first one has the reply's id; llama.cpp's last one has the time that reading the prompt
        took."""
        if not self.notes.message_id and isinstance(event.get("id"), str):
            self.notes = ReplyNotes(message_id=event["id"])
        if isinstance(timings := event.get("timings"), dict):
            self.notes = msgspec.structs.replace(self.notes, prefill=_prefill(timings))
        return event


def _prefill(timings: Wire) -> float:
    """The tokens of a prompt that llama.cpp read per second; 0 where it read too few to tell."""
    read, milliseconds = tokens(timings.get("prompt_n")), timings.get("prompt_ms")
    if read < MIN_TIMED_TOKENS or not isinstance(milliseconds, int | float) or not milliseconds > 0:
        return 0.0
    return 1000 * read / milliseconds


MIN_TIMED_TOKENS = 64
"""The fewest tokens read from which a speed is computed."""


SERVERS: dict[str, Server] = {
    # Servers of one's own; openai/… at another address is one, too.
    "hosted_vllm": Server(extra=_OWN),
    "lm_studio": Server(extra=_OWN),
    "llamafile": Server(extra=_OWN),
    "litellm_proxy": Server(extra=_OWN),
    # As their documentation, and litellm's own requests, have it.
    "openai": Server(
        "https://api.openai.com/v1", _OWN, session="prompt_cache_key"
    ),  # platform.openai.com/docs/api-reference/chat
    "openrouter": Server(  # openrouter.ai/docs/api-reference
        "https://openrouter.ai/api/v1",
        _OWN,
        body={"usage": {"include": True}},
        session="session_id",
        effort_inside=True,
    ),
    "groq": Server("https://api.groq.com/openai/v1"),  # console.groq.com/docs/openai
    "xai": Server("https://api.x.ai/v1", session_header="x-grok-conv-id"),  # docs.x.ai/docs/api-reference
    "deepseek": Server("https://api.deepseek.com/beta", texts=True),  # api-docs.deepseek.com
    "mistral": Server(
        "https://api.mistral.ai/v1", usage_asked=False, bare_schemas=True, session="prompt_cache_key"
    ),  # docs.mistral.ai/api
    "together_ai": Server("https://api.together.ai/v1"),  # docs.together.ai/docs/openai-api-compatibility
    "fireworks_ai": Server("https://api.fireworks.ai/inference/v1"),  # docs.fireworks.ai/api-reference
    "cerebras": Server("https://api.cerebras.ai/v1", usage_asked=False),  # inference-docs.cerebras.ai
    "moonshot": Server("https://api.moonshot.ai/v1", _LEFT_ALONE),  # platform.moonshot.ai/docs
    "dashscope": Server(  # help.aliyun.com, "OpenAI compatible"
        "https://dashscope.aliyuncs.com/compatible-mode/v1"
    ),
    "zai": Server(  # docs.z.ai: thoughts stay over turns where that is said
        "https://api.z.ai/api/paas/v4", body={"thinking": {"type": "enabled", "clear_thinking": False}}
    ),
    "deepinfra": Server("https://api.deepinfra.com/v1/openai", usage_asked=False),  # deepinfra.com/docs
    "nvidia_nim": Server("https://integrate.api.nvidia.com/v1", usage_asked=False),  # docs.api.nvidia.com/nim
    "minimax": Server("https://api.minimax.io/v1", _LEFT_ALONE),  # platform.minimax.io/docs
}
"""The servers by litellm's prefix."""

_OPENAIS = re.compile(r"gpt-|o\d")

_REASONING = re.compile(r"gpt-[5-9](?!-chat)")
"""Matches OpenAI's models that have another name for the limit of a reply (`max_completion_tokens`) and accept no temperature."""

_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?=[.-]|$)")

_ADDRESSES = {
    "openai": ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
    "mistral": ("MISTRAL_API_BASE", "MISTRAL_AZURE_API_BASE"),
    "anthropic": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
}
"""The environment variables that set another address of a provider, where it is not only `…_API_BASE`."""

_ACCOUNTS = {"openai": ("OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")}
"""The environment variables that litellm reads besides the key, and that we do not support."""

TLS_BY_LITELLM = ("SSL_VERIFY", "SSL_CERTIFICATE")


def server_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> Server | None:
    """The server to speak to without litellm, with its address; None where something is set, or the model is one, that litellm
    has rules for."""
    prefix = settings.provider.prefix
    server = SERVERS.get(prefix)
    base = settings.base or (server.base if server else "")
    if server is None or not base or not settings.extra.keys() <= server.extra:
        return None
    if set_elsewhere(settings, environment) or _in_another_form(settings):
        return None
    if prefix == "openai" and settings.base:  # anybody's server: it may refuse what it does not know
        server = msgspec.structs.replace(server, session="")
    if prefix == "mistral" and not base.endswith("/v1"):
        base += "/v1"
    return msgspec.structs.replace(server, base=base)


def address_elsewhere(prefix: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable that sends this provider's requests elsewhere, and the address in it; empty where none does."""
    names = _ADDRESSES.get(prefix, (f"{prefix.upper()}_API_BASE",))
    return next(((name, value) for name in names if (value := environment.get(name, "").strip())), ("", ""))


def set_elsewhere(settings: ModelSettings, environment: Mapping[str, str]) -> bool:
    """True where the environment sets an address, an account or certificates that only litellm supports."""
    prefix = settings.provider.prefix
    if not settings.base and address_elsewhere(prefix, environment)[0]:
        return True
    names = (*TLS_BY_LITELLM, *(() if settings.base else _ACCOUNTS.get(prefix, ())))
    return any(environment.get(name) for name in names)


def _in_another_form(settings: ModelSettings) -> bool:
    """True for models to which litellm sends another form of request: OpenAI's that need the Responses API or accept no system
    message, and Fireworks' short names."""
    prefix, model = settings.provider.prefix, settings.model.rpartition("/")[2]
    if prefix == "fireworks_ai":
        return not settings.model.startswith("accounts/")
    if prefix != "openai":
        return False
    if settings.model.startswith("responses/"):
        return True
    if not _OPENAIS.match(model):
        return False
    entry = catalogue.catalogue_model(settings.name)
    if (entry and entry.mode == "responses") or not model.startswith("gpt-"):
        return True
    if not _REASONING.search(model):
        return False
    version = _VERSION.match(model)
    newest = version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 4)
    return (newest and not settings.base) or "search" in model or not settings.extra.keys() <= _LEFT_ALONE


def _sent(message: Wire, server: Server) -> Wire:
    """A message in the exact form of this API: a cache mark goes into the last part of the content; `content` is always present,
    null where it is empty."""
    content = message.get("content")
    if content is None:
        return {**message, "content": None}
    if "cache_control" in message:
        mark = message["cache_control"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        content = [*parts[:-1], {**parts[-1], "cache_control": mark}]
        return {**{k: v for k, v in message.items() if k != "cache_control"}, "content": content}
    if server.texts and isinstance(content, list) and all(part.get("type") == "text" for part in content):
        return {**message, "content": "".join(_part_texts(content))}
    return message


def _part_texts(parts: Iterable[Wire]) -> Iterable[str]:
    return (str(part.get("text", "")) for part in parts)


def _bare(schema: Any) -> Any:
    """The schema without `$id` and `$schema`, which Mistral refuses."""
    if isinstance(schema, dict):
        return {k: _bare(v) for k, v in schema.items() if k not in {"$id", "$schema"}}
    return [_bare(inner) for inner in schema] if isinstance(schema, list) else schema
