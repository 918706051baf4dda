"""Shortens the arguments of old tool calls. They stay valid JSON; a long text in them keeps its beginning and end, with a pointer
to the file that holds the whole arguments."""

from __future__ import annotations

from typing import cast

import msgspec

from ctxchat.core.clip import safe_cut
from ctxchat.core.memos import is_memo
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.openai import whole_arguments
from ctxchat.core.strategies.base import Spill
from ctxchat.core.tokens import TokenCounter

LENGTHS = (6_000, 1_500, 400, 240, 120, 40)
"""Characters that each text may keep; tried in turn until the arguments fit."""

HEAD_SHARE = 2 / 3
"""The share of the kept characters that are taken from the beginning of a text. The others are its end, where a to-do list has
the items that are still open."""

REPLACED_CHARS = 120
"""Characters kept of a text that an edit has replaced (`old_string` and the like). It is cut first: what replaced it says
more."""

MAX_ARGUMENT_ITEMS = 12
"""Items of a list, or fields of an object, that stay."""

MAX_ARGUMENT_LEVELS = 6
"""Levels of nesting that stay; anything below becomes a pointer."""


def short_calls(
    message: Message, original: Message, cap: int, counter: TokenCounter, longest: int = LENGTHS[0]
) -> tuple[Message, tuple[Spill, ...]]:
    """The message with the arguments of each call in about `cap` tokens and no text in them longer than `longest` characters, and
    the texts to save first.

    `original` is the message as it is in the record. Calls that fit, calls that were shortened before, and memos stay as they
    are.
    """
    calls: list[ToolCall] = []
    spills: list[Spill] = []
    for place, (call, whole) in enumerate(zip(message.calls, original.calls, strict=True), 1):
        name = arguments_file(message, place)
        short = "" if call != whole or is_memo(call) else _short(whole.arguments, name, cap, counter, longest)
        if short:
            spills.append(Spill(name, whole.arguments))
        calls.append(ToolCall(call.id, call.name, short) if short else call)
    return (msgspec.structs.replace(message, calls=tuple(calls)), tuple(spills)) if spills else (message, ())


def leads(arguments: str, length: int, pointer: str) -> str:
    """The arguments with each text cut to `length` characters and a `pointer` to the whole; unchanged where no text is longer."""
    fields: object = msgspec.json.decode(whole_arguments(arguments))
    cut = _cut(fields, length, pointer)
    return arguments if cut == fields else msgspec.json.encode(cut).decode()


def arguments_file(message: Message, place: int) -> str:
    """The name of the file that holds the whole arguments of a message's call; `place` counts the calls from 1."""
    return f"tool-results/{message.id}-call{place}.json"


def _short(arguments: str, name: str, cap: int, counter: TokenCounter, longest: int) -> str:
    """The arguments as JSON with their long texts cut; empty where they fit already or nothing is gained. Arguments that are not
    valid JSON become the only field of an object."""
    if len(arguments) <= cap or (tokens := counter.count_text(arguments)) <= cap:
        return ""
    pointer = f"full arguments: {name}, {tokens} tokens"
    fields: object = msgspec.json.decode(whole_arguments(arguments))
    fields = _without_replaced(fields, pointer)
    text = msgspec.json.encode(fields).decode()
    if counter.count_text(text) <= cap:
        return text
    for length in (n for n in LENGTHS if n <= longest):
        text = msgspec.json.encode(_cut(fields, length, pointer)).decode()
        if counter.count_text(text) <= cap:
            break
    return text if counter.count_text(text) < tokens else ""


def _without_replaced(fields: object, pointer: str) -> object:
    """The arguments of an edit with the replaced text cut to `REPLACED_CHARS`."""
    if not isinstance(fields, dict):
        return fields
    named = cast("dict[str, object]", fields)
    return {key: _cut(item, REPLACED_CHARS, pointer) if key.startswith("old") else item for key, item in named.items()}


def _cut(value: object, length: int, pointer: str, depth: int = 0) -> object:
    """A JSON value with its texts, lists and objects cut to their limits, each cut marked by `pointer`. `depth` is its level."""
    if depth >= MAX_ARGUMENT_LEVELS and isinstance(value, list | dict):
        return f"[… {pointer}]"
    match value:
        case str() if len(value) > length:
            head = safe_cut(value, int(length * HEAD_SHARE))
            tail = value[safe_cut(value, len(value) - length + head) :]
            return f"{value[:head]} [… {pointer} …]{tail[max(0, tail.find(chr(10))) :]}"  # from a line's beginning
        case list():
            items = cast("list[object]", value)
            kept = [_cut(item, length, pointer, depth + 1) for item in items[:MAX_ARGUMENT_ITEMS]]
            return (
                [*kept, f"[… {len(items) - MAX_ARGUMENT_ITEMS} more; {pointer}]"]
                if len(items) > MAX_ARGUMENT_ITEMS
                else kept
            )
        case dict():
            fields = list(cast("dict[str, object]", value).items())
            kept_fields = {key: _cut(item, length, pointer, depth + 1) for key, item in fields[:MAX_ARGUMENT_ITEMS]}
            return kept_fields | (
                {"…": f"[{len(fields) - MAX_ARGUMENT_ITEMS} more; {pointer}]"}
                if len(fields) > MAX_ARGUMENT_ITEMS
                else {}
            )
        case _:
            return value
