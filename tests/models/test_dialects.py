"""Every family gets what its documentation asks for, whatever the conversation: strict validators over generated histories."""

from __future__ import annotations

import itertools
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.messages import Message, Reasoning, Received, ToolCall
from ctxchat.core.view import Item
from ctxchat.models import dialects
from ctxchat.models.dialects import (
    ANTHROPIC,
    DASHSCOPE,
    DEEPSEEK,
    GEMINI,
    HOSTED,
    LOCAL,
    MINIMAX,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    OPENROUTER_CLAUDE,
    OPENROUTER_MARKED,
    RESPONSES,
    THINKS_ALOUD,
    Dialect,
    family,
    may_think,
    shape,
)
from tests.doubles.requests import view_of
from tests.examples import examples

ALL = [
    *(OPENAI, RESPONSES, ANTHROPIC, MISTRAL, GEMINI, DEEPSEEK, THINKS_ALOUD, DASHSCOPE, MINIMAX, LOCAL, HOSTED),
    *(OPENROUTER, OPENROUTER_MARKED, OPENROUTER_CLAUDE),
]
NAME = "anthropic/claude-fable-5-2"

words = st.sampled_from(["hello", " ", "", "two\nlines  ", "日本"])
ids = st.sampled_from(["call_1", "call_1", "toolu_01AbC", "weird id/§", "x" * 80, "abcdefghi", ""])
SIGNED = '[{"type":"thinking","thinking":"hm","signature":"s"}]'
DETAILED = '[{"type":"reasoning.text","text":"hm","signature":"s"}]'
ALOUD = Received("chat", NAME, '{"reasoning":null}')
DETAILS = Received("chat", NAME, '{"reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}]}')
thoughts = st.sampled_from(
    [
        *(None, Reasoning("hm"), Reasoning("hm", SIGNED), Reasoning("hm", DETAILED)),
        *(Reasoning("hm", received=ALOUD), Reasoning("hm", received=DETAILS)),
    ]
)


