"""Anthropic's Messages API: decides which models are called in it without litellm, encodes requests, and converts the events of
a reply to OpenAI's chunks.

Knows nothing of connections. The conversation arrives in litellm's form, with the dialect's rules applied.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ctxchat.core.messages import Received
from ctxchat.core.network import whole_address
from ctxchat.core.openai import Wire
from ctxchat.core.ports import ReplyNotes
from ctxchat.core.usage import tokens
from ctxchat.models import catalogue
from ctxchat.models.deferred_tools import DEFERRED, REFERENCE
from ctxchat.models.openai_servers import TLS_BY_LITELLM, WireRequest, address_elsewhere
from ctxchat.models.protocol import encode
from ctxchat.models.received import THINKING_TYPES, with_current_ids
from ctxchat.models.settings import ModelSettings

_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
_EXTRA = _SAMPLING | {"thinking", "stop_sequences"}
"""Parameters that are sent unchanged; any other needs litellm to translate it."""

_HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    "anthropic-version": "2023-06-01",
}
_OWN = "https://api.anthropic.com"
_BETA = "anthropic-beta"
_LOGIN = "sk-ant-oat"
"""The prefix of a key that is a person's login: it is sent as a bearer token, with a beta header."""

_SCHEMA = ("type", "properties", "additionalProperties", "required", "strict")
"""The keys allowed at the top of a tool's schema; others are refused."""

_NO_TOOL = {
    "type": "function",
    "function": {"name": "dummy_tool", "description": "This is a dummy tool call", "parameters": {}},
}
"""Sent where a conversation has calls but no tools are offered any more: a request without tools is then refused."""

COMPACTION_BETA = "compact-2026-09-04"

Event = dict[str, Any]


_ADAPTIVE = {"type": "adaptive", "display": "summarized"}
"""The model decides when to think, and its thinking is summarised: without `display` thinking arrives empty, and long turns are
silent."""


class AnthropicServer(msgspec.Struct, frozen=True):
    """Anthropic's server, or another with the same API. `samples`: the model accepts sampling parameters; `adaptive`: it decides
    for itself when to think."""

    base: str
    samples: bool = True
    adaptive: bool = False

    def request(self, model: str, arguments: Mapping[str, Any]) -> WireRequest:
        """The encoded request for arguments in litellm's form. Takes some ten milliseconds per megabyte."""
        messages: Sequence[Wire] = arguments["messages"]
        body: dict[str, object] = {
            "model": model,
            "messages": list(_turns(messages)),
            "max_tokens": arguments["max_tokens"],
            "stream": True,
        }
        refused = frozenset[str]() if self.samples else _SAMPLING
        body |= {k: v for k, v in arguments.items() if k in _EXTRA - refused or (k, v) == ("temperature", 1)}
        if self.adaptive and "thinking" not in body and body.keys().isdisjoint(_SAMPLING):
            body["thinking"] = _ADAPTIVE
        if effort := arguments.get("effort"):
            body["output_config"] = {"effort": effort}
        if system := [block for message in messages if message["role"] == "system" for block in _blocks(message)]:
            body["system"] = system
        tools = arguments.get("tools") or ([_NO_TOOL] if any(m.get("tool_calls") for m in messages) else [])
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
        body |= arguments.get("extra_body") or {}
        headers = _HEADERS | authorised(str(arguments.get("api_key") or ""))
        if asked := arguments.get("compaction"):
            body["compaction"] = {"type": "summarize", "instructions": asked}
            headers[_BETA] = ",".join(filter(None, (headers.get(_BETA), COMPACTION_BETA)))
        given = {str(name).lower(): str(value) for name, value in (arguments.get("extra_headers") or {}).items()}
        if betas := [each[_BETA] for each in (headers, given) if _BETA in each]:
            given[_BETA] = ",".join(betas)
        root, mark, query = self.base.partition("?")
        root = root.removesuffix("/messages").removesuffix("/v1")
        return WireRequest(f"{root}/v1/messages{mark}{query}", headers | given, encode(body))

    def reading(self, name: str) -> AnthropicReading:
        """The parser for one reply of a model (litellm's name)."""
        return AnthropicReading(name)


