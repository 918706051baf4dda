"""Which secrets were masked in a session, and where each was come upon. Pure; holds no secret, only their marks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message, Text
from ctxchat.core.secrets import marks_in, read_mark
from ctxchat.core.view import View
from ctxchat.presentation.text import one_line
from ctxchat.presentation.tool_words import decoded, key_argument


class Masked(msgspec.Struct, frozen=True):
    """A secret by its mark. `places` are where it was met, each once, the first first: a call, a file, who else said it; with the
    message it stands in, where it stands in one."""

    kind: str
    id: str
    places: tuple[str, ...]


def masked_in(ledger: Ledger, view: View) -> tuple[Masked, ...]:
    """All of a session's record, and of what stands around it in the next request, in the order in which they came. Reads the
    whole record: call it off the event loop."""
    found: dict[str, dict[str, None]] = {}
    for text, place in _texts(ledger, view):
        for mark in marks_in(text):
            found.setdefault(mark, {})[place] = None
    return tuple(Masked(*read_mark(mark), tuple(places)) for mark, places in found.items())


def _texts(ledger: Ledger, view: View) -> Iterator[tuple[str, str]]:
    for item in view.items:
        if not item.group:
            yield item.message.text, one_line(item.source, 120) or item.section
    for group in ledger.groups:
        for message in group.messages:
            yield from _masked_in(message, group)
    for item in view.items:  # what the record has as it was is masked in the view only
        if item.message.role == "tool" and ledger.holds(item.group):
            yield from _masked_in(item.message, ledger.group(item.group))


def _masked_in(message: Message, group: Group) -> Iterator[tuple[str, str]]:
    if message.role == "tool":
        call = next((c for m in group.messages for c in m.calls if c.id == message.call_id), None)
        where = f"{call.name} {key_argument(decoded(call.arguments))}".strip() if call else "a tool's result"
        yield message.text, f"{where} ({message.id})"
    elif isinstance(message.content, tuple):
        for part in message.content:
            if isinstance(part, Text):
                yield (
                    part.text,
                    f"{one_line(f'@{part.name}' if part.name else _who(message, group), 120)} ({message.id})",
                )
    else:
        yield message.text, f"{_who(message, group)} ({message.id})"


def _who(message: Message, group: Group) -> str:
    return group.source or {"user": "your message", "assistant": "the answer"}.get(message.role, message.role)