def as_it_came(draw: Any, text: str, calls: tuple[ToolCall, ...]) -> Reasoning | None:
    """Thoughts of some kind: beside the reply, or the whole of it as one provider's blocks with thoughts anywhere."""
    form = draw(st.sampled_from(["", "messages", "responses"]))
    if not form:
        return draw(thoughts)
    blocks: list[dict[str, Any]] = []
    for n, call in enumerate(calls):
        input = msgspec.json.decode(call.arguments)
        used = {"type": "tool_use", "id": call.id, "name": call.name, "input": input}
        made = {"type": "function_call", "id": f"fc_{n}", "call_id": call.id, "name": call.name, "arguments": "{}"}
        blocks.append(used if form == "messages" else made)
    if text:
        part = {"type": "output_text", "text": text}
        said = {"type": "message", "role": "assistant", "content": [part], "phase": "commentary"}
        blocks.insert(0, {"type": "text", "text": text} if form == "messages" else said)
    for n in range(draw(st.integers(1, 3))):
        signature = f"s{n}-{draw(st.integers(0, 10**9))}"  # litellm leaves out what it takes for the same thought again
        thought = {"type": "thinking", "thinking": "", "signature": signature}
        item = {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": f"e{n}"}
        at = draw(st.integers(0, max(0, len(blocks) - 1)))
        blocks.insert(at, thought if form == "messages" else item)
    return Reasoning("hm", received=Received(form, NAME, msgspec.json.encode(blocks).decode()))


@st.composite
def rounds(draw) -> list[Message]:
    calls = tuple(ToolCall(id, "read", "{}") for id in draw(st.lists(ids, min_size=1, max_size=3)))
    text = draw(words)
    head = Message(1, "assistant", text, calls, reasoning=as_it_came(draw, text, calls))
    return [head, *(Message(1, "tool", draw(words), call_id=c.id) for c in calls)]


@st.composite
def replies(draw) -> list[Message]:
    text = draw(words)
    return [Message(1, "assistant", text, reasoning=as_it_came(draw, text, ()), interrupted=draw(st.booleans()))]


groups = st.one_of(words.map(lambda w: [Message(1, "user", w)]), replies(), rounds())


@st.composite
def conversations(draw) -> list[Item]:
    """What a view may hold: a head perhaps, then groups in any order, in turns."""
    heads = [
        Message(0, "system", "Be brief."),
        Message(0, "system", "As AGENTS.md says."),
        Message(0, "user", "memory"),
    ]
    items = list(view_of(*heads, injected=3).items) if draw(st.booleans()) else []
    turn = 0
    for place, group in enumerate(draw(st.lists(groups, min_size=1, max_size=8))):
        turn += draw(st.integers(0, 1))
        shown = view_of(*group).items
        kind = draw(st.sampled_from(["user", "note", "summary"])) if group[0].role == "user" else "round"
        items += [msgspec.structs.replace(item, group=f"g{place}", turn=turn, kind=kind) for item in shown]
    return items


def histories() -> st.SearchStrategy[list[Item]]:
    return conversations()


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
def test_what_everybody_asks_for(history: list[Item], dialect: Dialect, keep: bool) -> None:
    shaped = shape(history, dialect, keep_reasoning=keep, model=NAME)
    check_common(shaped, dialect)
    fields = {"blocks": "blocks", "items": "blocks", "as received": "reasoning", "in text": "reasoning"}.get(
        dialect.reasoning, dialect.reasoning
    )
    goes = {fields, *({"thinking_blocks"} if fields == "blocks" else ())} if keep else set()
    goes |= (
        {"reasoning_content"} if dialect.wants_thoughts or dialect.reasoning in {"as received", "in text"} else set()
    )
    goes |= {"reasoning_details"} if keep and dialect.reasoning in {"as received", "in text"} else set()
    foreign = {"thinking_blocks", "reasoning_content", "reasoning_details", "reasoning", "blocks"} - goes
    assert not any(foreign & set(message) for message in shaped)
    if dialect.wants_thoughts:
        assert all(m["reasoning_content"] for m in shaped if m["role"] == "assistant" and m.get("tool_calls"))
        assert not any(m.get("reasoning_content") == " " for m in shaped if not m.get("tool_calls"))
    assert not any(m.get("turn") or m.get("passing") for m in shaped), "nothing of ours"
    assert shape(history, dialect, keep_reasoning=keep, model=NAME) == shaped, "the same prefix gives the same bytes"


@examples(37, 150)
@given(histories(), st.sampled_from([MISTRAL, GEMINI, LOCAL]))
def test_strict_alternation(history: list[Item], dialect: Dialect) -> None:
    shaped = [m for m in shape(history, dialect) if m["role"] != "system"]
    sides = ["user" if m["role"] in {"user", "tool"} else "assistant" for m in shaped]
    if not shaped:
        return
    assert shaped[0]["role"] == "user"
    for (before, first), (after, second) in itertools.pairwise(zip(shaped, sides, strict=True)):
        if first == second == "user":
            assert (before["role"], after["role"]) in {("tool", "tool"), ("tool", "user")}
            assert after["role"] == "tool" or dialect.user_after_tool, "Mistral: an assistant message follows results"
        else:
            assert first != second


@given(histories())
def test_nothing_that_was_said_is_lost(history: list[Item]) -> None:
    for dialect in ALL:
        said = str([m["content"] for m in shape(history, dialect)])
        assert all(word in said for word in ("hello", "日本") if word in str([i.message.content for i in history]))


def marks(messages: list[dict[str, Any]]) -> list[bool]:
    return ["cache_control" in str(message) for message in messages]


def test_marks_stand_on_the_head_the_end_and_where_the_last_two_requests_ended() -> None:
    said = [Message(0, "system", "S"), *(Message(n, ("assistant", "user")[n % 2], f"m{n}") for n in range(1, 8))]
    items = view_of(*said).items
    shaped = shape(items, ANTHROPIC, lasting=False)
    assert marks(shaped) == [True, False, False, True, False, True, False, True]
    assert shaped[-1]["content"] == [{"type": "text", "text": "m7", "cache_control": {"type": "ephemeral"}}]
    assert "1h" in str(shape(items, ANTHROPIC, lasting=True))
    assert not any(marks(shape(items, OPENAI, lasting=True))), "for families that take none"
    assert not any(marks(shape(items, ANTHROPIC)))
    passing = [*items, *view_of(Message(0, "user", "It is Monday."), injected=1).items]
    assert marks(shape(passing, ANTHROPIC, lasting=False))[-2:] == [True, False], "what is not sent again has none"


def test_minimax_gets_its_thoughts_back_where_they_stood() -> None:
    def shaped(came: Received | None) -> dict[str, Any]:
        said = Message(2, "assistant", "done", reasoning=Reasoning("hm", received=came))
        view = view_of(Message(1, "user", "q"), said, Message(3, "user", "and?"))
        return shape(view.items, MINIMAX, keep_reasoning=True)[1]

    assert shaped(None)["content"] == "<think>\nhm\n</think>\n\ndone"
    field = shaped(Received("chat", "minimax/MiniMax-M3", '{"reasoning_content":null}'))
    assert field["content"] == "done" and field["reasoning_content"] == "hm"


def test_thinking_goes_on_only_with_signed_thoughts() -> None:
    call = (ToolCall("c", "read", "{}"),)
    ask, result = Message(1, "user", "q"), Message(3, "tool", "r", call_id="c")

    def shaped(*messages: Message) -> list[dict[str, Any]]:
        return shape(view_of(*messages).items, ANTHROPIC, keep_reasoning=True)

    signed = shaped(ask, Message(2, "assistant", "", call, reasoning=Reasoning("hm", SIGNED)), result)
    plain = shaped(ask, Message(2, "assistant", "", call), result)
    later = shaped(ask, Message(2, "assistant", "", call), result, Message(4, "assistant", "done"), ask)
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
        ("openrouter", "qwen/qwen4-coder", False, OPENROUTER_MARKED),
        ("openrouter", "openai/gpt-6.1-sol", False, OPENROUTER),
        ("zai", "glm-5.3", False, THINKS_ALOUD),
        ("minimax", "MiniMax-M3", False, MINIMAX),
        ("dashscope", "qwen4-max", False, DASHSCOPE),
        ("groq", "openai/gpt-oss-120b", False, OPENAI),
        ("together_ai", "qwen3", False, HOSTED),
        ("openrouter", "mistralai/devstral-2", False, MISTRAL),
        ("deepseek", "deepseek-reasoner", False, DEEPSEEK),
        ("moonshot", "kimi-k2.6", False, DEEPSEEK),
        ("openai", "kimi-k2-thinking", True, THINKS_ALOUD),
    ],
)
def test_families(prefix: str, model: str, own: bool, expected: Dialect) -> None:
    assert family(prefix, model, own_server=own) is expected


def test_ids_are_made_the_same_way_every_time() -> None:
    asked = [
        Message(1, "user", "q"),
        Message(2, "assistant", "", (ToolCall("a b", "r", "{}"),)),
        Message(3, "tool", "x", call_id="a b"),
    ]
    first = dialects.shape(view_of(*asked).items, MISTRAL)
    second = dialects.shape(view_of(*asked, Message(4, "user", "more")).items, MISTRAL)
    assert first[1]["tool_calls"] == second[1]["tool_calls"]
