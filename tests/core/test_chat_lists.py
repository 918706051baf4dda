"""Plain lists in and out: what other programs' loops stand on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.core import Message, Summary, compact, originals, to_wire
from ctxchat.core.openai import ImportProblem
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


def talk(turns: int) -> list[dict[str, Any]]:
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
    messages = talk(3)
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
    messages = compact(talk(12), window=16_000, reserved=1000)
    assert [m["role"] for m in messages[:2]] == ["system", "user"]
    assert "question 0: never restart at night 0" in messages[1]["content"]
    assert any(m.get("x_mine") == 11 for m in messages)


def test_what_a_summariser_raises_reaches_the_caller() -> None:
    def refuse(request: list[dict[str, Any]]) -> str:
        raise ConnectionError

    messages = talk(12)
    with pytest.raises(ConnectionError):
        compact(messages, window=16_000, reserved=1000, summarise=refuse)
    assert messages == talk(12)


def test_tools_count_and_a_pass_can_be_asked_for() -> None:
    messages = talk(6)
    schema = {"type": "function", "function": {"name": "big", "description": "words " * 4000, "parameters": {}}}
    assert compact(messages, window=16_000) == messages
    assert compact(messages, window=16_000, tools=[schema]) != messages
    assert compact(messages, window=16_000, trigger=0, target=0.1, keep_recent=4) != messages


def test_what_is_no_message_is_named() -> None:
    with pytest.raises(ImportProblem, match="message 1: role 'wizard'"):
        compact([{"role": "wizard", "content": "hi"}], window=1000)


@settings(max_examples=25)
@given(history=histories.messages(), keep=st.integers(0, 6))
def test_any_history_is_given_back(history: list[Message], keep: int) -> None:
    given_ = [to_wire(m) for m in sorted(history, key=lambda m: m.seq)]
    once = compact(given_, window=200, reserved=0, trigger=0, target=0, keep_recent=keep)
    twice = compact(once, window=200, reserved=0, trigger=0, target=0, keep_recent=keep)
    for messages in (once, twice):
        there = [m for m in originals(messages) if m in given_]
        assert sorted(map(repr, there)) == sorted(map(repr, given_))


def test_it_loads_no_adapter() -> None:
    heavy = ("asyncio", "sqlite3", "textual", "rich", "litellm", "tiktoken", "httpx", "click", "ctxchat.agent")
    code = f"import sys\nfrom ctxchat.core import compact\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
