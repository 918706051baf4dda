"""Compilers: functions that choose which entries of a ledger a model is shown, and in which order. Those that take a compiler and
return one (`limited`, `redacted`) can be combined.

A ledger holds all groups of messages ever, and the changes in force; an entry is a group as these changes show it. The
conversation has three sections, always in this order: `summary` (what stands for compacted groups), `buffer` (quotations that
were put back) and `messages` (all others). Knows no budget.
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
"""A function from a ledger to the entries to show. It never splits an entry."""

ConversationSection = Literal["summary", "buffer", "messages"]

IN_ORDER: tuple[ConversationSection, ...] = get_args(ConversationSection)
"""The sections of the conversation, in order."""


def section_of_entry(entry: Entry) -> ConversationSection:
    """The section of the conversation that an entry is in."""
    if entry.kind == "digest" or (entry.group and entry.group.kind == "summary"):
        return "summary"
    if entry.group and entry.group.kind == "note" and entry.group.source.startswith("buffer:"):
        return "buffer"
    return "messages"


def all_sections(ledger: Ledger) -> tuple[Entry, ...]:
    """The compiler that shows all live entries: summary, buffer, messages."""
    return selected_sections(*IN_ORDER)(ledger)


def selected_sections(*names: ConversationSection) -> Compiler:
    """A compiler that shows only these sections, in the fixed order."""

    def compiler(ledger: Ledger) -> tuple[Entry, ...]:
        live = ledger.live()
        return tuple(e for name in IN_ORDER if name in names for e in live if section_of_entry(e) == name)

    return compiler


def current_tool_trace(ledger: Ledger) -> tuple[Entry, ...]:
    """The compiler that shows tool calls and results of the current turn only. Of earlier turns the texts are shown, and pinned
    rounds."""
    turn = ledger.turn
    shown: list[Entry] = []
    for entry in all_sections(ledger):
        group = entry.group
        if group and group.kind == "round" and group.turn < turn and not entry.pinned:
            text_only = msgspec.structs.replace(group.first, calls=(), reasoning=None)
            if text_only.empty:
                continue
            group = msgspec.structs.replace(group, kind="reply", messages=(text_only,))
            entry = msgspec.structs.replace(entry, group=group)
        shown.append(entry)
    return tuple(shown)


def limited(compiler: Compiler, tokens: int, counter: TokenCounter) -> Compiler:
    """A compiler that shows of another one's entries the newest that fit into `tokens` raw tokens, but at least the last.

    Summaries, pinned entries and what the user said in the current turn are always shown.
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
    """A compiler that shows another one's entries with a mark in place of every match of `pattern` in texts and arguments. Parts,
    reasoning and blocks that cannot be edited are left out where they hold a match."""

    def clean_part(part: Part) -> Part:
        match part:
            case Text(text=text, name=name):
                return Text(pattern.sub(mark, text), pattern.sub(mark, name))
            case Image(url=url, name=name) if pattern.search(name if url.startswith("data:") else f"{url} {name}"):
                return Text(mark)
            case Opaque(json=json) if pattern.search(json):
                return Text(mark)  # the content of such a part is not known
            case _:
                return part

    def clean(message: Message) -> Message:
        parts = message.content
        content = pattern.sub(mark, parts) if isinstance(parts, str) else tuple(clean_part(part) for part in parts)
        calls = tuple(msgspec.structs.replace(c, arguments=pattern.sub(mark, c.arguments)) for c in message.calls)
        reasoning = message.reasoning
        blocks = reasoning.received.blocks if reasoning and reasoning.received else ""
        if reasoning and pattern.search(reasoning.text + reasoning.blocks + blocks):
            reasoning = None  # editing a signed block would make its signature invalid
        return msgspec.structs.replace(message, content=content, calls=calls, reasoning=reasoning)

    def compile_redacted(ledger: Ledger) -> tuple[Entry, ...]:
        return tuple(_with_messages(entry, clean) for entry in compiler(ledger))

    return compile_redacted


def _with_messages(entry: Entry, clean: Callable[[Message], Message]) -> Entry:
    """The entry with `clean` applied to each of its messages."""
    if entry.group is None:
        return entry
    group = msgspec.structs.replace(entry.group, messages=tuple(clean(m) for m in entry.group.messages))
    return msgspec.structs.replace(entry, group=group)
