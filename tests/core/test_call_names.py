"""Whatever a model or a server calls a tool, a request holds a name that every provider takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.call_arguments import plain_name
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.openai import from_wire, wire
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.view import problems
from tests.core.histories import see

TAKEN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
MADE_UP = [
    "read file",
    "rm -rf",
    "ünï",
    "\x1b[2J",
    "",
    "x" * 500,
    "7zip",
    "-",
    "a/b.c:d",
    "\ud800",
    "🧨",
    "read_file\n",
]


@pytest.mark.parametrize("name", MADE_UP)
def test_names_that_models_make_up_fit(name: str) -> None:
    assert TAKEN.fullmatch(plain_name(name))


@given(st.text(st.characters(codec=None)) | st.from_regex(TAKEN, fullmatch=True))
def test_any_name_fits_and_one_that_does_stays(name: str) -> None:
    fitted = plain_name(name)
    assert TAKEN.fullmatch(fitted) and plain_name(fitted) == fitted
    assert fitted == name or not TAKEN.fullmatch(name)


@given(st.lists(st.sampled_from(MADE_UP) | st.text(), min_size=1, max_size=3))
def test_a_record_with_such_names_gives_a_valid_request_and_stays_as_it_was(names: list[str]) -> None:
    called = tuple(ToolCall(f"c{place}", name, "{}") for place, name in enumerate(names))
    results = (Message(3 + place, "tool", "no such tool", call_id=c.id, name=c.name) for place, c in enumerate(called))
    history = [Message(1, "user", "go"), Message(2, "assistant", "", called), *results]
    ledger = Ledger(group_messages(history))
    view = see(ledger, PlanOptions())
    assert problems(view) == []
    sent = [call["function"]["name"] for message in wire(view.items) for call in message.get("tool_calls", [])]
    assert len(sent) == len(names) and all(map(TAKEN.fullmatch, sent))
    assert [c.name for c in ledger.messages()[1].calls] == names, "the record says what the model wrote"


@pytest.mark.parametrize("name", [*MADE_UP, None, 7, {"a": 1}, ["x"]])
def test_imported_calls_of_any_name_are_sent_with_one_that_fits(name: object) -> None:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
    messages = [
        from_wire({"role": "user", "content": "go"}, 1),
        from_wire({"role": "assistant", "tool_calls": [call]}, 2),
    ]
    assert problems(see(Ledger(group_messages(messages)), PlanOptions())) == []
