"""The values of a search over all messages of all sessions: where to look (`Scope`), and what was found (`Hit`). Storage, screens
and commands share them."""

from __future__ import annotations

from typing import Literal

import msgspec

NEWEST = "last"
"""Stands for a compaction's id in a scope: the newest compaction in force, of whichever session a message belongs to."""


class Scope(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which messages to search; an empty field restricts nothing.

    `session` is a full id, `other` that of a session to leave out, `folder` the folder in which sessions were begun. `role`
    `tool` means tool results only. `tool` is a tool's name: its calls and its results. `file` is a part of a path that a message
    names. `since` (inclusive) and `until` (exclusive) are ISO times in UTC. `before` and `after` are a compaction's id or NEWEST:
    only messages from before it was made, or since; a session without this compaction counts as after. `recall`: the agent
    searches its own session, so its earlier searches and the present question are left out, and messages with only some of the
    words count.
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
    """A message that was found.

    `message` is its id, `group` the id of its group, `turn` the number of its turn, `title` its session's title. `snippet` is a
    line with the words found, `passage` the lines around them; `whole`: that is all of the message. `tokens` is an estimate of
    what putting it back into the view would take. `compaction` is the id of the one that folded it, empty while it is in view.
    `tool` is the tool of a call or a result. `alike` are the ids of older messages that say nearly the same. `note`: it is a note
    that the program wrote for the model.
    """

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
"""Examples of the filters that a query can hold, for help texts."""


def incomplete(indexed: float) -> str:
    """A sentence for the person while the index holds only the share `indexed` of all messages; empty once it holds all."""
    if indexed >= 1:
        return ""
    return f"The search index is being made: {int(100 * indexed)} % of all messages so far, the newest first."