def server_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> AnthropicServer | None:
    """The server to call without litellm; None for another provider's model, and where a setting needs litellm's special
    handling."""
    if settings.provider.prefix != "anthropic" or _translated(settings):
        return None
    if any(environment.get(name) for name in (*TLS_BY_LITELLM, "LITELLM_ANTHROPIC_DISABLE_URL_SUFFIX")):
        return None
    elsewhere = address_elsewhere("anthropic", environment)[1].rstrip("/")
    with suppress(ValueError):  # `network.check_network_settings` reports an invalid address
        elsewhere = whole_address(elsewhere)
    base = settings.base or elsewhere or _OWN
    entry = catalogue.catalogue_model(settings.name)
    samples = entry is None or entry.supports_sampling_params is not False
    return AnthropicServer(base, samples, adaptive=bool(entry and entry.supports_adaptive_thinking))


def loads_tools_late(settings: ModelSettings) -> bool:
    """Whether the model accepts references to tools: every Claude in the catalogue does (Haiku 4.5, Sonnet and Opus 4 and later)
    at Anthropic's own address. Proxies mostly do not, and may drop them silently."""
    entry, server = catalogue.catalogue_model(settings.name), server_of(settings)
    own = server is not None and urlsplit(server.base).hostname == urlsplit(_OWN).hostname
    return own and entry is not None and entry.provider == "anthropic"


def compacts(settings: ModelSettings) -> bool:
    """Whether the model's provider writes summaries on request, and is called without litellm."""
    entry = catalogue.catalogue_model(settings.name)
    return entry is not None and entry.supports_anthropic_compaction is True and server_of(settings) is not None


def _translated(settings: ModelSettings) -> bool:
    """Whether litellm would translate a parameter, or make assumptions about a Claude that is not in the catalogue."""
    thinking = settings.extra.get("thinking")
    entry = catalogue.catalogue_model(settings.name)
    if not settings.extra.keys() <= {*_EXTRA, "extra_headers", "extra_body"}:
        return True
    if entry is None:
        return "claude" in settings.model and not settings.extra.keys().isdisjoint(_SAMPLING | {"thinking"})
    if thinking is None:
        return False
    kind = thinking.get("type") if isinstance(thinking, dict) and thinking.keys() <= {"type", "budget_tokens"} else None
    adaptive = entry.supports_adaptive_thinking is True
    as_it_is = {
        "adaptive": adaptive,
        "enabled": not adaptive or entry.supports_legacy_thinking is True,
        "disabled": entry.thinking_always_on is not True,
    }
    return not as_it_is.get(str(kind), False)


def authorised(key: str) -> dict[str, str]:
    """The headers that authenticate with this key; none for an empty key."""
    if not key.startswith(_LOGIN):
        return {"x-api-key": key} if key else {}
    return {
        "authorization": f"Bearer {key}",
        _BETA: "oauth-2025-04-20",
        "anthropic-dangerous-direct-browser-access": "true",
    }


# ── the conversation ────────────────────────────────────────────────────────────────────────────────────────────────


def _turns(messages: Sequence[Wire]) -> Iterator[Wire]:
    """The messages as user and assistant turns; the tool results of one round are one user turn. Other neighbours of the same
    role are not joined: Anthropic accepts them, and a message already sent must not grow."""
    results: list[Wire] = []
    for message in messages:
        if message["role"] == "tool":
            results += _blocks(message)
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if message["role"] != "system":
            yield {"role": message["role"], "content": _blocks(message)}
    if results:
        yield {"role": "user", "content": results}


def _blocks(message: Wire) -> list[Wire]:
    """A message's blocks as received, else its thinking, content and calls, in this order."""
    content = message.get("content") or []
    if "blocks" in message:
        return list(with_current_ids(message["blocks"], message.get("tool_calls") or ()))
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
        result["content"] = content if isinstance(content, str) else [_wire_part(part) for part in content]
        return [_marked(result, message)]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    calls = message.get("tool_calls") or ()
    return [*_signed(message.get("thinking_blocks") or ()), *map(_wire_part, parts), *map(_call, calls)]


def _signed(thoughts: Iterable[Wire]) -> Iterator[Wire]:
    return (block for block in thoughts if block.get("type") != "thinking" or block.get("signature"))


