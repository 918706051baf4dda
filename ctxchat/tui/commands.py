"""The table of actions (`ctxchat.config.keys`) as a person types it: slash commands, and the keys that start them.

A line that begins with a known name, or with what looks like one, never enters the conversation. Knows no widget or app.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from ctxchat.config.keys import ACTIONS, Action

Keys = Mapping[Any, Sequence[str]]
"""Action ids of the key table with the keys in force, in Textual's names."""


COMMANDS: tuple[Action, ...] = tuple(action for action in ACTIONS if action.name)
"""Those that are typed as well, in their order."""

BY_NAME: Mapping[str, Action] = {name: c for c in COMMANDS for name in (c.name, *c.aliases)}

_SLASH = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?\s*", re.DOTALL)


class Invocation(msgspec.Struct, frozen=True):
    """A slash command as typed."""

    command: Action
    argument: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """What looks like a slash command but is none, and the nearest right name (or empty)."""

    name: str
    nearest: str = ""


def parse(text: str) -> Invocation | Unknown | None:
    """The command in a line, or None for a message. A path (`/etc/hosts is broken`) is a message."""
    match = _SLASH.fullmatch(text.strip())
    if match is None:
        return None
    name, argument = match[1].lower(), (match[2] or "").strip()
    if name == "compact" and argument == "now":
        argument = ""
    if command := BY_NAME.get(name):
        return Invocation(command, argument)
    close = [n for n in BY_NAME if n.startswith(name)] or get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    return Unknown(name, BY_NAME[close[0]].name if close else "")


def default_keys() -> dict[str, tuple[str, ...]]:
    """The keys of the key table, where nobody wished for others."""
    return {a.id: a.keys for a in ACTIONS}


def keys_of(command: Action, keys: Keys) -> tuple[str, ...]:
    """The keys that start a command; may be none."""
    return tuple(keys.get(command.id, ()))


def shown_key(key: str) -> str:
    """A key as people write it: F8, ctrl+p, esc."""
    names = {"escape": "esc", "pageup": "page up", "pagedown": "page down", "comma": ",", "enter": "enter"}
    *modifiers, base = key.split("+")
    base = base.upper() if re.fullmatch(r"f\d+", base) else names.get(base, base)
    return "+".join([*modifiers, base])
