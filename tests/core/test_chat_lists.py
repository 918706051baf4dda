"""Plain lists in and out: what other programs' loops stand on."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.core import ImportProblem, Message, Shortened, Summary, compact, from_json, originals, to_json, to_wire
from tests.core import histories

SYSTEM = {"role": "system", "content": "You are helpful."}


def turn(number: int, lines: int = 150) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
    return [
        {"role": "user", "content": f"question {number}: never restart at night {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call], "x_mine": number},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"line of the log {number}\n" * lines},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def conversation(turns: int) -> list[dict[str, Any]]:
    return [SYSTEM, *(message for number in range(turns) for message in turn(number))]


def paired(messages: list[Mapping[str, Any]]) -> bool:
    """Every result answers a call of the message before its batch, and every call is answered."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        else:
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return not waiting


def test_under_the_trigger_the_messages_are_those_given() -> None:
    messages = conversation(3)
    assert compact(messages, window=32_000) == messages


def test_a_loop_that_goes_on_stays_within_its_window_and_loses_nothing() -> None:
    asked: list[list[dict[str, Any]]] = []

    def summarise(request: list[dict[str, Any]]) -> str:
        asked.append(request)
        return f"## Goal\nPass {len(asked)}."

    record: list[Mapping[str, Any]] = [SYSTEM]
    messages: list[Mapping[str, Any]] = [SYSTEM]
    for number in range(30):
        record += turn(number)
        messages = compact([*messages, *turn(number)], window=16_000, reserved=1000, summarise=summarise)
        assert len(json.dumps(messages)) < 3 * 15_000
        assert originals(messages) == record
        assert paired(messages)
    summaries = [m for m in messages if isinstance(m, Summary)]
    assert len(summaries) == 1 < len(asked)
    assert f"Pass {len(asked)}." in summaries[0]["content"]
    assert "never restart at night 0" in summaries[0]["content"]
    assert "Pass 1." in asked[1][1]["content"]  # the record so far goes into the next one
    assert "recalled" not in summaries[0]["content"]  # there is no tool for it here


def test_without_a_model_code_keeps_what_was_said() -> None:
    messages = compact(conversation(12), window=16_000, reserved=1000)
    assert [m["role"] for m in messages[:2]] == ["system", "user"]
    assert "question 0: never restart at night 0" in messages[1]["content"]
    assert any(m.get("x_mine") == 11 for m in messages)


def test_what_a_summariser_raises_reaches_the_caller() -> None:
    def refuse(request: list[dict[str, Any]]) -> str:
        raise ConnectionError

    messages = conversation(12)
    with pytest.raises(ConnectionError):
        compact(messages, window=16_000, reserved=1000, summarise=refuse)
    assert messages == conversation(12)


def test_tools_count_and_a_pass_can_be_asked_for() -> None:
    messages = conversation(6)
    schema = {"type": "function", "function": {"name": "big", "description": "words " * 4000, "parameters": {}}}
    assert compact(messages, window=16_000) == messages
    assert compact(messages, window=16_000, tools=[schema]) != messages
    assert compact(messages, window=16_000, trigger=0, target=0.1, keep_recent=4) != messages


def test_what_is_no_message_is_named() -> None:
    with pytest.raises(ImportProblem, match="message 1: role 'wizard'"):
        compact([{"role": "wizard", "content": "hi"}], window=1000)


@pytest.mark.filterwarnings("ignore:about")
@settings(max_examples=25)
@given(history=histories.messages(), keep=st.integers(0, 6))
def test_any_history_is_given_back(history: list[Message], keep: int) -> None:
    given_ = [to_wire(m) for m in sorted(history, key=lambda m: m.seq)]
    once = compact(given_, window=200, reserved=0, trigger=0, target=0, keep_recent=keep)
    twice = compact(once, window=200, reserved=0, trigger=0, target=0, keep_recent=keep)
    for messages in (once, twice):
        for now in (messages, from_json(to_json(messages))):
            assert sorted(map(repr, originals(now))) == sorted(map(repr, given_))