def _call(call: Wire) -> Wire:
    function = call["function"]
    arguments = msgspec.json.decode(function["arguments"])
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _wire_part(part: Wire) -> Wire:
    """The block for a text, an image, a file or a reference to a tool; a placeholder text for any other part."""
    kind = part.get("type")
    if kind == REFERENCE:
        return part
    if kind == "text":
        return _marked({"type": "text", "text": str(part["text"])}, part)
    address = part.get("image_url") if kind == "image_url" else _inside(part, "file").get("file_data")
    source = _source(address.get("url") if isinstance(address, dict) else address)
    if source is None:
        return _marked({"type": "text", "text": f"[{kind}: not shown]"}, part)
    shown = "image" if kind == "image_url" and source.get("media_type") != "application/pdf" else "document"
    return _marked({"type": shown, "source": source}, part)


def _source(address: object) -> Wire | None:
    """The source of an image or file: its data, or an https address that the server fetches; None for any other address, which
    litellm would fetch to this machine."""
    if not isinstance(address, str):
        return None
    if address.startswith("https://"):
        return {"type": "url", "url": address}
    kind, mark, data = address.removeprefix("data:").partition(";base64,")
    return {"type": "base64", "media_type": kind, "data": data} if mark and kind != address else None


def _marked(block: Wire, given: Wire) -> Wire:
    """The block with the cache marker of the part or message it is made from."""
    return {**block, "cache_control": given["cache_control"]} if given.get("cache_control") else block


def _tool(given: Wire) -> Wire:
    """A tool in Anthropic's format."""
    function = given["function"]
    tool: Wire = {"name": function["name"], "input_schema": _schema(function.get("parameters") or {}), "type": "custom"}
    if function.get("description") is not None:
        tool["description"] = function["description"]
    return {**tool, DEFERRED: True} if given.get(DEFERRED) else tool


def _schema(schema: Wire) -> Wire:
    """A normalised schema, with only the keys that are accepted."""
    whole = {"properties": {}, **schema, "type": "object"}
    return {name: whole[name] for name in _SCHEMA if name in whole}


# ── the reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


