"""OpenAI's Responses API: decides which models are called in it without litellm, encodes requests, and converts the events of a
reply to chunks of the chat format.

Nothing is stored at the provider: reasoning comes encrypted and is sent back with the conversation. Knows nothing of connections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ctxchat.core.messages import Received
from ctxchat.core.network import with_path
from ctxchat.core.openai import Wire
from ctxchat.core.ports import ReplyNotes
from ctxchat.models.openai_servers import SERVERS, WireRequest, set_elsewhere
from ctxchat.models.protocol import encode
from ctxchat.models.received import with_current_ids
from ctxchat.models.settings import ModelSettings

BY_NAME = "responses/"
"""The beginning of a model's name by which a person asks for this API at a server of their own (as in litellm)."""

_EXTRA = frozenset({"reasoning", "text", "temperature", "top_p", "service_tier", "extra_body", "extra_headers"})
"""Parameters of a person's settings that can be sent without litellm; a model with others is left to litellm."""

_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?=[.-]|$)")
_NEEDS_IT = (5, 4)
"""The first version of OpenAI's models that accepts tools together with reasoning only in this API."""

_REMEMBERS_TURNS = (5, 6)
"""The first version that can be told to keep the reasoning of earlier turns."""

_GROK = re.compile(r"grok-(?:[4-9]|\d\d)")

_KEPT = ("reasoning", "message", "function_call")
"""The types of items of a reply that are sent back."""

Event = dict[str, Any]
"""An event of a reply, an object in one, or a chunk of the chat format."""


class ResponsesServer(msgspec.Struct, frozen=True):
    """A server of this API. `leader` is the role in which it takes the system prompt. `keyed`: it takes the session's id as the
    key of its cache. `remembers`: it keeps the reasoning of earlier turns on request."""

    base: str
    leader: str = "system"
    keyed: bool = False
    remembers: bool = False

    def request(self, model: str, arguments: Mapping[str, Any]) -> WireRequest:
        """The encoded request for a call's `arguments`, which are in litellm's form. Takes a few milliseconds per megabyte."""
        items = [item for message in arguments["messages"] for item in _items(message, self.leader)]
        body: dict[str, object] = {"model": model.removeprefix(BY_NAME), "input": items, "stream": True, "store": False}
        body["include"] = ["reasoning.encrypted_content"]
        if tools := arguments.get("tools"):
            body["tools"] = [_tool(tool["function"]) for tool in tools]
        if output := arguments.get("max_tokens"):
            body["max_output_tokens"] = output
        if self.keyed and arguments.get("session"):
            body["prompt_cache_key"] = arguments["session"]
        reasoning: dict[str, object] = {"context": "all_turns"} if self.remembers else {}
        if effort := arguments.get("effort"):
            reasoning["effort"] = effort
        if reasoning := reasoning | dict(arguments.get("reasoning") or {}):
            body["reasoning"] = reasoning
        body |= {k: v for k, v in arguments.items() if k in _EXTRA - {"reasoning", "extra_body", "extra_headers"}}
        body |= arguments.get("extra_body") or {}
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if key := arguments.get("api_key"):
            headers["authorization"] = f"Bearer {key}"
        headers |= {str(name): str(value) for name, value in (arguments.get("extra_headers") or {}).items()}
        return WireRequest(with_path(self.base, "/responses"), headers, encode(body))

    def reading(self, name: str) -> ResponsesReading:
        """A reader for the events of one reply; `name` is litellm's name of the model."""
        return ResponsesReading(name)


def uses_responses_form(settings: ModelSettings) -> bool:
    """True for a model that is called in this API: its name says so, or its provider requires it at its own address. False
    where settings need litellm, and for models made for searching."""
    prefix, model = settings.provider.prefix, settings.model
    if not settings.extra.keys() <= _EXTRA or "search" in model:
        return False
    if prefix == "openai" and model.startswith(BY_NAME):
        return True
    if settings.base:
        return False
    return (prefix == "openai" and _version(model) >= _NEEDS_IT) or (prefix == "xai" and bool(_GROK.match(model)))


def server_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> ResponsesServer | None:
    """The server of a model that is called in this API without litellm; None for other models, and where the environment sets
    something that only litellm supports."""
    prefix = settings.provider.prefix
    if not uses_responses_form(settings) or set_elsewhere(settings, environment):
        return None
    at_provider = not settings.base
    at_openai = at_provider and prefix == "openai"
    return ResponsesServer(
        base=settings.base or SERVERS[prefix].base,
        leader="developer" if at_openai else "system",
        keyed=at_provider,
        remembers=at_openai and _version(settings.model.removeprefix(BY_NAME)) >= _REMEMBERS_TURNS,
    )


def _version(model: str) -> tuple[int, int]:
    """The version in a GPT's name, as two numbers; (0, 0) for other models."""
    match = _GPT.match(model)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


# ── the conversation ────────────────────────────────────────────────────────────────────────────────────────────────


def _items(message: Wire, leader: str) -> Iterator[Wire]:
    """A message as items of this API: those it was received as, where it came from this API (`blocks`), with the calls' current
    ids; else its text and its calls."""
    role, content = message["role"], message.get("content")
    calls: Sequence[Wire] = message.get("tool_calls") or ()
    if "blocks" in message:
        yield from with_current_ids(message["blocks"], calls)
        return
    if role == "tool":
        output = content if isinstance(content, str) else "".join(_shown(part) for part in content or ())
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}
        return
    if content:
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        wired = [_wire_part(part, "output_text" if role == "assistant" else "input_text") for part in parts]
        yield {"type": "message", "role": leader if role == "system" else role, "content": wired}
    for call in calls:
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }


