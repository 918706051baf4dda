"""A message that says nothing beside its calls: null, or an empty text for servers that want one, which is learned once."""

from __future__ import annotations

from typing import Any

import pytest

from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.ports import ModelRequest
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, says
from tests.doubles.requests import listen, view_of
from tests.models.served import Way, model_at

pytestmark = pytest.mark.asyncio(loop_scope="session")

CALLED = Message(2, "assistant", "", (ToolCall("a", "read_file", '{"path": "a"}'),))
REQUEST = ModelRequest(view_of(Message(1, "user", "look"), CALLED, Message(3, "tool", "A", call_id="a")))
WORDS = {
    "missing": "Failed to deserialize the JSON body: messages[1]: missing field `content`",
    "null": "messages.1.content: Input should be a valid string, got null",
    "type": "Invalid type for 'messages[1].content': expected a string",
}


@pytest.mark.parametrize("words", WORDS)
async def test_a_server_that_wants_a_text_is_refused_one_once(way: Way, words: str) -> None:
    def strict(body: dict[str, Any]) -> Reply:
        fine = all(isinstance(message.get("content"), str | list) for message in body["messages"])
        return (
            says("ok") if fine else Reply(status=400, error={"message": WORDS[words], "type": "invalid_request_error"})
        )

    async with ModelDouble(strict) as double:
        model = model_at(double, way)
        assert [(await listen(model, REQUEST)).text for _ in range(2)] == ["ok", "ok"]
    contents = [seen.body["messages"][1].get("content") for seen in double.requests]
    assert contents == [None, "", ""]


async def test_another_refusal_is_not_asked_again(way: Way) -> None:
    def wrong(body: dict[str, Any]) -> Reply:
        return Reply(status=400, error={"message": "temperature must be 1", "type": "invalid_request_error"})

    async with ModelDouble(wrong) as double:
        with pytest.raises(Exception, match="temperature"):
            await listen(model_at(double, way), REQUEST)
    assert len(double.requests) == 1
