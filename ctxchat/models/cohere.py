"""Converts the events of Cohere's chat API into chunks of OpenAI's format, since litellm's own conversion loses calls and usage.
Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Chunk = dict[str, Any]

_REASONS = {"COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length", "TOOL_CALL": "tool_calls"}
_FAILED = {"ERROR", "TIMEOUT"}


def is_cohere(model: str) -> bool:
    """True for a model whose streams litellm reads as Cohere's."""
    return model.startswith(("cohere/", "cohere_chat/"))


def chunk(event: Mapping[str, Any]) -> Chunk:
    """One event of /v2/chat as a chunk of OpenAI's stream; a chunk without content for an event that has none for us."""
    delta = event.get("delta") or {}
    message = delta.get("message") or {}
    match event.get("type"):
        case "content-delta":
            content = message.get("content") or {}
            return _chunk({"content": content.get("text"), "reasoning_content": content.get("thinking")})
        case "tool-plan-delta":
            return _chunk({"reasoning_content": message.get("tool_plan")})
        case "tool-call-start" | "tool-call-delta":
            return _chunk({"tool_calls": [{"index": event.get("index", 0), **(message.get("tool_calls") or {})}]})
        case "message-end" if delta.get("finish_reason") in _FAILED:
            return {
                "error": {"message": delta.get("error") or f"Cohere ended the reply with {delta['finish_reason']}."}
            }
        case "message-end":
            finish = str(delta.get("finish_reason", ""))
            return {**_chunk({}, _REASONS.get(finish, finish)), "usage": _usage(delta.get("usage") or {})}
        case None if isinstance(event.get("message"), str):
            return {"error": dict(event)}
        case _:
            return _chunk({})


def _chunk(delta: Chunk, finish: str | None = None) -> Chunk:
    """A chunk with those fields of `delta` that are not empty."""
    filled = {name: value for name, value in delta.items() if value}
    return {
        "id": "cohere",
        "created": 0,
        "model": "",
        "choices": [{"index": 0, "delta": filled, "finish_reason": finish}],
    }


def _usage(usage: Mapping[str, Any]) -> Chunk | None:
    """Cohere's token counts under OpenAI's names; None where there are none."""
    counts = usage.get("tokens") or usage.get("billed_units") or {}
    if not counts.get("input_tokens"):
        return None
    prompt, completion = int(counts["input_tokens"]), int(counts.get("output_tokens") or 0)
    details = {"cached_tokens": int(usage.get("cached_tokens") or 0)}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": details,
    }