def _wire_part(part: Wire, text: str) -> Wire:
    """A part of a message in this API's format; a short text for a type that it does not have. `text` is the type of a text
    part."""
    match part:
        case {"type": "text"}:
            return {"type": text, "text": str(part["text"])}
        case {"type": "image_url", "image_url": image}:
            url = image.get("url") if isinstance(image, dict) else image
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"type": "file", "file": {"file_data": str() as data, **named}}:
            return {"type": "input_file", "file_data": data, "filename": str(named.get("filename") or "file.pdf")}
        case _:
            return {"type": text, "text": _shown(part)}


def _shown(part: Wire) -> str:
    """A part of a message as text: its own, or a short note for one that is none."""
    kind = str(part.get("type"))
    return str(part.get("text") or "") if kind == "text" else f"[{kind.removesuffix('_url')}: not shown]"


def _tool(function: Wire) -> Wire:
    """A tool in this API's format. `strict` is set to false, since the API takes it for true where it is missing."""
    return {"type": "function", **function, "strict": False}


# ── the reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


class ResponsesReading:
    """Reads the events of one reply: converts each to a chunk of the chat format, and keeps the whole items to send them back
    later."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._items: dict[int, Wire] = {}
        self._calls: list[object] = []  # the output index of each call's item
        self._written: set[object] = set()  # output indexes of calls whose arguments have come
        self._said = False  # a text has come
        self._thought = False  # reasoning has come
        self.notes = ReplyNotes()

    @property
    def received(self) -> Received | None:
        """The items to send back, where they hold more than the chat format can: reasoning, a text that is not first, or
        phases. Else None."""
        items = [item for _, item in sorted(self._items.items()) if item.get("type") in _KEPT]
        items = [i for i in items if i["type"] != "reasoning" or i.get("encrypted_content") or i.get("content")]
        kinds = [item["type"] for item in items]
        plain = "reasoning" not in kinds and "message" not in kinds[1:] and not any(item.get("phase") for item in items)
        return None if plain else Received("responses", self._name, encode(items).decode())

    def piece(self, event: Event) -> Event:
        """The chunk of the chat format for an event; an empty one for an event without content for us."""
        place, delta = event.get("output_index"), event.get("delta")
        match str(event.get("type")).removeprefix("response."):
            case "created":
                self.notes = ReplyNotes(message_id=str(_inside(event, "response").get("id") or ""))
            case "output_item.added":
                return _adding(self._item_started(place, _inside(event, "item")))
            case "output_item.done":
                return _adding(self._item_done(place, _inside(event, "item")))
            case "output_text.delta":
                self._said = True
                return _adding({"content": delta})
            case "refusal.delta":
                return _adding({"refusal": delta})
            case "reasoning_summary_part.added" if event.get("summary_index"):
                return _adding({"reasoning_content": "\n\n"})
            case "reasoning_summary_text.delta" | "reasoning_text.delta":
                self._thought = True
                return _adding({"reasoning_content": delta})
            case "function_call_arguments.delta" if delta and place in self._calls:
                self._written.add(place)
                return _adding(self._arguments(place, delta))
            case "completed" | "incomplete":
                return self._response_end(_inside(event, "response"))
            case "failed":
                return {"error": _inside(_inside(event, "response"), "error") or {"message": "The response failed."}}
            case "error":
                return {"error": event.get("error") or {k: v for k, v in event.items() if k in {"code", "message"}}}
            case _:
                pass
        return {}

    def _item_started(self, place: object, item: Wire) -> Event:
        """The delta for a new item, at the output index `place`."""
        match item.get("type"):
            case "function_call":
                self._calls.append(place)
                function = {"name": item.get("name"), "arguments": ""}
                return {
                    "tool_calls": [{"index": len(self._calls) - 1, "id": item.get("call_id"), "function": function}]
                }
            case "message" if self._said:
                return {"content": "\n\n"}  # separates its text from that of the message before
            case "reasoning" if self._thought:
                return {"reasoning_content": "\n\n"}
            case _:
                return {}

    def _item_done(self, place: object, item: Wire) -> Event:
        """The delta for a finished item: its arguments, where they did not come in pieces. Keeps the item."""
        if isinstance(place, int):
            self._items[place] = item
        if item.get("type") != "function_call":
            return {}
        start = {} if place in self._calls else self._item_started(place, item)
        if place in self._written or not item.get("arguments"):
            return start
        self._written.add(place)
        return self._arguments(place, item["arguments"], start)

    def _arguments(self, place: object, arguments: object, start: Event | None = None) -> Event:
        """The delta with arguments of the call at the output index `place`, behind the delta that begins it (`start`), if any."""
        fragment = {"index": self._calls.index(place), "function": {"arguments": arguments}}
        return {"tool_calls": [*(start or {}).get("tool_calls", ()), fragment]}

    def _response_end(self, response: Event) -> Event:
        """The last chunk: why the reply ended, and its usage under the names of the chat format."""
        reason = _inside(response, "incomplete_details").get("reason")
        finish = {"max_output_tokens": "length"}.get(str(reason), str(reason)) if reason else "stop"
        counts = _inside(response, "usage")
        usage = {
            **counts,
            "prompt_tokens": counts.get("input_tokens"),
            "completion_tokens": counts.get("output_tokens"),
            "prompt_tokens_details": _inside(counts, "input_tokens_details"),
            "completion_tokens_details": _inside(counts, "output_tokens_details"),
        }
        return {"choices": [{"finish_reason": finish}], "usage": usage if counts else None}


def _adding(delta: Event) -> Event:
    """The chunk of the chat format that adds this delta."""
    return {"choices": [{"delta": delta}]}


def _inside(event: Event, name: str) -> Event:
    """The object of this name in an event; empty where it is missing or none."""
    inner = event.get(name)
    return inner if isinstance(inner, dict) else {}
