"""A conversation as Markdown for people. Pure; knows no file."""

from __future__ import annotations

from ctxchat.core.journal import SessionState
from ctxchat.core.messages import Group
from ctxchat.core.quantities import made_smaller
from ctxchat.presentation.history import items
from ctxchat.presentation.text import clean, clock, one_line, short


def as_markdown(state: SessionState) -> str:
    """The record, message by message, with a line where something was compacted."""
    parts = [f"# {one_line(state.title) or 'A conversation'}"]
    for shown in items(state.ledger):
        if shown.group:
            parts += _group(shown.group)
        elif shown.change and shown.change.record:
            record = shown.change.record
            freed = short(record.freed)
            parts.append(
                f"---\n\n*{made_smaller(record.folded_messages, record.shortened)}, {freed} tokens freed*\n\n---"
            )
    return "\n\n".join(parts) + "\n"


def _group(group: Group) -> list[str]:
    parts: list[str] = []
    for message in group.messages:
        text = clean(message.text)
        if message.role == "tool":
            parts.append(f"**{one_line(message.name) or 'tool'}**\n\n{_fenced(text)}")
            continue
        who = {"user": "You", "assistant": "Assistant"}.get(message.role, group.kind.capitalize())
        head = f"## {who}  {clock(message.at)}".rstrip()
        calls = [f"`{one_line(call.name)}({one_line(call.arguments, 400)})`" for call in message.calls]
        parts.append("\n\n".join([head, *([text] if text.strip() else []), *calls]))
    return parts


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
