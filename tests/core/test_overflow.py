"""An overflow is told from what only looks like one: on real messages in every wrapping, by the rules, and on anything at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.errors import ModelError
from ctxchat.core.overflow import denials, is_context_overflow, overflow_code, sizes, stated_window, wordings
from ctxchat.core.overflow.wordings import Wordings
from tests.examples import examples

HERE = Path(__file__).parent
Said = tuple[str, int, str, str]


def data(name: str, part: str) -> list[Any]:
    return json.loads((HERE / f"overflow_{name}.json").read_text())[part]


class ApiError(Exception):
    """Shaped like an SDK's: `status_code`, `body`, `message`, a response."""

    def __init__(self, text: str, status: int = 0, body: object = None) -> None:
        super().__init__(text)
        self.message = text
        self.status_code = status or None
        self.body = body
        self.response = SimpleNamespace(status_code=status or None, text=json.dumps(body, default=str), headers={})


def caused(error: BaseException) -> BaseException:
    outer = RuntimeError("the call failed")
    outer.__cause__ = error
    return outer


def wrappings(said: Said) -> Iterator[tuple[str, object]]:
    """One message in the shapes it comes in."""
    _, status, code, text = said
    if not status and not code:
        yield from (
            ("text", text),
            ("bytes", text.encode()),
            ("exception", Exception(text)),
            ("cause", caused(Exception(text))),
        )
        return
    error = {"message": text, "type": code or "invalid_request_error", "code": code or None, "param": None}
    body: dict[str, object] = {"error": error} | ({"status": status} if status else {})
    prefix = f"Error code: {status} - " if status else ""
    yield "body", body
    yield "json", json.dumps(body, ensure_ascii=status % 2 == 0)
    yield "sdk", ApiError(f"{prefix}{ {'error': error} }", status, error)
    yield "wrapped", caused(ApiError(f"{prefix}{ {'error': error} }", status, error))
    yield "gateway", {"error": {"message": json.dumps(body), "code": status or None}}
    yield (
        "model error",
        ModelError(text, "Some hint.", kind="bad_request", status=status, code=code, body=json.dumps(body)),
    )
    yield "stream", f"event: error\ndata: {json.dumps(body)}\n\n"


def by_turns(rows: list[Said]) -> Iterator[tuple[str, object, Said]]:
    """Each message in its plainest shape and in one other, these by turns: a shape that is not seen through fails for many
    messages, a wording that is not known in each of its shapes. All of them for all took a tenth of the suite's time."""
    for place, said in enumerate(rows):
        first, *others = wrappings(said)
        for shape, error in (first, others[place % len(others)]):
            yield shape, error, said


@pytest.mark.parametrize("name", ["messages", "held_out", "gathered"])
@pytest.mark.parametrize(("part", "expected"), [("overflows", True), ("others", False)])
def test_what_servers_said(name: str, part: str, expected: bool) -> None:
    wrong = [
        (shape, said) for shape, error, said in by_turns(data(name, part)) if is_context_overflow(error) is not expected
    ]
    assert not wrong, f"{len(wrong)} wrong: {wrong[:5]}"


@pytest.mark.parametrize(
    ("name", "part", "expected"),
    [("paraphrases", "overflows", True), ("paraphrases", "others", False)],
)
def test_other_ways_to_say_it(name: str, part: str, expected: bool) -> None:
    rows = [("made up", 400, "", text) for text in data(name, part)]
    wrong = [(shape, said[3]) for shape, error, said in by_turns(rows) if is_context_overflow(error) is not expected]
    wrong += [("text", row[3]) for row in rows if is_context_overflow(row[3]) is not expected]
    assert not wrong, f"{len(wrong)} wrong: {wrong[:5]}"


def test_what_was_gathered_last_tells_what_to_expect() -> None:
    """Nothing was mended for these: they may be missed now and then, where the others may not."""
    found = [is_context_overflow(error) for said in data("unseen", "overflows") for _, error in wrappings(said)]
    taken = [is_context_overflow(error) for said in data("unseen", "others") for _, error in wrappings(said)]
    assert sum(found) >= 0.95 * len(found)
    assert sum(found) >= 0.99 * (sum(found) + sum(taken))


def test_what_was_made_up_to_mislead() -> None:
    assert not [
        said for said in data("messages", "misleading") for _, error in wrappings(said) if is_context_overflow(error)
    ]


# ── the rules ──


