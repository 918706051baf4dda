"""What every format is read into: the steps of a conversation, in the order in which they happened.

A format says who said what and what the agent did to its context; `records` makes a journal of it. Knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from ctxchat.core.events import Usage
from ctxchat.core.messages import Message


class Begin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session begins; all that follows belongs to it until the next one does. `id` is the other agent's own, `parent` that of
    the session it came from, `delegated` where an agent began it for a task."""

    id: str
    parent: str = ""
    delegated: bool = False


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something about the session: empty where it says nothing. A title of a higher `rank` wins, then the later one."""

    title: str = ""
    rank: int = 0
    folder: str = ""
    parent: str = ""


class Said(msgspec.Struct, frozen=True):
    """A message, its `seq` still 0. `key` is what others of these steps name it by; an assistant's piece with the key of the
    reply before it belongs to that reply. A `note` is what the agent's program put in, a `summary` one whose originals are
    elsewhere."""

    key: str
    message: Message
    kind: Literal["", "note", "summary"] = ""


class Counted(msgspec.Struct, frozen=True):
    """What the server counted for the newest reply."""

    model: str
    usage: Usage


class Compacted(msgspec.Struct, frozen=True, omit_defaults=True):
    """A summary stands from here on for everything in view, but for what is kept: the messages with the keys `kept`, or all from
    `kept_from` on. `before` and `after` in tokens, 0 where nobody said. Without a `summary` only the agent's server has it."""

    summary: str
    at: str = ""
    manual: bool = False
    kept: frozenset[str] = frozenset()
    kept_from: str = ""
    before: int = 0
    after: int = 0
    model: str = ""


class Cleared(msgspec.Struct, frozen=True, omit_defaults=True):
    """The results of these calls, by their ids, were taken out of view; `text` stands in their place."""

    calls: frozenset[str]
    at: str = ""
    text: str = "[Old tool result content cleared]"


class Back(msgspec.Struct, frozen=True, omit_defaults=True):
    """The conversation goes on after the message `to` (empty: from its beginning); what came after that is another branch."""

    to: str
    at: str = ""


class Damaged(msgspec.Struct, frozen=True):
    """A line, or a file of several, that cannot be read."""

    where: str
    why: str


class NoPlace(msgspec.Struct, frozen=True):
    """Something that a session of ctxchat has no place for, by its kind."""

    what: str


Step = Begin | About | Said | Counted | Compacted | Cleared | Back | Damaged | NoPlace

Steps = Iterator[Step]
