"""Draws the agent's to-do list: one line for each item, with a sign for its status."""

from __future__ import annotations

import msgspec
from textual.content import Content

from ctxchat.presentation.text import one_line
from ctxchat.tools.todo import Todo, TodoArguments, TodoItem
from ctxchat.tui.style import MUTED

_SIGNS = {"done": ("✓", "$text-success"), "in_progress": ("▸", "$text-accent"), "pending": ("○", MUTED)}


def items_of(tool: str, arguments: object) -> tuple[TodoItem, ...] | None:
    """The list that a call of the to-do tool writes; None for any other call, and for one the tool could not read."""
    if tool != Todo.name:
        return None
    try:
        return tuple(msgspec.convert(arguments, TodoArguments).items)
    except msgspec.ValidationError:
        return None


def item_line(item: TodoItem, max_chars: int) -> Content:
    """The line of an item, cut after `max_chars` characters: `✓ find the gauge`."""
    sign, style = _SIGNS[item.status]
    return Content.assemble(
        (f"{sign} ", style), (one_line(item.text, max_chars), MUTED if item.status == "done" else "")
    )
