"""The to-do list: written whole, drawn, sent again until it is done, and found again in a record."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from ctxchat.core.errors import ToolError
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.tools.todo import Todo, TodoList, last_list

ITEMS = [{"text": "read\nit", "status": "done"}, {"text": "write", "status": "in_progress"}, {"text": "test"}]


def round_of(items: object, seq: int, result: str = "[ ] x", name: str = "todo") -> Group:
    call = ToolCall("c", name, msgspec.json.encode({"items": items}).decode())
    messages = (Message(seq, "assistant", calls=(call,)), Message(seq + 1, "tool", result, call_id="c", name=name))
    return Group(f"g{seq}", "round", messages, 1)


async def test_a_list_is_replaced_and_answered_briefly(call: Callable) -> None:
    todo = Todo()
    assert (await call(todo, items=ITEMS)).text == "Kept: 1 of 3 done."
    assert (await call(todo, items=[])).text == "The list is empty."
    with pytest.raises(ToolError, match="wrong arguments"):
        await call(todo, items=[{"text": "x", "status": "maybe"}])


async def test_it_is_sent_again_until_all_is_done(call: Callable) -> None:
    todo = Todo()
    provider = TodoList(todo)
    assert await provider.provide() == ""
    await call(todo, items=ITEMS)
    assert (await provider.provide()).endswith("[x] read it\n[>] write\n[ ] test")
    await call(todo, items=[item | {"status": "done"} for item in ITEMS])
    assert await provider.provide() == ""


async def test_a_session_goes_on_with_its_last_list() -> None:
    record = [
        round_of([{"text": "old"}], 1),
        round_of([{"text": "new"}], 3),
        round_of([{"text": "never written"}], 5, "error: wrong arguments"),
        round_of("no list at all", 7),
        round_of([{"text": "another tool"}], 9, name="plan"),
    ]
    todo = Todo()
    todo.resume(record)
    assert [item.text for item in todo.items] == ["new"]
    assert "[ ] new" in await TodoList(todo).provide()
    assert last_list(record[4:]) == ()
