"""Sends a reply back to its provider as it came, signed thinking included: checks that the stored blocks still match the message
in the record, and gives their tool calls the current ids. Pure; handles Anthropic's blocks and OpenAI's Responses items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.messages import Message, Received
from ctxchat.core.openai import Wire, whole_arguments

THINKING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The `type` of blocks and items that hold thinking, in both forms."""


_READ_BY_ITSELF = re.compile(r"claude-(?:fable|mythos)-5[.-]2")
"""Claudes whose thinking only they themselves read."""


def can_read_thinking(reply: Received, model: str) -> bool:
    """Whether `model` (litellm's name) accepts the signed thinking of this reply. Any Claude may be sent another Claude's,
    whoever serves it: it ignores what it cannot read."""
    return reply.model == model or (reply.form == "messages" and "claude" in reply.model and "claude" in model)


def understood(reply: Received, model: str) -> bool:
    """False where `model` is sent this thinking and ignores it: of some Claudes no other one reads any."""
    return reply.model == model or not _READ_BY_ITSELF.search(reply.model) or bool(_READ_BY_ITSELF.search(model))


def blocks_to_send(reply: Received, message: Message) -> list[Wire] | None:
    """The blocks or items to send back; None where the message no longer says the same, as after its calls were shortened."""
    blocks = cast("list[Wire]", msgspec.json.decode(reply.blocks))
    texts = "".join(text for block in blocks for text in _texts(block))
    if "".join(texts.split()) != "".join(message.text.split()):  # white space is not always kept
        return None
    received_calls = [_call_of(block) for block in blocks if is_call(block)]
    recorded_calls = [(call.name, fields_of(whole_arguments(call.arguments))) for call in message.calls]
    if received_calls != recorded_calls:
        return None
    # providers refuse blank text blocks
    return [block for block in blocks if block.get("type") != "text" or str(block.get("text")).strip()]


def with_current_ids(blocks: Sequence[Wire], calls: Sequence[Wire]) -> Iterator[Wire]:
    """The blocks, each call with the id that the call at the same position has now."""
    ids = iter(call["id"] for call in calls)
    for block in blocks:
        if not is_call(block):
            yield block
            continue
        key = "id" if block["type"] == "tool_use" else "call_id"
        current = next(ids)
        yield block if block.get(key) == current else {**block, key: current}


def is_call(block: Wire) -> bool:
    """Whether a block is a call of one of our tools (not one the provider runs itself), in either form."""
    return block.get("type") in {"tool_use", "function_call"}


def _texts(block: Wire) -> Iterator[str]:
    """The texts in a block or item."""
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
