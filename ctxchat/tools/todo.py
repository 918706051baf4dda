"""The to-do list: the tool that writes it, and the context provider that sends it again while it is unfinished, with each request
in which it does not stand where it was last written.

So no compaction can blur it: like a memory file it comes from its source. The source is the last list in the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ctxchat.core.messages import Group
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.core.tooluse import failed
from ctxchat.tools.tool import Arguments, Pieces, Tool

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}
_LEAD = "Your to-do list as it stands. It is no new request; keep it true with the todo tool."


class TodoItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    status: Literal["pending", "in_progress", "done"] = "pending"


class TodoArguments(Arguments, frozen=True):
    items: list[TodoItem]


class Todo(Tool[TodoArguments]):
    """The list as last written is `items`."""

    name = "todo"
    about = "Keep the plan of a task of several steps: the whole list each time, one item in_progress."
    arguments = TodoArguments
    reads_only = False

    def __init__(self) -> None:
        super().__init__()
        self.items: tuple[TodoItem, ...] = ()

    def access_needed(self, arguments: TodoArguments, context: ToolContext) -> AccessRequest:
        done = sum(item.status == "done" for item in arguments.items)
        return AccessRequest("none", summary=f"to-do list: {done} of {len(arguments.items)} done")

    async def execute(self, arguments: TodoArguments, context: ToolContext) -> Pieces:
        self.items = tuple(arguments.items)
        done = sum(item.status == "done" for item in self.items)
        yield ToolOutput(f"Kept: {done} of {len(self.items)} done." if self.items else "The list is empty.")

    def resume(self, record: Iterable[Group]) -> None:
        """Go on with the last list in a session's record."""
        self.items = last_list(record)


class TodoList:
    """ContextProvider `todo`: the list of a tool, as long as something on it is open."""

    source_id = "todo"

    def __init__(self, todo: Todo) -> None:
        self._todo = todo

    async def provide(self) -> str:
        """The list with a word of what it is; empty where all is done."""
        items = self._todo.items
        return f"{_LEAD}\n{drawn(items)}" if any(item.status != "done" for item in items) else ""


def drawn(items: Iterable[TodoItem]) -> str:
    """An item a line, with its mark."""
    return "\n".join(f"{_MARKS[item.status]} {' '.join(item.text.split())}" for item in items)


def last_list(record: Iterable[Group]) -> tuple[TodoItem, ...]:
    """The items of the newest call of the tool that it could read; none where there never was one."""
    for group in reversed(tuple(record)):
        for call, result in reversed(list(zip(group.first.calls, group.messages[1:], strict=False))):
            if call.name == Todo.name and not failed(result):
                try:
                    return tuple(msgspec.json.decode(call.arguments, type=TodoArguments).items)
                except (msgspec.DecodeError, UnicodeError, RecursionError):
                    continue  # a result from elsewhere
    return ()