@pytest.mark.parametrize(
    "error", [ApiError("", 413), {"status": 413}, "Request Entity Too Large", {"type": "request_too_large"}]
)
def test_a_body_too_large_counts_unless_our_count_speaks_against_it(error: object) -> None:
    assert is_context_overflow(error)
    assert is_context_overflow(error, estimated_tokens=50_000, window=100_000)
    assert not is_context_overflow(error, estimated_tokens=49_999, window=100_000)
    assert is_context_overflow(error, estimated_tokens=49_999), "without a window there is nothing to compare"


@pytest.mark.parametrize(
    "error",
    [
        ApiError("", 400),
        ApiError("Error code: 400", 400),
        ApiError("Bad Request", 400, {"error": {"message": "Bad Request"}}),
        ApiError("Client error '400 Bad Request' for url 'http://127.0.0.1/v1/chat/completions'", 400),
        "400 status code (no body)",
        {"status": 400},
        ModelError("Bad Request", kind="bad_request", status=400),
    ],
)
def test_a_refusal_without_a_reason_counts_where_our_count_makes_it_likely(error: object) -> None:
    assert not is_context_overflow(error)
    assert is_context_overflow(error, estimated_tokens=50_000, window=100_000)
    assert not is_context_overflow(error, estimated_tokens=49_999, window=100_000)


def test_a_reason_is_no_bare_refusal() -> None:
    error = ApiError("temperature must be below 2", 400)
    assert not is_context_overflow(error, estimated_tokens=99_000, window=100_000)


def test_plain_words_need_no_count() -> None:
    error = ApiError("Request body too large for gpt-4o model. Max size: 8000 tokens.", 413)
    assert is_context_overflow(error, estimated_tokens=9_000, window=128_000)
    assert stated_window(error) == 8000


@pytest.mark.parametrize(
    "reply",
    [
        {"usage": {"prompt_tokens": 210_000, "completion_tokens": 20}},
        {"usage": {"input_tokens": 10, "cache_read_input_tokens": 209_000, "output_tokens": 20}},
        {"usageMetadata": {}, "usage": {"total_tokens": 201_000, "prompt_tokens": 199_000}},
        SimpleNamespace(usage=SimpleNamespace(prompt_tokens=210_000, completion_tokens=20, total_tokens=210_020)),
        {"usage": {"prompt_tokens": 200_000, "completion_tokens": 0}},
    ],
)
def test_a_reply_that_used_more_than_there_is(reply: object) -> None:
    assert is_context_overflow(reply, window=200_000)
    assert not is_context_overflow(reply, window=400_000)
    assert not is_context_overflow(reply)


def test_what_a_model_says_is_no_evidence() -> None:
    said = "prompt is too long: 9001 tokens > 8192 maximum"
    reply = {
        "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9},
    }
    chunk = {"choices": [{"delta": {"content": said}}]}
    anthropic = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": said}],
        "stop_reason": "end_turn",
    }
    for words in (reply, chunk, anthropic, json.dumps(reply)):
        assert not is_context_overflow(words, window=8192)
    assert is_context_overflow(anthropic | {"stop_reason": "model_context_window_exceeded"})
    assert is_context_overflow({"choices": [{"error": {"message": said, "code": 400}, "finish_reason": "error"}]})


def test_what_was_sent_is_no_evidence() -> None:
    echoed = {
        "detail": [
            {
                "type": "missing",
                "loc": ["body", "model"],
                "msg": "Wrong",
                "input": {"prompt": "context length exceeded"},
            }
        ]
    }
    assert not is_context_overflow(echoed)
    assert not is_context_overflow(
        ModelError("An empty reply.", "The prompt may be too long for the context.", kind="empty")
    )


def test_a_code_beats_what_stands_beside_it() -> None:
    """A server writes its own code for this one purpose; words may mention max_tokens, and a gateway's 429 is its own."""
    assert is_context_overflow({"error": {"code": "context_length_exceeded", "message": "Lower max_tokens to 4096."}})
    assert is_context_overflow(ApiError("slow down", 429, {"code": "context_length_exceeded"}))
    assert is_context_overflow({"error": {"code": 1261, "message": "参数错误"}})


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        ("context_length_exceeded", "slow down", True),
        ("context_length_exceeded", "Too many tokens in the prompt", True),
        ("context_length_exceeded", "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 30000", False),
        ("context_length_exceeded", "You exceeded your current quota", False),
        ("exceed_context_size_error", "", True),
        ("1261", "Prompt exceeds max length", True),
        ("rate_limit_exceeded", "the context length is exceeded", False),
        ("invalid_request_error", "context_length_exceeded", False),
    ],
)
def test_one_decision_on_a_code_whatever_the_status(code: str, words: str, expected: bool) -> None:
    assert overflow_code(code, words) is expected
    for status in (400, 429):
        if expected or status == 429:
            assert is_context_overflow(ApiError(words, status, {"code": code, "message": words})) is expected


