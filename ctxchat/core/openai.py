"""Converts messages from and to OpenAI's chat format, in which conversations are imported, exported and sent.

Only the format itself; what single providers want beyond it is in `ctxchat.models`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.errors import CtxchatError
from ctxchat.core.images import size_of
from ctxchat.core.messages import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall
from ctxchat.core.view import Item, ToolSpec

Wire = dict[str, Any]
"""A message as JSON: role, content, and where they apply tool_calls, tool_call_id and name."""

FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
"""The fields that an export of an imported message gives exactly as they were."""

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
    """A message that cannot be read; the text tells which and why."""


def to_wire(message: Message) -> Wire:
    """A message in OpenAI's format, with the arguments of calls unchanged, valid or not; `to_sent` is for providers."""
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
    """A stored message in OpenAI's format; one that was imported exactly as it was then."""
    # Python's own parser, since it accepts halves of surrogate pairs, which truncated tool output sometimes has.
    return cast(Wire, json.loads(message.original)) if message.original else to_wire(message)


def from_wire(wire: Mapping[str, Any], seq: int, at: str = "") -> Message:
    """A message from OpenAI's format. Where `to_wire` would not give it back exactly, its fields are kept in `original`. Halves
    of surrogate pairs, which no file or provider accepts, become replacement characters. Raises ImportProblem.

    `seq` is its number in the record, `at` its time.
    """
    try:
        msgspec.json.encode(wire)
    except UnicodeEncodeError:
        wire = cast(Wire, _without_surrogates(wire))
    role = _ROLES.get(str(wire.get("role", "")).lower())
    if role is None:
        raise ImportProblem(f"message {seq}: role {wire.get('role')!r} is none of {', '.join(sorted(_ROLES))}")
    parts = _parts(wire.get("content"), seq)
    message = Message(
        seq=seq,
        role=role,
        content=_with_called(parts) if role == "user" and isinstance(parts, str) else parts,
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
    """The messages of a view as they are sent in OpenAI's format, with successive system messages joined into one."""
    messages: list[Wire] = []
    for item in items:
        message = to_sent(item.message)
        if messages and message["role"] == messages[-1]["role"] == "system":
            messages[-1] = {**messages[-1], "content": joined(messages[-1]["content"], message["content"])}
        else:
            messages.append(message)
    return messages


def to_sent(message: Message) -> Wire:
    """A message in OpenAI's format as providers accept it: without blank texts, without its name, and with arguments that are
    valid JSON."""
    sent = to_wire(_without_blanks(message))
    sent.pop("name", None)
    for call in cast("list[Wire]", sent.get("tool_calls", [])):
        call["function"]["arguments"] = whole_arguments(call["function"]["arguments"])
    return sent


def joined(before: str | list[Wire] | None, after: str | list[Wire] | None) -> str | list[Wire] | None:
    """The contents of two messages joined into one, as text or as parts."""
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


def _without_surrogates(value: object) -> object:
    """A JSON value with question marks for the halves of surrogate pairs in its texts."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            fields = cast("dict[object, object]", value)
            return {_without_surrogates(k): _without_surrogates(v) for k, v in fields.items()}
        case list():
            return [_without_surrogates(v) for v in cast("list[object]", value)]
        case _:
            return value


def whole_arguments(arguments: str) -> str:
    """The arguments of a call as a JSON object, which providers require. Text that is not one becomes its field `_broken`, so
    that nothing is lost."""
    if fields_of(arguments) is not None:
        return arguments or "{}"
    return msgspec.json.encode({"_broken": _without_surrogates(arguments)}).decode()


def _content(message: Message) -> str | list[Wire]:
    """A message's content in OpenAI's format. Texts with attached texts become one text, since many servers accept no list of
    parts."""
    if isinstance(message.content, str):
        return message.content
    if any(isinstance(part, Text) and part.name for part in message.content) and _only_texts(message.content):
        words = (_wire_part(part)["text"].strip("\n") for part in message.content)
        return "\n\n".join(text for text in words if text.strip())
    return [_wire_part(part) for part in message.content]


def _only_texts(parts: Iterable[Part]) -> bool:
    return all(isinstance(part, Text) for part in parts)


def _wire_part(part: Part) -> Wire:
    """A part in OpenAI's format."""
    match part:
        case Text():
            return {"type": "text", "text": part.words}
        case Image(url=url):
            return {"type": "image_url", "image_url": {"url": url}}
        case Opaque(json=json):
            return cast(Wire, msgspec.json.decode(json))


def _parts(content: object, seq: int) -> str | tuple[Part, ...]:
    """The content of a message as text or parts. Raises ImportProblem."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ImportProblem(f"message {seq}: content is {type(content).__name__}, not text, a list of parts or null")
    return tuple(_read_part(part) for part in cast("list[object]", content))


_CALLED = re.compile(r"\n\n(?=`{3,}(?:skill|command|prompt) /\S+\n)")
_BLOCK = re.compile(r"\n\n(`{3,})([^`\n]+)\n(.*?)\n\1(?=\n\n`|\Z)", re.S)


def _with_called(text: str) -> str | tuple[Part, ...]:
    """A message of the person whose end is what `_content` made of a skill, command file or prompt that it called, in parts
    again: those are not the person's words. Any other text as it is."""
    opening = _CALLED.search(text)
    if opening is None:
        return text
    parts, end = [Text(text[: opening.start()])], opening.start()
    while end < len(text):
        block = _BLOCK.match(text, end)
        if block is None:
            return text
        parts.append(Text(block[3], block[2]))
        end = block.end()
    return tuple(parts)


def _read_part(part: object) -> Part:
    """A part of a message's content; one of an unknown type is kept as JSON text."""
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
    """The tool calls of an assistant message, in the present format and the older one (`function_call`). Raises ImportProblem."""
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
    """The message without blank text beside calls or among parts, which strict providers refuse."""
    if isinstance(message.content, str):
        return message if message.content.strip() else msgspec.structs.replace(message, content="")
    parts = tuple(part for part in message.content if not (isinstance(part, Text) and not part.text.strip()))
    return msgspec.structs.replace(message, content=parts)


def _as_parts(content: str | list[Wire] | None) -> list[Wire]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
