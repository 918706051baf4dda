"""Counting a request as a provider does, by what is published of its chat format; for doubles whose usage is to be believed.

OpenAI's rules are those of its cookbook ("How to count tokens with tiktoken"): three tokens a message, one a name, three for the
reply to begin, and tools by the length of their names and descriptions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ctxchat.core.images import size_of
from ctxchat.core.tokens import image_tokens

Body = dict[str, Any]
Count = Callable[[str], int]

PER_MESSAGE, PER_REPLY, PER_CALL = 3, 3, 8
TOOLS_BEGIN, TOOL_BEGIN, PROPERTY, PROPERTIES, CHOICE, CHOICES, TOOLS_END = 10, 7, 3, 3, 3, -3, 12


def openai_prompt(body: Body, count: Count) -> int:
    """Tokens of a request to /v1/chat/completions."""
    messages = sum(PER_MESSAGE + _message(message, count) for message in body["messages"])
    tools = [tool["function"] for tool in body.get("tools") or ()]
    return PER_REPLY + messages + (TOOLS_BEGIN + sum(_tool(tool, count) for tool in tools) + TOOLS_END if tools else 0)


def _message(message: Body, count: Count) -> int:
    content = message.get("content") or ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    spoken = sum(
        image_tokens(*size_of(p["image_url"]["url"])) if p["type"] == "image_url" else count(p["text"]) for p in parts
    )
    return count(message["role"]) + spoken + sum(PER_CALL + count(c["name"]) + count(c["arguments"]) for c in calls)


def _tool(tool: Body, count: Count) -> int:
    """As the cookbook counts: a line for the tool, a line for each of its properties."""
    total = TOOL_BEGIN + count(f"{tool['name']}:{tool['description'].rstrip('.')}")
    properties = tool["parameters"].get("properties", {})
    total += PROPERTIES if properties else 0
    for name, about in properties.items():
        total += PROPERTY + count(f"{name}:{about.get('type', '')}:{str(about.get('description', '')).rstrip('.')}")
        choices = about.get("enum", ())
        total += CHOICES + sum(CHOICE + count(str(choice)) for choice in choices) if choices else 0
    return total


def anthropic_prompt(body: Body, count: Count) -> int:
    """Tokens of a request to /v1/messages: what its documentation says tools add (346), and images by their pixels."""
    texts = [str(block.get("text", "")) for block in _blocks(body.get("system"))]
    tokens = sum(map(count, texts))
    for message in body["messages"]:
        tokens += 4 + sum(_block(block, count) for block in _blocks(message["content"]))
    tools = body.get("tools") or ()
    return tokens + (346 + sum(count(json.dumps(tool)) for tool in tools) if tools else 0)


def _blocks(content: Any) -> list[Body]:
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


def _block(block: Body, count: Count) -> int:
    match block["type"]:
        case "text":
            return count(block["text"])
        case "image":
            source = block["source"]
            width, height = size_of(f"data:{source['media_type']};base64,{source['data']}")
            return min(1600, width * height // 750)
        case "tool_use":
            return 12 + count(block["name"]) + count(json.dumps(block["input"]))
        case "tool_result":
            return 8 + sum(_block(inner, count) for inner in _blocks(block.get("content")))
        case _:
            return count(json.dumps(block))
