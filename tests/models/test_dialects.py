"""Every family gets what its documentation asks for, whatever the conversation: strict validators over generated histories."""

from __future__ import annotations

import copy
import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.openai import wire
from ctxchat.models import dialects
from ctxchat.models.dialects import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    LOCAL,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    OPENROUTER_CLAUDE,
    THINKS_ALOUD,
    Dialect,
    family,
    mark,
    may_think,
    shape,
)
from tests.doubles.requests import view_of
from tests.examples import examples

ALL = [OPENAI, ANTHROPIC, MISTRAL, GEMINI, DEEPSEEK, THINKS_ALOUD, LOCAL, OPENROUTER, OPENROUTER_CLAUDE]

words = st.sampled_from(["hello", " ", "", "two\nlines  ", "日本"])
ids = st.sampled_from(["call_1", "call_1", "toolu_01AbC", "weird id/§", "x" * 80, "abcdefghi", ""])
SIGNED = '[{"type":"thinking","thinking":"hm","signature":"s"}]'
DETAILED = '[{"type":"reasoning.text","text":"hm","signature":"s"}]'
thoughts = st.sampled_from([None, Reasoning("hm"), Reasoning("hm", SIGNED), Reasoning("hm", DETAILED)])


@st.composite
def rounds(draw) -> list[Message]:
    calls = tuple(ToolCall(id, "read", "{}") for id in draw(st.lists(ids, min_size=1, max_size=3)))
    head = Message(1, "assistant", draw(words), calls, reasoning=draw(thoughts))
    return [head, *(Message(1, "tool", draw(words), call_id=c.id) for c in calls)]


groups = st.one_of(
    words.map(lambda w: [Message(1, "user", w)]),
    st.builds(lambda w, t: [Message(1, "assistant", w, reasoning=t)], words, thoughts),
    rounds(),
)


@st.composite
def conversations(draw) -> list[Message]:
    """What a view may hold: a system prompt perhaps, then groups in any order."""
    messages = [Message(0, "system", "Be brief.")] if draw(st.booleans()) else []
    for group in draw(st.lists(groups, min_size=1, max_size=8)):
        messages += group
    return messages


def histories() -> st.SearchStrategy[list[dict[str, Any]]]:
    """The same on the wire."""
    return conversations().map(lambda messages: wire(view_of(*messages).items))


def empty(content: object) -> bool:
    if isinstance(content, list):
        return not content or any(p["type"] == "text" and not p["text"].strip() for p in content)
    return not str(content or "").strip()


def check_common(messages: list[dict[str, Any]], dialect: Dialect) -> None:
    used: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message["role"]
        assert role != "system" or place == 0
        assert not empty(message["content"]) or message.get("tool_calls")
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0), "results follow their calls, in order"
        else:
            assert not waiting, "every call is answered before anything else is said"
            waiting = [call["id"] for call in message.get("tool_calls", [])]
            if not dialect.keep_ids:
                for id in waiting:
                    assert id not in used and re.fullmatch(dialect.id_pattern, id)
                    assert len(id) == dialect.id_length if dialect.id_length else len(id) <= dialect.id_max
                used |= set(waiting)
    assert not waiting


@examples(37, 150)
@given(histories(), st.sampled_from(ALL), st.booleans())
def test_what_everybody_asks_for(history: list[dict[str, Any]], dialect: Dialect, keep: bool) -> None:
    before = copy.deepcopy(history)
    shaped = shape(history, dialect, keep_reasoning=keep)
    assert history == before
    check_common(shaped, dialect)
    goes = {dialect.reasoning} if keep or dialect.always_thinks else set()
    foreign = {"thinking_blocks", "reasoning_content", "reasoning_details"} - goes
    assert not any(foreign & set(message) for message in shaped)
    assert "reasoning." not in str(shaped) or dialect.reasoning == "reasoning_details", "another provider's blocks"
    assert "thinking'" not in str(shaped) or dialect.reasoning == "thinking_blocks", "another provider's blocks"
    if dialect.always_thinks:
        assert all(message["reasoning_content"] for message in shaped if message["role"] == "assistant")
    if shaped and shaped[-1]["role"] == "assistant":
        content = shaped[-1]["content"]
        assert not isinstance(content, str) or content == content.rstrip(), "Anthropic: no white space at the end"
    assert shape(history, dialect, keep_reasoning=keep) == shaped, "the same prefix gives the same bytes"


