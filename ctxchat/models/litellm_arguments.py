"""Converts the arguments of a call into those that litellm accepts: what only our direct transport understands is translated or
left out. Pure; does not import litellm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxchat.core.openai import Wire
from ctxchat.models.received import THINKING_TYPES, is_call

_CACHE_KEYED = ("openai/", "azure/", "responses/", "mistral/", "gpt-")
"""Beginnings of the names of models whose provider accepts OpenAI's `prompt_cache_key`."""


def litellm_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call as litellm accepts them."""
    ours = {"session", "effort", "messages"}
    translated = {name: value for name, value in arguments.items() if name not in ours}
    if "messages" in arguments:
        translated["messages"] = [plain for message in arguments["messages"] for plain in _split_message(message)]
    model = str(arguments.get("model"))
    if (session := arguments.get("session")) and model.startswith(_CACHE_KEYED):
        translated.setdefault("prompt_cache_key", session)
    if effort := arguments.get("effort"):
        translated.setdefault("reasoning_effort", effort)
    return translated


def _split_message(message: Wire) -> Iterator[Wire]:
    """A message as litellm accepts it. A reply with `blocks` (its parts as the provider sent them) may become several messages.

    litellm sends thinking and texts before the calls of a message. Where one of them comes behind a call, another message begins,
    which litellm joins with the one before: so the order of the blocks is kept.
    """
    blocks: Sequence[Wire] | None = message.get("blocks")
    if blocks is None:
        yield message
        return
    if any(block.get("type") in {"reasoning", "message", "function_call"} for block in blocks):
        others = {name: value for name, value in message.items() if name != "blocks"}
        yield {**others, "reasoning_items": [block for block in blocks if block.get("type") == "reasoning"]}
        return
    calls = iter(message.get("tool_calls") or ())
    content: list[Wire] = []
    own_calls: list[Wire] = []
    for block in blocks:
        if is_call(block):
            own_calls.append(next(calls))
        elif block.get("type") in THINKING_TYPES or block.get("type") == "text":
            if own_calls:
                yield _assistant(content, own_calls)
                content, own_calls = [], []
            content.append(block)
    yield _assistant(content, own_calls)


def _assistant(content: Sequence[Wire], calls: Sequence[Wire]) -> Wire:
    message: Wire = {"role": "assistant", "content": list(content) or None}
    return {**message, "tool_calls": list(calls)} if calls else message
