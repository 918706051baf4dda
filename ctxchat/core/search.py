"""What can be asked of everything ever said, and what comes back: values that storage, screens and commands share."""

from __future__ import annotations

from typing import Literal

import msgspec

NEWEST = "last"
"""In place of a compaction's id: the newest one in force of the session a message belongs to."""


class Scope(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where to look; empty fields leave nothing out.

    `session` is a full id. `role` `tool` means tool results only. `tool` is a tool's name: what it was called with, and its
    results. `before` and `after` name a compaction (or NEWEST): what was said before it was made, or since; a session
    without it has nothing before it and everything after. `recall` is how the agent asks of its own session: what it looked
    up earlier and the question it is answering now are left out, and messages that hold only some of the words are welcome.
    `since` and `until` are ISO times in UTC, the first taken in, the second not. `file` is part of a path that a message names.
    `folder`: only sessions begun there; `other` is the full id of one that is left out.
    """

    session: str = ""
    role: Literal["", "system", "user", "assistant", "tool"] = ""
    tool: str = ""
    before: str = ""
    after: str = ""
    recall: bool = False
    since: str = ""
    until: str = ""
    file: str = ""
    folder: str = ""
    other: str = ""


class Hit(msgspec.Struct, frozen=True):
    """One message found. `tokens` is what bringing it back would cost (an estimate), `compaction` the one that folded it, empty
    while it is in view; `group` and `turn` say where it stands; `tool` names the tool of a call or a result. `passage` is the
    text around what was found, in lines as they were; `whole` says that it is all of the message. `alike` are ids of older
    messages that say nearly the same. `note`: it is a note for the model, which no person said."""

    session: str
    message: str
    role: str
    snippet: str
    tokens: int
    compaction: str
    turn: int
    at: str
    group: str
    title: str
    tool: str = ""
    passage: str = ""
    whole: bool = True
    alike: tuple[str, ...] = ()
    note: bool = False


FILTERS = "who:me, who:agent, tool:shell, since:3d, since:2026-11-01, until:2026-12, file:src/app.py"
"""What may stand among the words of a query."""


def incomplete(indexed: float) -> str:
    """What a search says while the index holds only this share of all messages; empty where it holds all."""
    if indexed >= 1:
        return ""
    return f"The search index is being made: {int(100 * indexed)} % of all messages so far, the newest first."