def test_more_than_the_window_that_is_named_is_too_much_in_any_words() -> None:
    assert is_context_overflow("Prompt tokens: 9001; context window: 8192.")
    assert not is_context_overflow("Prompt tokens: 5001; context window: 8192.")


@pytest.mark.parametrize(
    "text",
    [
        "<html><body><h1>400 Bad Request</h1><p>prompt&nbsp;is too <b>long</b>: 9001 tokens &gt; 8192 maximum</p></body></html>",
        "\x1b[31mError:\x1b[0m prompt \x1b[1mis too long\x1b[0m: 9001 tokens > 8192 maximum",
        "prompt is too long: 9001 tokens > 8192 maximum (request id: 20250429413401429)",
        "PROMPT IS TOO LONG: 9001 TOKENS > 8192 MAXIMUM",
        json.dumps(json.dumps({"error": json.dumps({"message": "prompt is too long"})})),
    ],
)
def test_dressing_is_looked_through(text: str) -> None:
    assert is_context_overflow(text)


def test_words_do_not_beat_a_denial() -> None:
    said = "The prompt is too long: 9001 tokens > 8192 maximum"
    assert is_context_overflow(ApiError(said, 400))
    for status in (401, 402, 403, 408, 429):
        assert not is_context_overflow(ApiError(said, status))
    assert is_context_overflow(ApiError(said, 404)), "a 404 is none of them: what was not found is said in words"
    assert not is_context_overflow(ApiError("The model `gpt-9` does not exist. The prompt is too long.", 404))
    for kind in ("rate_limit", "quota", "auth", "content_filter", "timeout"):
        assert not is_context_overflow(ModelError(said, kind=kind, status=400))
    assert not is_context_overflow({"error": {"type": "rate_limit_error", "message": said}})
    assert not is_context_overflow(f"429 {said}")
    assert is_context_overflow(f"429 tokens over: {said}"), "a number is no status"


def test_each_pattern_stands_with_a_message_it_finds() -> None:
    tables = [found for module in (wordings, denials) for found in vars(module).values() if isinstance(found, Wordings)]
    assert len(tables) > 15
    for table in tables:
        for pattern, message in table.met:
            assert re.search(pattern, message, re.I), (pattern, message)
    for pattern, message in (*sizes.WINDOWS, *sizes.PROMPTS, *sizes.INPUTS):
        assert pattern.search(message), (pattern, message)


def test_a_remedy_that_asks_for_a_longer_answer_speaks_of_the_answer() -> None:
    cut = "Model token limit (4096) exceeded. Increase the `max_tokens` setting, or simplify the prompt."
    assert not is_context_overflow(cut)
    assert is_context_overflow("Prompt token limit (4096) exceeded. Increase max_input_tokens.")


@given(st.sampled_from(data("messages", "overflows")), st.sampled_from(data("messages", "others")))
@examples(50, 200)
def test_a_denial_in_words_wins_over_words(overflow: Said, other: Said) -> None:
    """Of an overflow's words and a rate limit's in one text, the second decides; a code is no word."""
    text = f"{overflow[3]}\nRate limit reached: 30000 tokens per minute.\n{other[3]}"
    assert not is_context_overflow(text) or "code" in overflow[3].lower()


@pytest.mark.parametrize(
    "unit",
    ["input ", "prompt is ", "\\", "{", "[{", '{"a":', "1 + ", "输入", "exceeds ", "max_tokens ", "\n", "'message': "],
)
def test_a_megabyte_is_only_read_at_its_ends(unit: str) -> None:
    long = unit * (1_000_000 // len(unit))
    assert not is_context_overflow(f"nothing {long}"[:1_000_000].replace("exceeds", "has"))
    assert is_context_overflow(f"prompt is too long: 9001 tokens > 8192 maximum\n{long}")
    assert is_context_overflow({"error": {"message": f"{long}\nprompt is too long: 9001 tokens > 8192 maximum"}})
