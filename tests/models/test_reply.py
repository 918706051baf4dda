"""Streams of odd servers, piece by piece: think tags cut anywhere, calls by index and by id, usage that makes no sense."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import ReasoningDelta, TextDelta
from ctxchat.core.usage import dollars
from ctxchat.models.reply import ReplyBuilder, ThinkSplitter, usage_from


def split(text: str, cuts: list[int]) -> tuple[str, str]:
    splitter, pieces, start = ThinkSplitter(), [], 0
    for cut in [*sorted(c % (len(text) + 1) for c in cuts), len(text)]:
        pieces += splitter.feed(text[start:cut])
        start = cut
    pieces += splitter.flush()
    thought = "".join(p.text for p in pieces if isinstance(p, ReasoningDelta))
    return thought, "".join(p.text for p in pieces if isinstance(p, TextDelta))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a < b</think>\n\nAnswer", ("a < b", "Answer")),
        ("\n<thinking>plan</thinking>Answer", ("plan", "Answer")),
        ("<think></think>Answer", ("", "Answer")),
        ("<think>never ends </thi", ("never ends </thi", "")),
        ("Write <think> to think </think>.", ("", "Write <think> to think </think>.")),
        ("<thin ice", ("", "<thin ice")),
        ("  indented", ("", "  indented")),
    ],
)
@given(cuts=st.lists(st.integers(0, 60), max_size=12))
def test_thoughts_are_told_apart_wherever_the_stream_is_cut(
    text: str, expected: tuple[str, str], cuts: list[int]
) -> None:
    assert split(text, cuts) == expected


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_an_answer_without_tags_comes_through_unchanged(text: str, cuts: list[int]) -> None:
    if not text.lstrip().startswith("<think") and text.strip():
        assert split(text, cuts) == ("", text)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": finish, "delta": {"content": None, "tool_calls": None, **delta}}]}


def fragment(index: int | None, arguments: str = "", name: str | None = None, id: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


def built(*fragments: dict[str, Any]) -> list[tuple[str, str, str]]:
    reply = ReplyBuilder()
    for part in fragments:
        reply.feed(chunk(tool_calls=[part]))
    reply.feed(chunk("stop"))
    end = reply.end(None)
    assert end.finish == "tool_calls"
    return [(c.id, c.name, c.arguments) for c in end.calls]


def test_fragments_are_joined_by_index() -> None:
    parts = (
        fragment(0, "", "read", "a"),
        fragment(1, "", "list", "b"),
        fragment(0, '{"x"'),
        fragment(1, "{}"),
        fragment(0, ":1}"),
    )
    assert built(*parts) == [("a", "read", '{"x":1}'), ("b", "list", "{}")]


def test_servers_that_number_every_call_nought() -> None:
    assert built(fragment(0, "{}", "read", "a"), fragment(0, "{}", "list", "b")) == [
        ("a", "read", "{}"),
        ("b", "list", "{}"),
    ]


def test_servers_that_repeat_id_and_name() -> None:
    assert built(fragment(0, "{", "read", "a"), fragment(0, "}", "read", "a")) == [("a", "read", "{}")]


def test_calls_of_one_id_get_ids_of_their_own() -> None:
    ids = [id for id, *_ in built(*(fragment(index, "{}", "read", "same") for index in range(3)))]
    assert ids[0] == "same" and len(set(ids)) == 3


def test_a_call_without_an_id_gets_one() -> None:
    [(id, name, _)] = built(fragment(None, "{}", "read"))
    assert id.startswith("call_") and name == "read"


def test_redacted_and_unsigned_thoughts() -> None:
    reply = ReplyBuilder()
    reply.feed(chunk(thinking_blocks=[{"type": "redacted_thinking", "data": "xyz"}]))
    reply.feed(chunk(thinking_blocks=[{"type": "thinking", "thinking": "ab"}], reasoning_content="ab"))
    reply.feed(chunk(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "s"}]))
    reply.feed(chunk(thinking_blocks=[{"type": "thinking", "thinking": "unsigned"}], reasoning_content="unsigned"))
    received = reply.end(None).received
    assert received is not None and received.form == "messages"
    assert (
        received.blocks
        == '[{"type":"redacted_thinking","data":"xyz"},{"type":"thinking","thinking":"ab","signature":"s"}]'
    )


def test_usage_counts_the_cached_part_once() -> None:
    inside = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}}
    beside = {"prompt_tokens": 20, "completion_tokens": 5, "cache_read_input_tokens": 80}
    for raw in (inside, beside):
        usage = usage_from(raw, counted=True)
        assert usage is not None and (usage.prompt, usage.cached, usage.estimated) == (100, 80, False)


@pytest.mark.parametrize(
    "prompt", [None, 0, -5, float("nan"), float("inf"), "12", True, 10**9 + 1, 2**63, 10**400, 1e300]
)
def test_senseless_usage_is_none(prompt: object) -> None:
    assert usage_from({"prompt_tokens": prompt, "completion_tokens": 3}, counted=True) is None
    assert usage_from({}, counted=True) is None


WRITES: list[tuple[str, dict[str, object], int, int]] = [
    ("OpenAI, OpenRouter", {"prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 60}}, 60, 0),
    (
        "Anthropic",
        {
            "cache_creation_input_tokens": 60,
            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 40},
        },
        *(60, 40),
    ),
    ("Anthropic, by life only", {"cache_creation": {"ephemeral_1h_input_tokens": 40}}, 40, 40),
    ("Anthropic, before lives", {"cache_creation_input_tokens": 60, "cache_creation": None}, 60, 0),
    (
        "Qwen",
        {
            "prompt_tokens_details": {
                "cache_creation_input_tokens": 60,
                "cache_creation": {"ephemeral_5m_input_tokens": 60},
            }
        },
        *(60, 0),
    ),
    (
        "litellm",
        {
            "cache_creation_input_tokens": 60,
            "prompt_tokens_details": {
                "cache_creation_tokens": 60,
                "cache_creation_token_details": {"ephemeral_1h_input_tokens": 40},
            },
        },
        *(60, 40),
    ),
    ("more than there is", {"cache_creation_input_tokens": 900, "cache_read_input_tokens": 80}, 20, 0),
    ("nonsense", {"prompt_tokens_details": {"cache_write_tokens": "many"}, "cache_creation": [3]}, 0, 0),
]


@pytest.mark.parametrize(("more", "written", "long"), [w[1:] for w in WRITES], ids=[w[0] for w in WRITES])
def test_what_went_into_the_cache(more: dict[str, object], written: int, long: int) -> None:
    usage = usage_from({"prompt_tokens": 100, "completion_tokens": 3, **more}, counted=True)
    assert usage is not None and (usage.written, usage.written_long) == (written, long)


@given(st.integers() | st.floats())
def test_any_figures_make_a_usage_that_can_be_stored(figure: float) -> None:
    details = {"cached_tokens": figure, "cache_write_tokens": figure, "reasoning_tokens": figure}
    raw = {"prompt_tokens": 7, "completion_tokens": figure}
    raw |= {"prompt_tokens_details": details, "completion_tokens_details": details}
    usage = usage_from(raw, counted=True, cost_usd=dollars(figure) or 0.0)
    assert usage is not None and 0 <= usage.cost_usd <= 1e6
    assert all(0 <= n <= 2 * 10**9 for n in (usage.prompt, usage.completion, usage.cached, usage.written))


def test_thoughts_that_are_no_text_are_left_out() -> None:
    assert ReplyBuilder().feed(chunk(reasoning_content={"a": 1})) == []
