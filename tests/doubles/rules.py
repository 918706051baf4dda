"""What each provider documents that it takes, as validators of a request's body. Each fails with what is wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]

_BLOCKS = {"text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"}


def anthropic(body: Body) -> None:
    """platform.claude.com: Messages API ("consecutive turns of one role are combined"), "Tool use" and "Errors"."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles[0] == "user" and roles[-1] == "user"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        assert blocks and all(block["type"] != "text" or block["text"].strip() for block in blocks)
        assert all(block["type"] in _BLOCKS for block in blocks), "a block it does not know"
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(answers) == sorted(open_calls), "all results of a round in the very next message"
        assert [b["type"] == "tool_result" for b in blocks[: len(answers)]] == [True] * len(answers), (
            "results come first"
        )
        assert all(block.get("content") for block in blocks if block["type"] == "tool_result")
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not seen & set(open_calls) and len(set(open_calls)) == len(open_calls)
        assert all(_short(id) for id in open_calls)
        assert all(_named(block["name"]) for block in blocks if block["type"] == "tool_use")
        assert all(isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use")
        assert all(block.get("signature") for block in blocks if block["type"] == "thinking")
        seen |= set(open_calls)
    assert not open_calls
    assert json.dumps(body).count('"cache_control"') <= 4


def bedrock(body: Body) -> None:
    """docs.aws.amazon.com: Bedrock's Converse API, "Call a tool" and "Prompt caching"."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles[0] == "user" and roles[-1] == "user"
    assert all(a != b for a, b in itertools.pairwise(roles)), "roles alternate"
    open_calls: list[str] = []
    for message in messages:
        blocks = message["content"]
        assert blocks and all(block.get("text", "x").strip() for block in blocks)
        answers = [block["toolResult"] for block in blocks if "toolResult" in block]
        assert sorted(a["toolUseId"] for a in answers) == sorted(open_calls)
        assert all(answer["content"] for answer in answers)
        wanted = [block["toolUse"] for block in blocks if "toolUse" in block]
        open_calls = [call["toolUseId"] for call in wanted]
        assert all(isinstance(call["input"], dict) and _short(call["toolUseId"]) for call in wanted)
        assert all(_named(call["name"]) for call in wanted)
        thought = [block["reasoningContent"] for block in blocks if "reasoningContent" in block]
        assert all(t["reasoningText"]["signature"] for t in thought)
    assert not open_calls
    assert json.dumps(body).count('"cachePoint"') <= 4


def gemini(body: Body) -> None:
    """ai.google.dev: "Function calling" and the API reference of generateContent."""
    contents = body["contents"]
    assert contents[0]["role"] == "user" and contents[-1]["role"] == "user"
    waiting = 0
    for content in contents:
        assert content["parts"]
        assert all(part.get("text", "x").strip() for part in content["parts"])
        answers = sum("function_response" in part or "functionResponse" in part for part in content["parts"])
        assert answers == waiting, "as many responses as calls, right behind them"
        if answers:
            assert content["role"] in {"user", "function"}
        wanted = [part.get("function_call") or part.get("functionCall") for part in content["parts"]]
        assert all(_named(call["name"]) for call in wanted if call)
        waiting = sum(map(bool, wanted))
    assert not waiting


def ollama(body: Body) -> None:
    """docs.ollama.com: /api/chat; results are told apart by their order and the tool's name."""
    waiting = 0
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting -= 1
            assert waiting >= 0 and message["content"]
            continue
        assert not waiting
        assert message.get("content") or message.get("tool_calls")
        waiting = len(message.get("tool_calls") or ())
        assert all(isinstance(c["function"]["arguments"], dict) for c in message.get("tool_calls") or ())
        assert all(_named(c["function"]["name"]) for c in message.get("tool_calls") or ())
    assert not waiting and body["options"]["num_ctx"]


def openai(body: Body, takes: frozenset[str] = frozenset()) -> None:
    """platform.openai.com: the API reference of chat completions. `takes`: fields a provider adds to it."""
    known = {"role", "content", "tool_calls", "tool_call_id", "name", *takes}
    waiting: list[str] = []
    for message in body["messages"]:
        assert set(message) <= known, "a field it does not know"
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert message["content"]
            continue
        assert not waiting, "every call is answered at once"
        assert message.get("content") or message.get("tool_calls")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        assert all(len(id) <= 40 for id in waiting) and len(set(waiting)) == len(waiting)
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in message.get("tool_calls") or ())
        assert all(_named(c["function"]["name"]) for c in message.get("tool_calls") or ())
    assert not waiting
    assert all(_named(tool["function"]["name"]) for tool in body.get("tools") or ())


