"""What really goes over the wire, behind litellm: difficult histories against validators of each provider's documented rules."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from typing import Any

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.ports import ModelRequest
from ctxchat.models.litellm_client import LitellmModel
from ctxchat.models.process import Worker
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import says
from tests.doubles.requests import listen, view_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


def calling(seq: int, *ids: str, text: str = "", thought: Reasoning | None = None) -> Message:
    calls = tuple(ToolCall(id, "read_file", json.dumps({"path": f"{place}.txt"})) for place, id in enumerate(ids))
    return Message(seq, "assistant", text, calls, reasoning=thought)


def result(seq: int, id: str, text: str = "found") -> Message:
    return Message(seq, "tool", text, call_id=id, name="read_file")


ASK = Message(1, "user", "What is in them?")
HISTORIES: dict[str, tuple[Message, ...]] = {
    "parallel results": (ASK, calling(2, "a", "b", "c"), result(5, "a"), result(6, "b"), result(7, "c")),
    "ids used twice": (ASK, calling(2, "a"), result(3, "a"), calling(4, "a"), result(5, "a")),
    "ids no provider takes": (ASK, calling(2, "weird id/§" * 9), result(3, "weird id/§" * 9)),
    "an empty result": (ASK, calling(2, "a"), result(3, "a", " ")),
    "blank text beside a call": (ASK, calling(2, "a", text="  \n"), result(3, "a")),
    "the assistant first": (Message(1, "assistant", "Hello."), ASK),
    "users in a row": (ASK, Message(2, "user", "And why?")),
    "a user behind results": (ASK, calling(2, "a"), result(3, "a"), Message(4, "user", "Stop, tell me.")),
    "white space at the end": (ASK, Message(2, "assistant", "Let me see  \n"), Message(3, "user", "Well?")),
    "thoughts without a signature": (ASK, calling(2, "a", thought=Reasoning("hm")), result(3, "a")),
    "broken arguments": (ASK, Message(2, "assistant", "", (ToolCall("a", "read_file", '{"path": '),)), result(3, "a")),
    "the answer stands last": (ASK, Message(2, "assistant", "It is written ")),
}


def anthropic(body: dict[str, Any]) -> None:
    """platform.claude.com: Messages API, "Tool use" and "Errors"."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles[0] == "user" and roles[-1] == "user"
    assert all(a != b for a, b in itertools.pairwise(roles)), "roles alternate"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        assert blocks and all(block["type"] != "text" or block["text"].strip() for block in blocks)
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(answers) == sorted(open_calls), "all results of a round in the very next message"
        assert [b["type"] == "tool_result" for b in blocks[: len(answers)]] == [True] * len(answers), (
            "results come first"
        )
        assert all(block.get("content") for block in blocks if block["type"] == "tool_result")
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not seen & set(open_calls) and len(set(open_calls)) == len(open_calls)
        assert all(
            len(id) <= 64 and id.replace("_", "").replace("-", "").isalnum() and id.isascii() for id in open_calls
        )
        assert all(isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use")
        assert all(block.get("signature") for block in blocks if block["type"] == "thinking")
        seen |= set(open_calls)
    assert not open_calls
    assert json.dumps(body).count('"cache_control"') <= 4


def gemini(body: dict[str, Any]) -> None:
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
        waiting = sum("function_call" in part or "functionCall" in part for part in content["parts"])
    assert not waiting


def openai(body: dict[str, Any]) -> None:
    """platform.openai.com: the API reference of chat completions."""
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert message["content"]
            continue
        assert not waiting, "every call is answered at once"
        assert message.get("content") or message.get("tool_calls")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        assert all(len(id) <= 40 for id in waiting)
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in message.get("tool_calls") or ())
        assert not {"reasoning_content", "thinking_blocks", "cache_control"} & set(message)
    assert not waiting


def mistral(body: dict[str, Any]) -> None:
    """docs.mistral.ai: "Function calling", and the refusals of its API: nine letters or digits an id, no user behind results."""
    openai(body)
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    assert roles[0] == "user" and roles[-1] in {"user", "tool"}
    assert ("tool", "user") not in set(itertools.pairwise(roles))
    for message in body["messages"]:
        assert all(len(c["id"]) == 9 and c["id"].isalnum() for c in message.get("tool_calls") or ())


def cohere(body: dict[str, Any]) -> None:
    """docs.cohere.com: the API reference of chat v2, whose messages have OpenAI's form."""
    assert body["messages"][-1]["role"] in {"user", "tool"}
    openai(body)


WIRES = {
    "anthropic/claude-sonnet-4-5": anthropic,
    "gemini/gemini-2.5-pro": gemini,
    "openai/gpt-4o": openai,
    "mistral/mistral-large-latest": mistral,
    "cohere_chat/command-a-03-2025": cohere,
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", WIRES)
async def test_a_strict_provider_takes_it(worker: Worker, name: str, history: str) -> None:
    messages = (Message(0, "system", "Be brief."), *HISTORIES[history])
    async with ModelDouble([says("ok")]) as double:
        base = double.base_url if name.startswith(("openai/", "mistral/")) else double.root
        base += "/v2/chat" if name.startswith("cohere") else ""
        settings = ModelSettings(name=name, api_base=base, api_key_env="KEY", timeout=5)
        model = LitellmModel(settings, worker, lambda variable: "key")
        with suppress(ModelError):  # Cohere's own stream is not played; what it was sent is looked at
            await listen(model, ModelRequest(view_of(*messages)))
    WIRES[name](double.requests[0].body)
