"""A request as litellm takes it: what only our own transports understand is put in its words, or left out. Pure; does not import
litellm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxchat.core.openai import Wire
from ctxchat.models.received import THINKING_TYPES, is_call

_CACHE_KEYED = ("openai/", "azure/", "responses/", "mistral/", "gpt-")
"""Models, by the beginning of their names, whose provider takes OpenAI's `prompt_cache_key`."""


def litellm_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one call, messages with `blocks` of Anthropic's form as litellm keeps their order."""
    ours = {"session", "effort", "messages"}
    told = {name: value for name, value in arguments.items() if name not in ours}
    if "messages" in arguments:
        told["messages"] = [plain for message in arguments["messages"] for plain in _split_message(message)]
    model = str(arguments.get("model"))
    if (session := arguments.get("session")) and model.startswith(_CACHE_KEYED):
        told.setdefault("prompt_cache_key", session)
    if effort := arguments.get("effort"):
        told.setdefault("reasoning_effort", effort)
    return told


def _split_message(message: Wire) -> Iterator[Wire]:
    """Thoughts and texts among the contents, calls behind them; where more comes behind a call, in another message, which
    litellm joins with the one before."""
    blocks: Sequence[Wire] | None = message.get("blocks")
    if blocks is None:
        yield message
        return
    if any(block.get("type") in {"reasoning", "message", "function_call"} for block in blocks):
        told = {name: value for name, value in message.items() if name != "blocks"}
        yield {**told, "reasoning_items": [block for block in blocks if block.get("type") == "reasoning"]}
        return
    calls = iter(message.get("tool_calls") or ())
    content: list[Wire] = []
    made: list[Wire] = []
    for block in blocks:
        if is_call(block):
            made.append(next(calls))
        elif block.get("type") in THINKING_TYPES or block.get("type") == "text":
            if made:
                yield _assistant(content, made)
                content, made = [], []
            content.append(block)
    yield _assistant(content, made)


def _assistant(content: Sequence[Wire], calls: Sequence[Wire]) -> Wire:
    message: Wire = {"role": "assistant", "content": list(content) or None}
    return {**message, "tool_calls": list(calls)} if calls else message
