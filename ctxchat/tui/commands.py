"""Everything a person can start, as one table of plain data: slash commands, palette, keys and help are readings of it.

A line that begins with a known name, or with what looks like one, never enters the conversation. Knows no function, widget or
app; what each command does is in `ctxchat.tui.actions`, by subject.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from ctxchat.config.keys import ACTIONS

Keys = Mapping[Any, Sequence[str]]
"""Action ids of the key table with the keys in force, in Textual's names."""


class Command(msgspec.Struct, frozen=True):
    """One thing to start. `action` is its id in the key table. `argument` names what may follow the slash command. `screen` marks
    those that open one over the chat, which the same key closes again."""

    name: str
    title: str
    action: str
    argument: str = ""
    aliases: tuple[str, ...] = ()
    screen: bool = False


COMMANDS: tuple[Command, ...] = (
    Command("free", "Free up context, with a preview first", "free_up", aliases=("freeup",), screen=True),
    Command("compact", "Compact now, without the preview", "compact", argument="[words]"),
    Command(
        "undo",
        "Undo what came last: changes to files, a compaction, a change by hand",
        "undo_compaction",
        argument="[files]",
    ),
    Command("redo", "Redo what was undone last, exactly as it was", "redo", argument="[files]"),
    Command("rewind", "Rewind to before a message: talk, files or both", "rewind", screen=True),
    Command("diff", "Diff: what turns did to files", "diff", screen=True),
    Command("reinsert", "Put back the facts that the last compaction lost", "reinsert"),
    Command("context", "Context panel: what fills the window (read: in a sentence)", "context", argument="[read]"),
    Command("archive", "Archive: every compaction, and what it put away", "archive", screen=True),
    Command("xray", "X-ray: every message and its price in tokens", "xray", screen=True),
    Command("search", "Search everything ever said", "search", argument="[words]", screen=True),
    Command("flight", "Flight recorder: the fill over time, every pass, a report", "flight", screen=True),
    Command("sessions", "Sessions: open, rename, delete, branch", "sessions", screen=True),
    Command("new", "A new session", "new_session"),
    Command("branch", "Branch: go on in a copy of this session", "branch"),
    Command("rename", "Rename this session", "rename", argument="TITLE"),
    Command("model", "Models: choose another one", "models", argument="[name]", screen=True),
    Command("agent", "Agents: go on as another one", "agents", argument="[name]", screen=True),
    Command("mcp", "MCP servers: their tools and what they cost", "servers", screen=True),
    Command("notices", "Notices: what is amiss, all of it", "notices", screen=True),
    Command("secrets", "Secrets: what was masked, to look at or to allow", "secrets", screen=True),
    Command(
        "permissions",
        "Permissions: the rules in force, to edit, add or remove",
        "permissions",
        aliases=("rules",),
        screen=True,
    ),
    Command("mode", "Permission mode: ask, read-only, plan, auto-edit, all", "mode", argument="[mode]"),
    Command("settings", "Settings", "settings", screen=True),
    Command("trust", "Trust the settings of this folder", "trust", screen=True),
    Command("theme", "Themes, with a preview", "themes", argument="[name]", screen=True),
    Command("details", "Fold or unfold reasoning and tool output", "toggle_details"),
    Command("copy", "Copy the last answer", "copy_last"),
    Command("export", "Write the conversation to a Markdown file", "export", argument="[file]"),
    Command("paste-image", "Attach the image that is on the clipboard", "paste_image"),
    Command("editor", "Write the message in your own editor", "editor"),
    Command("stop", "Stop the work under way", "stop"),
    Command("continue", "Continue a reply or a turn that broke off", "continue", aliases=("resume", "retry")),
    Command("keys", "Keys: which there are, and other ones", "keys", screen=True),
    Command("help", "Help: commands, keys, the gauge", "help", aliases=("?",), screen=True),
    Command("quit", "Quit", "quit", aliases=("exit", "q")),
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
    return tuple(keys.get(command.action, ()))


def shown_key(key: str) -> str:
    """A key as people write it: F8, ctrl+p, esc."""
    names = {"escape": "esc", "pageup": "page up", "pagedown": "page down", "comma": ",", "enter": "enter"}
    *modifiers, base = key.split("+")
    base = base.upper() if re.fullmatch(r"f\d+", base) else names.get(base, base)
    return "+".join([*modifiers, base])
