"""Compilers choose which entries of a ledger a model is shown, and in which order; decorators stack on them.

The conversation has three sections, always in this order: `summary` (what stands for compacted groups), `buffer` (notes and
quotations that were put back) and `messages` (the rest). Reads ledgers, makes entries; knows no budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Image, Message, Opaque, Part, Text
from ctxchat.core.tokens import TokenCounter

Compiler = Callable[[Ledger], tuple[Entry, ...]]
"""A ledger in, the entries to show out. Never splits an entry."""

ConversationSection = Literal["summary", "buffer", "messages"]

IN_ORDER: tuple[ConversationSection, ...] = get_args(ConversationSection)
"""Those of the conversation, in their order."""


def section_of_entry(entry: Entry) -> ConversationSection:
    """Which section of the conversation an entry is in. Notes stay where they were said while their turn is current."""
    if entry.kind == "digest" or (entry.group and entry.group.kind == "summary"):
        return "summary"
    if entry.group and entry.group.kind == "note" and entry.group.source.startswith("buffer:"):
        return "buffer"
    return "messages"


def all_sections(ledger: Ledger) -> tuple[Entry, ...]:
    """Everything live: summary, buffer, messages."""
    return selected_sections(*IN_ORDER)(ledger)


def selected_sections(*names: ConversationSection) -> Compiler:
    """Only these sections, in the fixed order."""

    def compiler(ledger: Ledger) -> tuple[Entry, ...]:
        live = ledger.live()
        return tuple(e for name in IN_ORDER if name in names for e in live if section_of_entry(e) == name)

    return compiler


def current_tool_trace(ledger: Ledger) -> tuple[Entry, ...]:
    """The conversation with the tool rounds of the current turn only; earlier turns keep what was said, not what was run.

    Pinned rounds stay.
    """
    turn = ledger.turn
    shown: list[Entry] = []
    for entry in all_sections(ledger):
        group = entry.group
        if group and group.kind == "round" and group.turn < turn and not entry.pinned:
            said = msgspec.structs.replace(group.first, calls=(), reasoning=None)
            if said.empty:
                continue
            group = msgspec.structs.replace(group, kind="reply", messages=(said,))
            entry = msgspec.structs.replace(entry, group=group)
        shown.append(entry)
    return tuple(shown)


def limited(compiler: Compiler, tokens: int, counter: TokenCounter) -> Compiler:
    """At most `tokens` raw tokens of entries: the newest that fit, whole, never fewer than the last.

    Summaries, pins and what the user said in the current turn stay.
    """

    def compile_limited(ledger: Ledger) -> tuple[Entry, ...]:
        entries = compiler(ledger)
        weights = [sum(counter.message(m) for m in e.group.messages) if e.group else 0 for e in entries]
        current = ledger.current
        stays = [e.pinned or not current.isdisjoint(e.covers) or section_of_entry(e) == "summary" for e in entries]
        left = tokens - sum(w for w, s in zip(weights, stays, strict=True) if s)
        last = max((i for i, s in enumerate(stays) if not s), default=-1)
        kept: set[int] = set()
        for i in range(len(entries) - 1, -1, -1):
            if stays[i]:
                continue
            if i != last and weights[i] > left:
                break
            left -= weights[i]
            kept.add(i)
        return tuple(e for i, e in enumerate(entries) if stays[i] or i in kept)

    return compile_limited


def redacted(compiler: Compiler, pattern: re.Pattern[str], mark: str = "[redacted]") -> Compiler:
    """The same entries with every match in their texts, arguments and reasoning replaced by a mark."""

    def clean_part(part: Part) -> Part:
        match part:
            case Text(text=text, name=name):
                return Text(pattern.sub(mark, text), pattern.sub(mark, name))
            case Image(url=url, name=name) if pattern.search(name if url.startswith("data:") else f"{url} {name}"):
                return Text(mark)
            case Opaque(json=json) if pattern.search(json):
                return Text(mark)  # a part we cannot read can only be left out whole
            case _:
                return part

    def clean(message: Message) -> Message:
        parts = message.content
        content = pattern.sub(mark, parts) if isinstance(parts, str) else tuple(clean_part(part) for part in parts)
        calls = tuple(msgspec.structs.replace(c, arguments=pattern.sub(mark, c.arguments)) for c in message.calls)
        reasoning = message.reasoning
        blocks = reasoning.received.blocks if reasoning and reasoning.received else ""
        if reasoning and pattern.search(reasoning.text + reasoning.blocks + blocks):
            reasoning = None  # a signed block cannot be edited, only left out
        return msgspec.structs.replace(message, content=content, calls=calls, reasoning=reasoning)

    def compile_redacted(ledger: Ledger) -> tuple[Entry, ...]:
        return tuple(_with_messages(entry, clean) for entry in compiler(ledger))

    return compile_redacted


def _with_messages(entry: Entry, clean: Callable[[Message], Message]) -> Entry:
    if entry.group is None:
        return entry
    group = msgspec.structs.replace(entry.group, messages=tuple(clean(m) for m in entry.group.messages))
    return msgspec.structs.replace(entry, group=group)
