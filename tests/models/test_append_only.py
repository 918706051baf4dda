"""A conversation that goes on is sent with the bytes it was sent with before, and something at their end: for every family and
every form of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.messages import Image, Message, Text, ToolCall
from ctxchat.core.openai import wire_tools
from ctxchat.core.view import Item
from ctxchat.models.anthropic import AnthropicServer
from ctxchat.models.dialects import ANTHROPIC, RESPONSES, Dialect, shape
from ctxchat.models.litellm_arguments import litellm_arguments
from ctxchat.models.openai_servers import SERVERS, Server
from ctxchat.models.protocol import encode
from ctxchat.models.responses import ResponsesServer
from tests.doubles.requests import READ_FILE, view_of
from tests.doubles.strict.server import pieces
from tests.examples import examples
from tests.models.test_dialects import ALL, NAME, histories

BASE = "http://127.0.0.1:9"
FORMS: dict[str, Any] = {
    "messages": AnthropicServer(BASE),
    "chat": Server(BASE),
    "deepseek": SERVERS["deepseek"],
    "openrouter": SERVERS["openrouter"],
    "responses": ResponsesServer(BASE),
}


def sent(items: Sequence[Item], dialect: Dialect, form: str, lasting: bool) -> bytes:
    """The body of the request."""
    messages = shape(items, dialect, keep_reasoning=True, model=NAME, lasting=lasting)
    arguments = {"model": NAME, "messages": messages, "tools": wire_tools([READ_FILE]), "max_tokens": 10}
    if form == "litellm":
        return encode(litellm_arguments(arguments))
    return FORMS[form].request("m", arguments).body


def boundaries(items: Sequence[Item]) -> list[int]:
    """Where a request may have ended: behind a whole group, and not among messages of the person that were sent together."""
    found: list[int] = []
    for place in range(1, len(items) + 1):
        before, after = items[place - 1], items[place] if place < len(items) else None
        whole = after is None or before.group != after.group
        users = after is not None and before.message.role == after.message.role == "user"
        alone = any(not i.group or i.kind == "summary" for i in (before, after) if i)
        together = users and (alone or (after is not None and before.turn == after.turn))
        # an empty one between them is not sent
        blank = after is not None and (before.message.empty or after.message.empty)
        if whole and not together and not blank and before.group:
            found.append(place)
    return found


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@examples(20, 60)
@given(items=histories(), data=st.data(), lasting=st.booleans())
def test_a_request_begins_with_the_one_before(dialect: Dialect, items: list[Item], data: Any, lasting: bool) -> None:
    check(dialect, items, data.draw(st.sampled_from(forms_of(dialect))), lasting)


def forms_of(dialect: Dialect) -> list[str]:
    """In which forms its messages are sent."""
    if dialect is RESPONSES:
        return ["responses", "litellm"]
    if dialect is ANTHROPIC:
        return ["messages", "litellm"]
    return ["chat", "openrouter", "litellm", *([] if dialect.markers else ["deepseek"])]


def check(dialect: Dialect, items: Sequence[Item], form: str, lasting: bool = False) -> None:
    whole = pieces(sent(items, dialect, form, lasting))
    for end in boundaries(items):
        begun = pieces(sent(items[:end], dialect, form, lasting))
        assert whole[: len(begun)] == begun


CALL = (ToolCall("call_1", "read_file", '{"path": "a"}'),)
ASK, ASK_AGAIN = Message(1, "user", "What?"), Message(2, "user", "And?")
HALF, REST = Message(2, "assistant", "It is ", interrupted=True), Message(4, "assistant", "so.")
ROUND = (Message(2, "assistant", "I look.", CALL), Message(3, "tool", "ok", call_id="call_1"))
SHOWN = Message(3, "tool", (Text("ok"), Image("data:image/png;base64,aGk=", 3, 3)), call_id="call_1")
LIVES: dict[str, list[tuple[int, tuple[Message, ...]]]] = {
    "a question that got no answer": [(1, (ASK,)), (2, (ASK_AGAIN,)), (2, (REST,))],
    "a question behind results that got no answer": [(1, (ASK,)), (1, ROUND), (2, (ASK_AGAIN,)), (2, (REST,))],
    "a reply that was cut off": [(1, (ASK,)), (1, (HALF,)), (1, (ASK_AGAIN,)), (1, (REST,)), (2, (ASK,))],
    "cut off, and gone on with without a word": [(1, (ASK,)), (1, (HALF,)), (1, (REST,)), (2, (ASK,))],
    "a reply that nobody asked for": [(0, (REST,)), (1, (ASK,)), (1, (REST,))],
    "images among results": [(1, (ASK,)), (1, (ROUND[0], SHOWN)), (1, (REST,)), (2, (ASK,))],
}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_what_happens_to_conversations(dialect: Dialect, life: str) -> None:
    items: list[Item] = []
    for place, (turn, messages) in enumerate(LIVES[life]):
        shown = view_of(*messages).items
        items += [msgspec.structs.replace(item, group=f"g{place}", turn=turn) for item in shown]
    assert len(boundaries(items)) > 2
    for form in forms_of(dialect):
        check(dialect, items, form)