@examples(37, 150)
@given(histories(), st.sampled_from([ANTHROPIC, MISTRAL, GEMINI, LOCAL]))
def test_strict_alternation(history: list[dict[str, Any]], dialect: Dialect) -> None:
    shaped = [m for m in shape(history, dialect) if m["role"] != "system"]
    sides = ["user" if m["role"] in {"user", "tool"} else "assistant" for m in shaped]
    if not shaped:
        return
    assert shaped[0]["role"] == "user" and sides[-1] == "user"
    for (before, first), (after, second) in itertools.pairwise(zip(shaped, sides, strict=True)):
        if first == second == "user":
            assert (before["role"], after["role"]) in {("tool", "tool"), ("tool", "user")}
            assert after["role"] == "tool" or dialect.user_after_tool, "Mistral: an assistant message follows results"
        else:
            assert first != second


@given(histories())
def test_nothing_that_was_said_is_lost(history: list[dict[str, Any]]) -> None:
    for dialect in ALL:
        said = str([m["content"] for m in shape(history, dialect)])
        assert all(word in said for word in ("hello", "日本") if word in str([m["content"] for m in history]))


def test_marks_stand_on_the_system_prompt_and_the_last_message() -> None:
    history = wire(
        view_of(
            Message(0, "system", "S"), Message(1, "user", "a"), Message(2, "assistant", "b"), Message(3, "user", "c")
        ).items
    )
    marked = mark(history)
    assert [("cache_control" in str(m)) for m in marked] == [True, False, False, True]
    assert marked[3]["content"] == [{"type": "text", "text": "c", "cache_control": {"type": "ephemeral"}}]
    assert "cache_control" in str(shape(marked, ANTHROPIC)) and "cache_control" not in str(shape(marked, OPENAI))
    assert mark([]) == []


def test_thinking_goes_on_only_with_signed_thoughts() -> None:
    call = (ToolCall("c", "read", "{}"),)
    ask, result = Message(1, "user", "q"), Message(3, "tool", "r", call_id="c")
    signed = wire(view_of(ask, Message(2, "assistant", "", call, reasoning=Reasoning("hm", SIGNED)), result).items)
    plain = wire(view_of(ask, Message(2, "assistant", "", call), result).items)
    later = wire(view_of(ask, Message(2, "assistant", "", call), result, Message(4, "assistant", "done"), ask).items)
    assert (may_think(signed), may_think(plain), may_think(later)) == (True, False, True)


@pytest.mark.parametrize(
    ("prefix", "model", "own", "expected"),
    [
        ("anthropic", "claude-sonnet-4-5", False, ANTHROPIC),
        ("bedrock", "us.anthropic.claude-sonnet-4-5", False, ANTHROPIC),
        ("vertex_ai", "gemini-2.5-pro", False, GEMINI),
        ("mistral", "mistral-large-latest", False, MISTRAL),
        ("ollama_chat", "devstral", True, MISTRAL),
        ("openai", "gpt-5", False, OPENAI),
        ("openai", "qwen3", True, LOCAL),
        ("openrouter", "anthropic/claude-sonnet-4.5", False, OPENROUTER_CLAUDE),
        ("openrouter", "qwen/qwen3-coder", False, OPENROUTER),
        ("openrouter", "mistralai/devstral-2", False, MISTRAL),
        ("deepseek", "deepseek-reasoner", False, DEEPSEEK),
        ("moonshot", "kimi-k2.6", False, DEEPSEEK),
        ("openai", "kimi-k2-thinking", True, THINKS_ALOUD),
    ],
)
def test_families(prefix: str, model: str, own: bool, expected: Dialect) -> None:
    assert family(prefix, model, own_server=own) is expected


def test_ids_are_made_the_same_way_every_time() -> None:
    history = wire(
        view_of(
            Message(1, "user", "q"),
            Message(2, "assistant", "", (ToolCall("a b", "r", "{}"),)),
            Message(3, "tool", "x", call_id="a b"),
        ).items
    )
    first, second = (
        dialects.shape(history, MISTRAL),
        dialects.shape([*history, {"role": "user", "content": "more"}], MISTRAL),
    )
    assert first[1]["tool_calls"] == second[1]["tool_calls"]
