"""Slash commands, key bindings and the command palette, made from the table of actions (`ctxchat.config.keys`).

A line that begins with a command, or with something that looks like one, never enters the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from textwrap import wrap
from typing import Any

import msgspec
from textual.binding import Binding
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from ctxchat.config.keys import ACTIONS, Action

Keys = Mapping[Any, Sequence[str]]
"""The keys in force for each action id, by Textual's names."""


COMMANDS: tuple[Action, ...] = tuple(action for action in ACTIONS if action.name)
"""The actions that are slash commands too, in the table's order."""

BY_NAME: Mapping[str, Action] = {name: c for c in COMMANDS for name in (c.name, *c.aliases)}

_SLASH = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?\s*", re.DOTALL)


class Invocation(msgspec.Struct, frozen=True):
    """A slash command as typed."""

    command: Action
    argument: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """A word that looks like a slash command but is none, and the nearest command's name (or empty)."""

    name: str
    nearest: str = ""


def parse(text: str) -> Invocation | Unknown | None:
    """Parse a draft as a slash command; None for a message. A path (`/etc/hosts is broken`) is a message."""
    match = _SLASH.fullmatch(text.strip())
    if match is None:
        return None
    name, argument = match[1].lower(), (match[2] or "").strip()
    if name == "compact":  # `now` is accepted and has no meaning: the command always runs at once
        argument = re.sub(r"\Anow\b\s*", "", argument)
    if command := BY_NAME.get(name):
        return Invocation(command, argument)
    close = [n for n in BY_NAME if n.startswith(name)] or get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    return Unknown(name, BY_NAME[close[0]].name if close else "")


def default_keys() -> dict[str, tuple[str, ...]]:
    """The default keys of every action."""
    return {a.id: a.keys for a in ACTIONS}


def keys_of(command: Action, keys: Keys) -> tuple[str, ...]:
    """The keys that start a command, possibly none."""
    return tuple(keys.get(command.id, ()))


def shown_key(key: str) -> str:
    """A key of Textual's as people write it: F8, ctrl+p, esc."""
    names = {"escape": "esc", "pageup": "page up", "pagedown": "page down", "comma": ",", "enter": "enter"}
    *modifiers, base = key.split("+")
    base = base.upper() if re.fullmatch(r"f\d+", base) else names.get(base, base)
    return "+".join([*modifiers, base])


def bindings(keys: Keys) -> list[Binding]:
    """The app's bindings for these keys."""
    return [
        Binding(",".join(command_keys), f"command('{c.name}')", c.help, id=c.name, show=False, priority=True)
        for c in COMMANDS
        if (command_keys := keys_of(c, keys))
    ]


class Palette(CommandPalette):
    """Textual's command palette, except that page keys do nothing in a window without room for a line, where Textual's raises."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


GROUPS = {
    "compaction": "context",
    "views": "looking",
    "files": "files",
    "sessions": "sessions",
    "importing": "sessions",
    "models": "models",
    "program": "program",
}
"""The palette's groups, in this order, by the module in `actions` that implements the command."""


FRAME_COLUMNS = 5
"""Columns that a line of the palette cannot use: its frame and scrollbar."""


def group_of(command: Action) -> str:
    """The name of the palette's group that a command is in."""
    return GROUPS.get(command.does.partition(".")[0], "program")


class CommandSource(Provider):
    """The palette's source of commands."""

    def _entries(self) -> list[tuple[Action, str]]:
        keys: Keys = getattr(self.app, "keys", {})
        order = list(dict.fromkeys(GROUPS.values()))
        grouped = sorted(COMMANDS, key=lambda command: order.index(group_of(command)))
        return [(c, " ".join(map(shown_key, keys_of(c, keys)[:1]))) for c in grouped]

    def _start(self, command: Action) -> Callable[[], object]:
        return partial(self.app.call_later, self.app.run_action, f"command('{command.name}')")

    async def discover(self) -> Hits:
        """All commands, group by group, each group in the table's order."""
        before = ""
        for command, key in self._entries():
            group = group_of(command)
            head, before = ("" if group == before else group), group
            yield DiscoveryHit(self._command_line(command, key, head), self._start(command), text=command.help)

    async def search(self, query: str) -> Hits:
        """The commands whose help text, name or alias matches."""
        matcher = self.matcher(query)
        for command, key in self._entries():
            score = max(map(matcher.match, (command.help, command.name, *command.aliases)))
            if score > 0:
                yield Hit(
                    score, self._command_line(command, key, group_of(command)), self._start(command), text=command.help
                )

    def _command_line(self, command: Action, key: str, group: str) -> Content:
        """A palette entry: group, name and key in columns of a fixed width, then the help text, which may be long. A narrow
        window leaves out all but the key, a very narrow one the key too; there the help text is wrapped in full."""
        width = self.app.size.width
        if width < 60:
            head = f"{key:<10}" if width >= 34 else ""
            lines = wrap(command.help, max(8, width - len(head) - FRAME_COLUMNS))
            return Content.assemble((head, "$text-muted"), f"\n{' ' * len(head)}".join(lines))
        head = f"{group:<10}" if width >= 100 else ""
        return Content.assemble(
            (head, "$text-accent"), (f"{f'/{command.name}':<13}{key:<10}", "$text-muted"), command.help
        )