@pytest.mark.parametrize("keep", [0, 12])
def test_calls_that_wait_for_their_results_are_left_to_them(keep: int) -> None:
    messages: list[dict[str, Any]] = [SYSTEM]
    record, compactions = [SYSTEM], 0
    for number in range(60):
        asked, called, result, answer = turn(number, lines=20)
        second = {**called["tool_calls"][0], "id": f"d{number}"}
        called["tool_calls"].append(second)
        for message in (asked, called, result, {**result, "tool_call_id": f"d{number}"}, answer):
            before = [*messages, message]
            messages = compact(before, window=4_000, reserved=500, keep_recent=keep)
            record.append(message)
            assert originals(messages) == originals(from_json(to_json(messages))) == record
            if message in (called, result):
                compactions += len(messages) < len(before)
                assert messages[-1] is message
    assert compactions > 1
    assert paired(messages)


def test_it_loads_no_adapter() -> None:
    heavy = ("asyncio", "sqlite3", "textual", "rich", "litellm", "tiktoken", "httpx", "click", "ctxchat.agent")
    code = f"import sys\nfrom ctxchat.core import compact\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SMALL: dict[str, Any] = {"window": 16_000, "reserved": 1000}


class CountedText:
    """Counts tokens, and how many characters it was given."""

    def __init__(self) -> None:
        self.characters = 0

    def __call__(self, text: str) -> int:
        self.characters += len(text)
        return len(text) // 3 + 1


def test_a_pass_counts_what_is_new_however_much_went_before() -> None:
    costs: list[int] = []
    count = CountedText()
    messages: list[dict[str, Any]] = [SYSTEM]
    for number in range(60):
        before, known = count.characters, sum(isinstance(m, Summary) for m in messages)
        messages = compact([*messages, *turn(number)], **SMALL, count=count)
        if known and [m for m in messages if isinstance(m, Summary) and len(m.originals) > 20]:
            costs.append(count.characters - before)
    assert max(costs[-20:]) < 2 * max(costs[:20])
    assert originals(messages) == conversation(60)


