"""Everything a person can start, in one table: slash commands, palette and keys are three readings of it.

A line that begins with a known name, or with what looks like one, never enters the conversation. Knows what each does only by its
function in `ctxchat.tui.actions`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from ctxchat.config.keys import ACTIONS
from ctxchat.tui import actions

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

Keys = Mapping[Any, Sequence[str]]
"""Action ids of the key table with the keys in force, in Textual's names."""

Run = Callable[["CtxchatApp", str], Awaitable[None]]


class Command(msgspec.Struct, frozen=True):
    """One thing to start. `action` is its id in the key table (empty: `keys` are fixed here). `argument` names what may follow
    the slash command. `screen` marks those that open one over the chat, which the same key closes again."""

    name: str
    title: str
    run: Run
    action: str = ""
    keys: tuple[str, ...] = ()
    argument: str = ""
    aliases: tuple[str, ...] = ()
    screen: bool = False


COMMANDS: tuple[Command, ...] = (
    Command(
        "free", "Free up context, with a preview first", actions.free_up, "free_up", aliases=("freeup",), screen=True
    ),
    Command(
        "compact", "Compact now, without the preview", actions.compact, keys=("shift+f8",), argument="[instructions]"
    ),
    Command("undo", "Undo the last compaction or change by hand", actions.undo, "undo_compaction"),
    Command("context", "Context panel: what fills the window", actions.context, "context"),
    Command("archive", "Archive: every compaction, and what it put away", actions.archive, "archive", screen=True),
    Command("xray", "X-ray: every message and its price in tokens", actions.xray, "xray", screen=True),
    Command("search", "Search everything ever said", actions.search, "search", argument="[words]", screen=True),
    Command("sessions", "Sessions: open, rename, delete, branch", actions.sessions, "sessions", screen=True),
    Command("new", "A new session", actions.new_session, "new_session"),
    Command("branch", "Branch: go on in a copy of this session", actions.branch, keys=("alt+b",)),
    Command("rename", "Rename this session", actions.rename, keys=("alt+r",), argument="TITLE"),
    Command("model", "Models: choose another one", actions.models, "models", argument="[name]", screen=True),
    Command("mode", "Permission mode: ask, read-only, auto-edit, all", actions.mode, "mode", argument="[mode]"),
    Command("settings", "Settings", actions.settings, "settings", screen=True),
    Command("theme", "Themes, with a preview", actions.theme, "themes", argument="[name]"),
    Command("details", "Fold or unfold reasoning and tool output", actions.details, "toggle_details"),
    Command("copy", "Copy the last answer", actions.copy, "copy_last"),
    Command("export", "Write the conversation to a Markdown file", actions.export, keys=("alt+e",), argument="[file]"),
    Command("editor", "Write the message in your own editor", actions.editor, "editor"),
    Command("stop", "Stop the work under way", actions.stop, keys=("alt+x",)),
    Command("help", "Help and all keys", actions.help_, "help", aliases=("?",), screen=True),
    Command("quit", "Quit", actions.quit_, "quit", aliases=("exit", "q")),
)

BY_NAME: Mapping[str, Command] = {name: c for c in COMMANDS for name in (c.name, *c.aliases)}

_SLASH = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?\s*", re.DOTALL)


class Invocation(msgspec.Struct, frozen=True):
    """A slash command as typed."""

    command: Command
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


def keys_of(command: Command, keys: Keys) -> tuple[str, ...]:
    """The keys that start a command; may be none."""
    return tuple(keys.get(command.action, ())) if command.action else command.keys


def bindings(keys: Keys) -> list[Binding]:
    """What the app binds for these keys."""
    return [
        Binding(",".join(found), f"command('{c.name}')", c.title, id=c.name, show=False, priority=True)
        for c in COMMANDS
        if (found := keys_of(c, keys))
    ]


def shown_key(key: str) -> str:
    """A key as people write it: F8, ctrl+p, esc."""
    names = {"escape": "esc", "pageup": "page up", "pagedown": "page down", "comma": ",", "enter": "enter"}
    *modifiers, base = key.split("+")
    base = base.upper() if re.fullmatch(r"f\d+", base) else names.get(base, base)
    return "+".join([*modifiers, base])


class CommandSource(Provider):
    """The table, for the palette."""

    def _entries(self) -> list[tuple[Command, str]]:
        keys: Keys = getattr(self.app, "keys", {})
        return [(c, " ".join(map(shown_key, keys_of(c, keys)[:1]))) for c in COMMANDS]

    def _start(self, command: Command) -> Callable[[], object]:
        return partial(self.app.call_later, self.app.run_action, f"command('{command.name}')")

    async def discover(self) -> Hits:
        """All of it, in the table's order."""
        for command, key in self._entries():
            yield DiscoveryHit(self._line(command, key), self._start(command), text=command.title)

    async def search(self, query: str) -> Hits:
        """Those whose title or name matches."""
        matcher = self.matcher(query)
        for command, key in self._entries():
            score = max(matcher.match(command.title), matcher.match(command.name))
            if score > 0:
                yield Hit(score, self._line(command, key), self._start(command), text=command.title)

    def _line(self, command: Command, key: str) -> Content:
        wide = self.app.size.width >= 90
        name = f"/{command.name}"
        tail = f"{name:<12}{key}" if wide else key
        return Content.assemble(command.title.ljust(54 if wide else 0), "  ", (tail, "$text-muted"))
