"""The sections: named parts of the context window, into which the gauge divides it, and which section a message belongs to."""

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
"""All sections, in the order in which the gauge shows them."""

OUTSIDE: frozenset[SectionName] = frozenset({"reserved", "free"})
"""Sections that are not part of the request: what is reserved for the reply, and what is free."""


class Section(msgspec.Struct, frozen=True):
    """A section with its `tokens`. `estimated` is false only where the server counted them. `budget` is the most tokens it should
    hold, by the settings; 0 for no limit."""

    name: SectionName
    tokens: int
    estimated: bool = True
    budget: int = 0

    @property
    def over(self) -> int:
        """Tokens over its budget; 0 where it has none."""
        return max(0, self.tokens - self.budget) if self.budget else 0


def section_of(message: Message, entry: Entry) -> SectionName:
    """The section that a message counts in; `entry` is the live entry of the ledger that shows it."""
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
