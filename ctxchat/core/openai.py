"""OpenAI-style chat messages, to and from: the form conversations are imported, exported and sent in.

Only the shape; which provider wants what beyond it is the business of `ctxchat.models`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.errors import CtxchatError
from ctxchat.core.images import size_of
from ctxchat.core.messages import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall
from ctxchat.core.view import Item, ToolSpec

Wire = dict[str, Any]
"""One message as JSON: role, content, and where they apply tool_calls, tool_call_id, name."""

FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
"""The fields an export gives back equal."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}


class ImportProblem(CtxchatError):
    """A message that cannot be read; the text says which and why."""


def to_wire(message: Message) -> Wire:
    """One message in OpenAI's form. Call arguments go out as they are; see `whole_arguments` for what a provider accepts."""
    wire: Wire = {"role": message.role, "content": _content(message)}
    if message.calls:
        wire["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
        if not wire["content"]:
            wire["content"] = None
    if message.role == "tool":
        wire["tool_call_id"] = message.call_id
    if message.name:
        wire["name"] = message.name
    return wire


def recorded(message: Message) -> Wire:
    """A message of the record exactly as it came in, where it came from outside."""
    # Python's own reader, since it gives back halves of surrogate pairs, which cut-off tool output has now and then.
    return cast(Wire, json.loads(message.original)) if message.original else to_wire(message)


def from_wire(wire: Mapping[str, Any], seq: int, at: str = "") -> Message:
    """A message from OpenAI's form; what this form cannot say is kept in `original`. Raises ImportProblem.

    Halves of surrogate pairs, which no file or provider takes, become replacement characters.
    """
    try:
        msgspec.json.encode(wire)
    except UnicodeEncodeError:
        wire = cast(Wire, _mended(wire))
    role = _ROLES.get(str(wire.get("role", "")).lower())
    if role is None:
        raise ImportProblem(f"message {seq}: role {wire.get('role')!r} is none of {', '.join(sorted(_ROLES))}")
    message = Message(
        seq=seq,
        role=role,
        content=_parts(wire.get("content"), seq),
        calls=tuple(_calls(wire, seq)) if role == "assistant" else (),
        call_id=str(wire.get("tool_call_id") or wire.get("name") or "") if role == "tool" else "",
        name=str(wire.get("name") or ""),
        reasoning=_reasoning(wire),
        at=at,
    )
    kept = {field: wire[field] for field in FIELDS if field in wire}
    if to_wire(message) != kept:
        message = msgspec.structs.replace(message, original=msgspec.json.encode(kept).decode())
    return message


def wire(items: Iterable[Item]) -> list[Wire]:
    """The messages of a view in OpenAI's form: system messages as one, every other as it is, arguments valid JSON."""
    messages: list[Wire] = []
    for item in items:
        message = to_sent(item.message)
        if messages and message["role"] == messages[-1]["role"] == "system":
            messages[-1] = {**messages[-1], "content": joined(messages[-1]["content"], message["content"])}
        else:
            messages.append(message)
    return messages


def to_sent(message: Message) -> Wire:
    """One message as a provider accepts it: without blank texts and names, arguments valid JSON."""
    sent = to_wire(_without_blanks(message))
    sent.pop("name", None)
    for call in cast("list[Wire]", sent.get("tool_calls", [])):
        call["function"]["arguments"] = whole_arguments(call["function"]["arguments"])
    return sent


def joined(before: str | list[Wire] | None, after: str | list[Wire] | None) -> str | list[Wire] | None:
    """Two contents as one."""
    if not before or not after:
        return before or after
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    return [*_as_parts(before), *_as_parts(after)]


def wire_tools(tools: Sequence[ToolSpec]) -> list[Wire]:
    """Tool schemas in OpenAI's form."""
    return [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in tools
    ]


def _mended(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_mended(k): _mended(v) for k, v in cast("dict[object, object]", value).items()}
        case list():
            return [_mended(v) for v in cast("list[object]", value)]
        case _:
            return value


def whole_arguments(arguments: str) -> str:
    """Arguments a provider accepts: a JSON object. Broken text is quoted whole under `_broken`, so nothing is lost."""
    if fields_of(arguments) is not None:
        return arguments or "{}"
    return msgspec.json.encode({"_broken": _mended(arguments)}).decode()


def _content(message: Message) -> str | list[Wire]:
    if isinstance(message.content, str):
        return message.content
    if any(isinstance(part, Text) and part.name for part in message.content) and _only_texts(message.content):
        words = (_wire_part(part)["text"].strip("\n") for part in message.content)
        return "\n\n".join(text for text in words if text.strip())
    return [_wire_part(part) for part in message.content]


def _only_texts(parts: Iterable[Part]) -> bool:
    return all(isinstance(part, Text) for part in parts)


def _wire_part(part: Part) -> Wire:
    match part:
        case Text():
            return {"type": "text", "text": part.words}
        case Image(url=url):
            return {"type": "image_url", "image_url": {"url": url}}
        case Opaque(json=json):
            return cast(Wire, msgspec.json.decode(json))


def _parts(content: object, seq: int) -> str | tuple[Part, ...]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ImportProblem(f"message {seq}: content is {type(content).__name__}, not text, a list of parts or null")
    return tuple(_read_part(part) for part in cast("list[object]", content))


def _read_part(part: object) -> Part:
    if isinstance(part, str):
        return Text(part)
    if isinstance(part, dict):
        fields = cast(Wire, part)
        kind = str(fields.get("type", "part"))
        if kind in {"text", "input_text", "output_text"} and isinstance(fields.get("text"), str):
            return Text(fields["text"])
        if kind == "image_url":
            image = fields.get("image_url")
            url = cast(Wire, image).get("url") if isinstance(image, dict) else image
            if isinstance(url, str):
                return Image(url, *size_of(url))
        return Opaque(kind, msgspec.json.encode(fields).decode())
    return Opaque("part", msgspec.json.encode(part).decode())


def _calls(wire: Mapping[str, Any], seq: int) -> Iterable[ToolCall]:
    calls: object = wire.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ImportProblem(f"message {seq}: tool_calls is not a list")
    for place, call in enumerate(cast("list[object]", calls)):
        fields = cast(Wire, call) if isinstance(call, dict) else {}
        kind = "custom" if isinstance(fields.get("custom"), dict) else "function"
        function = cast(Wire, fields[kind]) if isinstance(fields.get(kind), dict) else fields
        # a custom tool takes text of any kind, and a call holds only an object
        arguments = {"input": function.get("input")} if kind == "custom" else function.get("arguments")
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
        yield ToolCall(str(fields.get("id") or f"call_{seq}_{place}"), str(function.get("name") or "unknown"), text)
    old = wire.get("function_call")
    if isinstance(old, dict):
        fields = cast(Wire, old)
        name = str(fields.get("name") or "unknown")
        yield ToolCall(name, name, str(fields.get("arguments") or ""))


def _reasoning(wire: Mapping[str, Any]) -> Reasoning | None:
    text = wire.get("reasoning_content") or wire.get("reasoning")
    return Reasoning(text) if isinstance(text, str) and text else None


def _without_blanks(message: Message) -> Message:
    """Blank text beside calls or among parts left out: strict providers refuse it."""
    if isinstance(message.content, str):
        return message if message.content.strip() else msgspec.structs.replace(message, content="")
    parts = tuple(part for part in message.content if not (isinstance(part, Text) and not part.text.strip()))
    return msgspec.structs.replace(message, content=parts)


def _as_parts(content: str | list[Wire] | None) -> list[Wire]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