class AnthropicReading:
    """Parses the events of one reply: converts them to OpenAI's chunks, and keeps its blocks unchanged."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: Event = {}
        self._calls: list[object] = []  # the indexes of their blocks
        self._whole = ""  # the arguments the last call started with, until a delta replaces them
        self._blocks: dict[object, Event] = {}
        self._inputs: dict[object, str] = {}
        self._started: Event = {}
        self._dropped: list[Event] = []

    @property
    def received(self) -> Received | None:
        """The reply's blocks, where they are more than one text followed by calls."""
        blocks = [self._whole_block(place, block) for place, block in self._blocks.items()]
        blocks = [block for block in blocks if block.get("type") != "text" or block.get("text")]
        kinds = [block.get("type") for block in blocks]
        if THINKING_TYPES.isdisjoint(kinds) and "text" not in kinds[1:]:
            return None
        return Received("messages", self._name, encode(blocks).decode())

    @property
    def notes(self) -> ReplyNotes:
        """What the server reported besides the reply."""
        miss = _inside(_inside(self._started, "diagnostics"), "cache_miss_reason")
        reasons = [str(each.get("reason") or "") for each in self._dropped]
        return ReplyNotes(
            message_id=str(self._started.get("id") or ""),
            thoughts_dropped=len(reasons),
            drop_reason=next(iter(reasons), ""),
            cache_miss=str(miss.get("type") or ""),
            cache_missed=tokens(miss.get("cache_missed_input_tokens")),
        )

    def piece(self, event: Event) -> Event:
        """The event as a chunk in OpenAI's form; empty for an event without meaning here."""
        place = event.get("index")
        match event.get("type"):
            case "message_start":
                self._started = _inside(event, "message")
                self._drop(self._started)
                self._count(_inside(self._started, "usage"))
            case "content_block_start":
                block = _inside(event, "content_block")
                self._blocks[place] = block
                return _adding(self._block_started(place, block))
            case "content_block_delta":
                delta = _inside(event, "delta")
                self._keep(place, delta)
                return _adding(self._grown(place, delta))
            case "content_block_stop" if "signature" in (block := self._blocks.get(place) or {}) and is_summary(block):
                return _adding({"content": block.get("content")})
            case "content_block_stop" if self._calls and self._calls[-1] == place:
                return _adding(self._arguments(place, self._whole))
            case "message_delta":
                self._drop(event)
                self._count(_inside(event, "usage"))
                finish = _inside(event, "delta").get("stop_reason") or "end_turn"
                if finish == "compaction" and any("signature" in b and is_summary(b) for b in self._blocks.values()):
                    finish = "end_turn"
                return {"choices": [{"finish_reason": finish}], "usage": _usage(self._counts)}
            case _:
                pass
        return {}

    def _drop(self, told: Event) -> None:
        """Record the thinking that the server dropped from the request; reported again at the end where another model took
        over."""
        dropped = told.get("input_transformations")
        if isinstance(dropped, list) and dropped:
            self._dropped = [each for each in dropped if isinstance(each, dict)]

    def _count(self, usage: Event) -> None:
        """Merge token counts, which are reported twice; the second time some servers omit, or set to 0, earlier ones."""
        self._counts |= {name: count for name, count in usage.items() if count}
        for each in usage.get("iterations") or ():
            if is_summary(each):  # the outer counts do not include it
                self._counts |= {name: count for name, count in each.items() if count and name != "type"}

    def _keep(self, place: object, delta: Event) -> None:
        """Append a delta to its block."""
        block = self._blocks.get(place)
        if block is None:
            return
        if (fragment := delta.get("partial_json")) is not None:
            self._inputs[place] = f"{self._inputs.get(place, '')}{fragment}"
        elif "citation" in delta:
            self._blocks[place] = {**block, "citations": [*(block.get("citations") or ()), delta["citation"]]}
        else:
            grown = {k: f"{block.get(k) or ''}{v}" for k, v in delta.items() if k != "type" and isinstance(v, str)}
            self._blocks[place] = {**block, **grown}

    def _whole_block(self, place: object, block: Event) -> Event:
        """The block with its input, where that arrived in pieces."""
        written = self._inputs.get(place)
        if not written or "input" not in block:
            return block
        try:
            return {**block, "input": msgspec.json.decode(written)}
        except (msgspec.DecodeError, RecursionError):
            return block  # it will not match the recorded call, so it is not sent back

    def _block_started(self, place: object, block: Event) -> Event:
        """The delta for a new block. A call may arrive whole, which litellm overlooks. Calls of the server's own tools are
        ignored."""
        kinds = [each.get("type") for each in self._blocks.values()]
        match block.get("type"):
            case "text" if (
                "text" in kinds[:-1] and kinds[-2] != "text"
            ):  # a paragraph apart from the text before the thinking
                return {"content": f"\n\n{block.get('text') or ''}"}
            case "tool_use":
                self._calls.append(place)
                self._whole = encode(_inside(block, "input")).decode()
                function = {"name": block.get("name"), "arguments": ""}
                return {"tool_calls": [{"index": len(self._calls) - 1, "id": block.get("id"), "function": function}]}
            case "text" | "thinking":
                return self._grown(place, block)
            case _:
                return {}

    def _grown(self, place: object, delta: Event) -> Event:
        """The delta of the chat format for a piece of a block."""
        if arguments := delta.get("partial_json"):
            return self._arguments(place, arguments)
        if thought := delta.get("thinking"):
            return {"reasoning_content": thought}
        return {"content": delta.get("text")}

    def _arguments(self, place: object, arguments: object) -> Event:
        """The delta of the chat format for a piece of a call's arguments."""
        if not arguments or place not in self._calls:
            return {}
        self._whole = ""
        return {"tool_calls": [{"index": self._calls.index(place), "function": {"arguments": arguments}}]}


def is_summary(block: Event) -> bool:
    """Whether a block, or a usage entry, belongs to the provider's own compaction."""
    return block.get("type") == "compaction"


def _adding(delta: Event) -> Event:
    return {"choices": [{"delta": delta}]}


def _inside(event: Event, name: str) -> Event:
    inner = event.get(name)
    return inner if isinstance(inner, dict) else {}


def _usage(counts: Event) -> Event:
    """The counts in OpenAI's form: Anthropic's input excludes the tokens read from the cache and written to it."""
    read, written = tokens(counts.get("cache_read_input_tokens")), tokens(counts.get("cache_creation_input_tokens"))
    thought = tokens(_inside(counts, "output_tokens_details").get("thinking_tokens"))
    return {
        "prompt_tokens": tokens(counts.get("input_tokens")) + read + written,
        "completion_tokens": tokens(counts.get("output_tokens")),
        "completion_tokens_details": {"reasoning_tokens": thought},
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": _inside(counts, "cache_creation"),
    }
