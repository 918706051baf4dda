"""What really goes over the wire, behind litellm: difficult histories against validators of each provider's documented rules."""

from __future__ import annotations

import json

import pytest

from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.ports import ModelRequest
from tests.doubles.replies import says
from tests.doubles.requests import listen, view_of
from tests.doubles.rules import RULES
from tests.models.served import FAMILIES, Way, model_at, served

pytestmark = pytest.mark.asyncio(loop_scope="session")


def calling(seq: int, *ids: str, text: str = "", thought: Reasoning | None = None) -> Message:
    calls = tuple(ToolCall(id, "read_file", json.dumps({"path": f"{place}.txt"})) for place, id in enumerate(ids))
    return Message(seq, "assistant", text, calls, reasoning=thought)


def result(seq: int, id: str, text: str = "found") -> Message:
    return Message(seq, "tool", text, call_id=id, name="read_file")


ELSEWHERE = (
    '[{"type": "reasoning.encrypted", "data": "c2ln"}, {"type": "thinking", "thinking": "hm", "signature": "s"}]'
)
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
    "thoughts another provider signed": (ASK, calling(2, "a", thought=Reasoning("hm", ELSEWHERE)), result(3, "a")),
    "broken arguments": (ASK, Message(2, "assistant", "", (ToolCall("a", "read_file", '{"path": '),)), result(3, "a")),
    "the answer stands last": (ASK, Message(2, "assistant", "It is written ")),
}


ALIKE = {"azure", "groq", "xai", "lm_studio", "moonshot"}
"""What is sent to these is made as for OpenAI, vLLM and DeepSeek."""


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("family", sorted({*FAMILIES} - ALIKE))
async def test_a_strict_provider_takes_it(way: Way, family: str, history: str) -> None:
    messages = (Message(0, "system", "Be brief."), *HISTORIES[history])
    async with served(family, [says("ok")]) as double:
        await listen(model_at(double, way, family), ModelRequest(view_of(*messages)))
    RULES[family](double.requests[0].body)
