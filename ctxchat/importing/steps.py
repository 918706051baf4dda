"""Defines the steps of an imported conversation: messages and what the agent did to its context, in the order of time.

The modules of the formats produce steps; `journal_records` makes a journal of them. This module knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from ctxchat.core.events import Usage
from ctxchat.core.messages import Message


class Begin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The beginning of a session, to which all steps up to the next `Begin` belong. `id` is the other agent's id for it, `parent`
    that of the session it came from; `delegated` where an agent began it for a task."""

    id: str
    parent: str = ""
    delegated: bool = False


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """Properties of the session; empty ones are unknown. The title with the highest `rank` counts, of several the last."""

    title: str = ""
    rank: int = 0
    folder: str = ""
    parent: str = ""


class Said(msgspec.Struct, frozen=True):
    """A message; its `seq` is not given yet. Other steps refer to it by its `key`; assistant messages with the same key are
    pieces of one reply. The `kind` is `note` for a message that the agent's program inserted and `summary` for a summary whose
    originals are in another file."""

    key: str
    message: Message
    kind: Literal["", "note", "summary"] = ""


class Counted(msgspec.Struct, frozen=True):
    """The tokens that the server counted for the latest reply."""

    model: str
    usage: Usage


class Compacted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction: its summary replaces everything in view, except the messages with the keys `kept`, or all from `kept_from`
    on. `before` and `after` are in tokens, 0 where unknown. `summary` is empty where only the agent's server has it."""

    summary: str
    at: str = ""
    manual: bool = False
    kept: frozenset[str] = frozenset()
    kept_from: str = ""
    before: int = 0
    after: int = 0
    model: str = ""


class Cleared(msgspec.Struct, frozen=True, omit_defaults=True):
    """The removal of results from view: those of the calls with these ids are replaced by `text`."""

    calls: frozenset[str]
    at: str = ""
    text: str = "[Old tool result content cleared]"


class Back(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rewind: the conversation goes on after the message with the key `to` (empty: from its beginning), in a new branch."""

    to: str
    at: str = ""


class Damaged(msgspec.Struct, frozen=True):
    """A line, or a file, that cannot be read: where it is, and why."""

    where: str
    why: str


class NoPlace(msgspec.Struct, frozen=True):
    """Content that a session of ctxchat cannot represent, by its kind."""

    what: str


Step = Begin | About | Said | Counted | Compacted | Cleared | Back | Damaged | NoPlace

Steps = Iterator[Step]