def calls_of_a_compaction(size: int, summarise: Callable[[list[Any]], str] | None) -> int:
    """Calls of Python functions that one makes where the list stands for so many messages."""
    messages: list[dict[str, Any]] = [SYSTEM]
    for number in range(size // 4):
        messages += turn(number)
        if number % 50 == 49:
            messages = compact(messages, window=16_000, summarise=summarise)
    messages += [m for number in range(size // 4, size // 4 + 50) for m in turn(number)]
    called = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(see)
    try:
        after = compact(messages, window=16_000, summarise=summarise)
    finally:
        sys.setprofile(None)
    assert len(after) < len(messages)
    return called


@pytest.mark.parametrize("by_model", [False, True])
def test_a_compaction_does_no_more_however_much_its_summary_stands_for(by_model: bool) -> None:
    number = itertools.count()
    summarise = (lambda request: f"Goal {next(number)}: keep the service well.") if by_model else None
    assert calls_of_a_compaction(8_000, summarise) < 1.1 * calls_of_a_compaction(2_000, summarise)


def test_a_summariser_that_says_the_same_again_is_not_asked_of_everything_again() -> None:
    asked: list[str] = []

    def ask(request: list[Any]) -> str:
        asked.append(request[1]["content"])
        return "Nothing new."

    messages: list[dict[str, Any]] = [SYSTEM]
    for number in range(60):
        messages = compact([*messages, *turn(number)], **SMALL, summarise=ask)
    assert len(asked) > 4 and max(map(len, asked[2:])) < 1.5 * len(asked[1])


def test_a_long_message_is_cut_once_however_often_it_is_folded() -> None:
    costs: list[int] = []
    count = CountedText()
    messages: list[dict[str, Any]] = [SYSTEM]
    for number in range(800):
        before, known = count.characters, len(messages)
        said = f"message {number}. " + "Words about things. Never restart at night. " * 10
        messages = compact([*messages, {"role": "user", "content": said}], **SMALL, count=count)
        if len(messages) <= known:
            costs.append(count.characters - before)
    assert len(costs) > 8 and costs[-1] < 2 * costs[2]


def test_a_list_from_json_is_gone_on_with_as_if_it_had_never_left() -> None:
    asked: list[str] = []

    def summarise(request: list[Any]) -> str:
        asked.append(request[1]["content"])
        return f"Summary {len(asked)}."

    there: list[dict[str, Any]] = [SYSTEM]
    stored: list[dict[str, Any]] = [SYSTEM]
    for number in range(14):
        there = compact([*there, *turn(number)], **SMALL, summarise=lambda _: "A summary.")
        stored = from_json(to_json(compact([*stored, *turn(number)], **SMALL, summarise=lambda _: "A summary.")))
    assert stored == there
    assert originals(stored) == originals(there) == conversation(14)
    again = compact([*stored, *turn(14), *turn(15), *turn(16)], **SMALL, trigger=0, summarise=summarise)
    assert "question 0" not in asked[0].split("<stays>")[0]  # a model has read it, and it is not read again
    assert "Summary 1." in again[1]["content"]
    for text in ("nonsense", "{}", "3", '[{"role": "user", "content": "", "ctxchat": 7}]'):
        with pytest.raises(ImportProblem):
            from_json(text)


@pytest.mark.parametrize("reply", ["", "  \n", None])
def test_where_a_summariser_returns_nothing_code_stands_in_and_says_so(reply: str | None) -> None:
    silent = compact(conversation(12), **SMALL, summarise=lambda _: reply)
    assert "The summariser returned nothing" in silent[1]["content"]
    assert "question 0: never restart at night 0" in silent[1]["content"]
    asked: list[str] = []

    def summarise(request: list[Any]) -> str:
        asked.append(request[1]["content"])
        return "Read."

    for messages in (silent, from_json(to_json(silent))):
        later = compact([*messages, *turn(12)], **SMALL, trigger=0, summarise=summarise)
        assert "question 0" in asked[-1].split("<stays>")[0]  # no model has read it yet
        assert "returned nothing" not in later[1]["content"]


def test_what_a_model_has_not_read_is_known_beside_what_it_has() -> None:
    asked: list[str] = []

    def summarise(request: list[Any]) -> str:
        asked.append(request[1]["content"].split("<stays>")[0])
        return f"Summary {len(asked)}."

    one = compact(conversation(12), **SMALL, summarise=summarise)
    folded = len(next(m for m in one if isinstance(m, Summary)).originals)
    two = compact([*one, *(m for n in range(12, 20) for m in turn(n))], **SMALL, summarise=lambda _: "")
    (summary,) = (m for m in two if isinstance(m, Summary))
    assert "Summary 1." in summary["content"]
    assert summary.unread == tuple(range(folded, len(summary.originals)))
    for messages in (two, from_json(to_json(two))):
        compact([*messages, *turn(20)], **SMALL, trigger=0, summarise=summarise)
        assert "question 0:" not in asked[-1]
        assert f"question {folded // 4 + 1}:" in asked[-1]


def test_the_text_names_no_tool_that_the_caller_has_not() -> None:
    for summarise in (None, lambda _: "The goal."):
        record = [SYSTEM, *(m for number in range(200) for m in turn(number, lines=4))]
        messages = compact(record, **SMALL, summarise=summarise)
        assert "left out here." in messages[1]["content"]
        assert "recall" not in messages[1]["content"]


def test_a_tool_of_the_callers_is_none_of_ours() -> None:
    call = {"id": "m", "type": "function", "function": {"name": "memo", "arguments": '{"name": "a", "text": "noted"}'}}
    noted = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "m", "content": "ok"},
    ]
    messages = compact([*conversation(2), *noted, *conversation(12)[1:]], **SMALL)
    assert isinstance(messages[1], Summary) and "memos" not in messages[1]["content"]


def test_a_result_larger_than_the_window_is_shortened_and_kept_whole() -> None:
    huge = turn(7, lines=3_000)
    for before in ([], conversation(12)):
        messages = compact([*before, *huge[:3]], **SMALL)
        result = messages[-1]
        assert isinstance(result, Shortened)
        assert len(result["content"]) < 20_000
        assert "tokens left out" in result["content"]
        assert originals(messages) == [*before, *huge[:3]]
        assert originals(from_json(to_json(messages))) == [*before, *huge[:3]]
        assert paired(messages)
        folded = compact([*messages, *(m for n in range(20, 32) for m in turn(n))], **SMALL)
        assert originals(folded)[: len(before) + 3] == [*before, *huge[:3]]


@pytest.mark.parametrize("reply", [3, b"text", {"content": "x"}, ["x"]])
def test_a_reply_that_is_no_text_is_named(reply: Any) -> None:
    with pytest.raises(TypeError, match=f"summarise returned {type(reply).__name__}"):
        compact(conversation(12), **SMALL, summarise=lambda _: reply)


def test_where_all_must_stay_and_is_too_much_it_is_said() -> None:
    with pytest.warns(UserWarning, match="more than the window"):
        compact([{"role": "user", "content": "word " * 20_000}], window=8000)


class Dumped:
    """A message as an SDK has it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        return {name: value for name, value in self.fields.items() if value is not None or not exclude_none}


def test_objects_of_an_sdk_are_taken_and_given_back() -> None:
    given_ = [Dumped(**m, refusal=None) for m in conversation(12)]
    messages = compact(given_, **SMALL)
    assert len(messages) < len(given_)
    assert messages[-1] is given_[-1]
    assert originals(messages) == given_
    assert [m["role"] for m in originals(from_json(to_json(messages)))] == [m["role"] for m in conversation(12)]


@pytest.mark.parametrize(
    "messages",
    [None, 3, "text", {"role": "user"}, [None], [7], ["text"], [object()], [Dumped], [{}], [{"role": ["user"]}],
     [{"role": "user", "content": 7}], [{"role": "user", "content": {"text": "x"}}], [{"role": "user", "content": [object()]}],
     [{"role": "assistant", "tool_calls": 7}], [{"role": "assistant", "tool_calls": [{"function": {"arguments": object()}}]}]],
)  # fmt: skip
def test_wrong_input_of_any_kind_is_one_error(messages: Any) -> None:
    with pytest.raises(ImportProblem):
        compact(messages, window=1000)


@pytest.mark.parametrize(
    "tool",
    [
        None,
        7,
        "x",
        {"function": 7},
        {"function": {"parameters": 7}},
        {"parameters": []},
        {"parameters": {"x": object()}},
    ],
)
def test_wrong_tools_are_named(tool: Any) -> None:
    with pytest.raises(ImportProblem, match="tool 1"):
        compact([SYSTEM], window=1000, tools=[tool])
    with pytest.raises(ImportProblem, match="tools are a"):
        compact([SYSTEM], window=1000, tools=tool)


@pytest.mark.parametrize("tokens", [None, "7", [], -1, float("nan"), float("inf")])
def test_a_count_that_is_no_number_is_named_with_the_text(tokens: Any) -> None:
    with pytest.raises(TypeError, match=r"count returned .* for the text '\w.*how many tokens"):
        compact(conversation(3), window=1000, count=lambda text: tokens)


@pytest.mark.parametrize(
    "sizes",
    [{"window": 9, "count": 3}, {"window": 9, "summarise": 3}, {"window": 9, "reserved": float("nan")},
     {"window": float("inf")}, {"window": 0}, {"window": -5}, {"window": 9, "trigger": 0.3, "target": 0.5},
     {"window": 9, "trigger": 1.5},
     {"window": 9, "target": -1}, {"window": 9, "reserved": -1}, {"window": 9, "keep_recent": -1},
     {"window": "9"}, {"window": None}, {"window": 9, "trigger": "0.3"}, {"window": 9, "keep_recent": None}],
)  # fmt: skip
def test_senseless_sizes_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"window|trigger|reserved|target|keep_recent|count|summarise"):
        compact([SYSTEM], **sizes)


def test_a_list_that_was_changed_by_hand_is_read_anew() -> None:
    messages = compact(conversation(12), **SMALL)
    (summary,) = (m for m in messages if isinstance(m, Summary))
    alone = compact([SYSTEM, copy.deepcopy(summary)], **SMALL, trigger=0, keep_recent=0)
    assert originals(alone)[1:] == list(summary.originals)
    other = [{"role": "system", "content": "Another prompt."}, summary, *(m for n in range(20, 32) for m in turn(n))]
    assert originals(compact(other, **SMALL))[1 : len(summary.originals) + 1] == list(summary.originals)
