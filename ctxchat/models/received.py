"""Replies that go back as they came: whether what was received still says what the record does, and its blocks with the ids that
calls go by now. Pure; knows the blocks of Anthropic's form and the items of OpenAI's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.messages import Message, Received
from ctxchat.core.openai import Wire, whole_arguments

THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""What thoughts are called, in both forms."""


_READ_BY_ITSELF = re.compile(r"claude-(?:fable|mythos)-5[.-]2")
"""Claudes whose thoughts only they themselves read."""


def readable(came: Received, model: str) -> bool:
    """True where `model` (litellm's name) can read what signed the reply. Claudes leave out what they cannot, whoever serves
    them."""
    return came.model == model or (came.form == "messages" and "claude" in came.model and "claude" in model)


def understood(came: Received, model: str) -> bool:
    """False where `model` is sent these thoughts and leaves them out: of these, no other Claude reads any."""
    return came.model == model or not _READ_BY_ITSELF.search(came.model) or bool(_READ_BY_ITSELF.search(model))


def blocks(came: Received, message: Message) -> list[Wire] | None:
    """The blocks or items of a reply; None where the record says something else by now, as when calls were shortened."""
    found = cast("list[Wire]", msgspec.json.decode(came.blocks))
    texts = "".join(text for block in found for text in _texts(block))
    if "".join(texts.split()) != "".join(message.text.split()):  # white space is not kept everywhere
        return None
    made = [_call_of(block) for block in found if is_call(block)]
    calls = [(call.name, fields_of(whole_arguments(call.arguments))) for call in message.calls]
    if made != calls:
        return None
    return [block for block in found if block.get("type") != "text" or str(block.get("text")).strip()]  # refused, blank


def with_ids(found: Sequence[Wire], calls: Sequence[Wire]) -> Iterator[Wire]:
    """The blocks, each call with the id that the call in its place goes by now."""
    ids = iter(call["id"] for call in calls)
    for block in found:
        if not is_call(block):
            yield block
            continue
        name = "id" if block["type"] == "tool_use" else "call_id"
        id = next(ids)
        yield block if block.get(name) == id else {**block, name: id}


def is_call(block: Wire) -> bool:
    """A call of ours, in either form."""
    return block.get("type") in {"tool_use", "function_call"}


def _texts(block: Wire) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str() as text}:
            yield text
        case {"type": "message", "content": list() as parts}:
            for part in cast("list[Wire]", parts):
                yield str(part.get("text") or part.get("refusal") or "")
        case _:
            pass


def _call_of(block: Wire) -> tuple[str, Any]:
    if block["type"] == "tool_use":
        return str(block.get("name")), block.get("input")
    return str(block.get("name")), fields_of(whole_arguments(str(block.get("arguments"))))