def own_server(body: Body) -> None:
    """vLLM's and llama.cpp's: OpenAI's form, and a reply's thoughts in the field they came in."""
    openai(body, frozenset({"reasoning", "reasoning_content"}))


def responses(body: Body) -> None:
    """platform.openai.com: the API reference of responses, whose input is a list of items."""
    assert "instructions" not in body, "the system prompt is a message: only messages can be marked for the cache"
    assert body["input"][0]["role"] == "system"
    open_calls: list[str] = []
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                assert isinstance(json.loads(item["arguments"]), dict) and item["call_id"] not in open_calls
                assert _named(item["name"])
                assert "id" not in item, "with its own id it is refused without the thought it came from"
                open_calls.append(item["call_id"])
            case "function_call_output":
                open_calls.remove(item["call_id"])
                assert item["output"]
            case "message":
                assert not open_calls, "every call is answered at once"
                assert item["content"] and item["role"] in {"system", "user", "assistant"}
            case other:
                raise AssertionError(other)
    assert not open_calls


def mistral(body: Body) -> None:
    """docs.mistral.ai: "Function calling", and the refusals of its API: nine letters or digits an id, no user behind results, no
    field that is not documented."""
    openai(body, frozenset({"prefix"}))
    assert "stream_options" not in body
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    assert roles[0] == "user" and roles[-1] in {"user", "tool"}
    assert ("tool", "user") not in set(itertools.pairwise(roles))
    for message in body["messages"]:
        assert all(len(c["id"]) == 9 and c["id"].isalnum() for c in message.get("tool_calls") or ())


def cohere(body: Body) -> None:
    """docs.cohere.com: the API reference of chat v2, whose messages have OpenAI's form."""
    assert body["messages"][-1]["role"] in {"user", "tool"}
    openai(body, frozenset({"tool_plan"}))
    assert "stream_options" not in body


def deepseek(body: Body) -> None:
    """api-docs.deepseek.com: "Thinking mode", and platform.moonshot.ai: "Use the Kimi thinking model": a reply without its
    `reasoning_content` is an error where it calls tools, and an empty one is taken for none."""
    openai(body, frozenset({"reasoning_content"}))
    assert all(message.get("reasoning_content") for message in body["messages"] if message.get("tool_calls"))


def openrouter(body: Body) -> None:
    """openrouter.ai: "Reasoning tokens": blocks go back whole and in order, beside the calls they came with."""
    openai(body, frozenset({"reasoning_details"}))
    for message in body["messages"]:
        assert all(detail["type"].startswith("reasoning.") for detail in message.get("reasoning_details") or ())


RULES: dict[str, Callable[[Body], None]] = {
    "responses": responses,
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "ollama": ollama,
    "mistral": mistral,
    "cohere": cohere,
    "deepseek": deepseek,
    "moonshot": deepseek,
    "openrouter": openrouter,
    **dict.fromkeys(("azure", "groq", "xai"), openai),
    **dict.fromkeys(("openai", "vllm", "lm_studio"), own_server),
}
"""By the family that asks for it."""


def _named(name: str) -> bool:
    return bool(name) and _short(name)


def _short(id: str) -> bool:
    return len(id) <= 64 and id.isascii() and id.replace("_", "").replace("-", "").isalnum()
