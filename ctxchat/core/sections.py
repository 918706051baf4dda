"""The named parts of a window, in the order the gauge shows them, and which part a message belongs to."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from ctxchat.core.ledger import Entry
from ctxchat.core.messages import Message

SectionName = Literal[
    "system",
    "tools",
    "memory",
    "injected",
    "summary",
    "pinned",
    "user",
    "assistant",
    "tool_results",
    "draft",
    "reserved",
    "free",
]

SECTIONS: tuple[SectionName, ...] = get_args(SectionName)
"""Every section once, in the order of the gauge."""

OUTSIDE: frozenset[SectionName] = frozenset({"reserved", "free"})
"""Sections that hold no tokens of the request."""


class Section(msgspec.Struct, frozen=True):
    """One part of the window and its tokens. `estimated` is False only where a server counted it; `budget` is the most it is
    meant to hold, in tokens, 0 for no such limit."""

    name: SectionName
    tokens: int
    estimated: bool = True
    budget: int = 0

    @property
    def over(self) -> int:
        """Tokens beyond its own budget, 0 where it keeps to it or has none."""
        return max(0, self.tokens - self.budget) if self.budget else 0


def section_of(message: Message, entry: Entry) -> SectionName:
    """The section a live message counts under."""
    group = entry.group
    if entry.pinned:
        return "pinned"
    if group and group.kind == "summary":
        return "summary"
    if group and group.kind == "note":
        return "injected"
    match message.role:
        case "system":
            return "system"
        case "user":
            return "user"
        case "assistant":
            return "assistant"
        case "tool":
            return "tool_results"
