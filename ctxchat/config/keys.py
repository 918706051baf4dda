"""Defines all actions a person can start, as a table that keys, slash commands, palette, help and documentation read, and
resolves the keys from a person's `[keys]` table. Knows no widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from ctxchat.config.problems import Problem, display_value, nearest

Preset = Literal["standard", "no-function-keys", "no-alt-keys"]


class Action(msgspec.Struct, frozen=True):
    """One action a person can start. `id` is its name in `[keys]`; `keys` are its standard keys, by Textual's names.

    A command also has the `name` of its slash command, further names as `aliases`, and a description of its `argument`; `does`
    names its function in `ctxchat.tui.actions`. `screen` marks an action that opens a screen over the chat; the same key closes
    it.
    """

    id: str
    keys: tuple[str, ...]
    help: str
    name: str = ""
    does: str = ""
    argument: str = ""
    aliases: tuple[str, ...] = ()
    screen: bool = False


ACTIONS: tuple[Action, ...] = (
    Action("send", ("enter",), "Send the message; while the agent works, between two steps of it"),
    Action("send_later", ("ctrl+s", "alt+enter"), "Send the message when the turn under way has ended"),
    Action("newline", ("ctrl+j", "shift+enter"), "A new line in the message"),
    Action("interrupt", ("escape",), "Close the panel on top, else stop the work under way"),
    Action(
        "free_up",
        ("f8",),
        "Free up context, with a preview first",
        "free",
        "compaction.free_up",
        argument="[m12 or words]",
        aliases=("freeup",),
        screen=True,
    ),
    Action(
        "compact",
        ("shift+f8",),
        "Compact now, without the preview",
        "compact",
        "compaction.compact",
        argument="[words]",
    ),
    Action(
        "undo_compaction",
        ("alt+u",),
        "Undo what came last: files, a compaction, any change",
        "undo",
        "compaction.undo",
        argument="[files]",
    ),
    Action(
        "redo",
        ("alt+z",),
        "Redo what was undone last, exactly as it was",
        "redo",
        "compaction.redo",
        argument="[files]",
    ),
    Action(
        "rewind", ("ctrl+b",), "Rewind to before a message: talk, files or both", "rewind", "files.rewind", screen=True
    ),
    Action("diff", ("ctrl+l",), "Diff: what turns did to files", "diff", "files.diff", screen=True),
    Action(
        "reinsert", ("alt+i",), "Put back the facts that the last compaction lost", "reinsert", "compaction.reinsert"
    ),
    Action(
        "context",
        ("f2",),
        "Context panel: what fills the window",
        "context",
        "views.context",
        argument="[read]",
    ),
    Action("cache", ("alt+j",), "Cache: what the server holds, and what it saves", "cache", "views.cache"),
    Action(
        "limit",
        ("ctrl+f7",),
        "Spending limits: what is left, or raise one",
        "limit",
        "views.limit",
        argument="[turn | session | day  USD]",
    ),
    Action("cost", ("alt+h",), "Cost: for what, by model, day and turn", "cost", "views.cost"),
    Action(
        "archive",
        ("f3",),
        "Archive: every compaction and what it replaced",
        "archive",
        "views.archive",
        screen=True,
    ),
    Action("xray", ("f4",), "X-ray: every message and its price in tokens", "xray", "views.xray", screen=True),
    Action("jobs", ("ctrl+f5",), "Background commands: look at them, end one", "jobs", "views.jobs", screen=True),
    Action(
        "memos",
        ("alt+d",),
        "Memos: what the agent keeps word for word",
        "memos",
        "views.memos",
        screen=True,
    ),
    Action(
        "search",
        ("ctrl+f",),
        "Search: find anything ever said, in the archive too",
        "search",
        "views.search",
        argument="[words]",
        aliases=("find",),
        screen=True,
    ),
    Action(
        "flight",
        ("alt+l",),
        "Flight recorder: the fill over time, and a report",
        "flight",
        "views.flight",
        screen=True,
    ),
    Action("jump", ("ctrl+f9",), "Jump marks: letters over all that can be clicked", "jump", "views.jump", screen=True),
    Action(
        "aside",
        ("ctrl+f8",),
        "Ask beside the conversation: nothing of it stays",
        "btw",
        "views.aside",
        argument="[question]",
        aliases=("aside",),
        screen=True,
    ),
    Action(
        "sessions",
        ("f9",),
        "Sessions: open, rename, delete, branch",
        "sessions",
        "sessions.sessions",
        aliases=("resume",),
        screen=True,
    ),
    Action(
        "new_session", ("ctrl+n", "shift+f2"), "A new session", "new", "sessions.new_session"
    ),  # browsers take the first
    Action("branch", ("alt+g",), "Branch: go on in a copy of this session", "branch", "sessions.branch"),
    Action(
        "handoff",
        ("alt+w",),
        "Hand off: go on with this work in a fresh session",
        "handoff",
        "sessions.handoff",
        argument="[goal]",
        screen=True,
    ),
    Action(
        "import",
        ("ctrl+f6",),
        "Import sessions of other agents",
        "import",
        "importing.import_sessions",
        argument="[path | stop]",
    ),
    Action("rename", ("alt+r",), "Rename this session", "rename", "sessions.rename", argument="TITLE"),
    Action("models", ("f10",), "Models: choose another one", "model", "models.models", argument="[name]", screen=True),
    Action(
        "effort",
        ("alt+q",),
        "How much the model thinks, by its own levels",
        "effort",
        "models.effort",
        argument="[level]",
    ),
    Action(
        "agents", ("alt+a",), "Agents: go on as another one", "agent", "sessions.agents", argument="[name]", screen=True
    ),
    Action("servers", ("alt+v",), "MCP servers: their tools and what they cost", "mcp", "views.servers", screen=True),
    Action("notices", ("alt+o",), "Notices: everything that is wrong", "notices", "program.notices", screen=True),
    Action(
        "secrets",
        ("alt+s",),
        "Secrets: what was masked, to look at or to allow",
        "secrets",
        "program.secrets",
        screen=True,
    ),
    Action(
        "permissions",
        ("alt+m",),
        "Permissions: your rules, to edit, add or remove",
        "permissions",
        "sessions.permissions",
        aliases=("rules",),
        screen=True,
    ),
    Action(
        "mode",
        ("shift+tab",),
        "Permission mode: ask, read-only, plan, auto-edit, all",
        "mode",
        "sessions.mode",
        argument="[mode]",
    ),
    Action("settings", ("f12",), "Settings", "settings", "program.settings", screen=True),
    Action("trust", ("alt+y",), "Trust the settings of this folder", "trust", "program.trust", screen=True),
    Action("themes", ("alt+t",), "Themes, with a preview", "theme", "program.theme", argument="[name]", screen=True),
    Action("toggle_details", ("ctrl+o",), "Fold or unfold reasoning and tool output", "details", "program.details"),
    Action("copy_last", ("alt+c",), "Copy the last answer", "copy", "program.copy"),
    Action(
        "copy_block",
        ("ctrl+f10",),
        "Copy a block: letters over all that can be copied",
        "copy-block",
        "program.copy_block",
        screen=True,
    ),
    Action(
        "export",
        ("alt+e",),
        "Write the conversation to a Markdown file",
        "export",
        "sessions.export",
        argument="[file]",
    ),
    Action(
        "paste_image", ("alt+p",), "Attach the image that is on the clipboard", "paste-image", "program.paste_image"
    ),
    Action("editor", ("ctrl+g",), "Write the message in your own editor", "editor", "program.editor"),
    Action("stop", ("alt+x",), "Stop the work under way", "stop", "program.stop"),
    Action(
        "continue",
        ("alt+n",),
        "Continue a reply or a turn that broke off",
        "continue",
        "models.resume",
        aliases=("retry",),
    ),
    Action("keys", ("alt+k",), "Keys: which there are, and other ones", "keys", "program.keys", screen=True),
    Action("palette", ("ctrl+p",), "All commands"),
    Action("help", ("f1",), "Help: commands, keys, the gauge", "help", "program.help_", aliases=("?",), screen=True),
    Action("scroll_up", ("pageup",), "Scroll the conversation up"),
    Action("scroll_down", ("pagedown",), "Scroll the conversation down"),
    Action("quit", ("ctrl+q",), "Quit", "quit", "program.quit_", aliases=("exit", "q")),
)

ACTION_IDS = tuple(action.id for action in ACTIONS)

if TYPE_CHECKING:
    ActionId = str
else:
    ActionId = Literal[ACTION_IDS]  # what the settings may name

PRESETS: Mapping[Preset, Mapping[ActionId, tuple[str, ...]]] = {
    "standard": {},
    "no-function-keys": {
        "new_session": ("ctrl+n", "alt+up"),
        "context": ("alt+d",),
        "archive": ("alt+j",),
        "xray": ("alt+q",),
        "free_up": ("alt+w",),
        "compact": ("alt+c",),
        "copy_last": ("alt+o",),
        "notices": ("ctrl+t", "alt+down"),
        "secrets": ("ctrl+backslash",),
        "permissions": ("ctrl+right_square_bracket",),
        "sessions": ("alt+s",),
        "models": ("alt+m",),
        "effort": ("ctrl+circumflex_accent",),
        "cache": ("alt+home",),
        "cost": ("alt+end",),
        "memos": ("alt+insert",),
        "jobs": ("alt+pagedown",),
        "limit": ("alt+pageup",),
        "settings": ("alt+i",),
        "reinsert": ("ctrl+r",),
        "help": ("alt+h",),
        "handoff": ("ctrl+underscore",),
        "jump": ("ctrl+home",),
        "aside": ("ctrl+insert",),
        "copy_block": ("ctrl+end",),
        "import": ("ctrl+at",),
    },
    "no-alt-keys": {
        "new_session": ("ctrl+n", "ctrl+shift+f2"),
        "send_later": ("ctrl+f9",),
        "undo_compaction": ("ctrl+r",),
        "redo": ("shift+f11",),
        "rewind": ("ctrl+f3",),
        "diff": ("ctrl+f4",),
        "reinsert": ("f11",),
        "flight": ("shift+f4",),
        "branch": ("shift+f9",),
        "handoff": ("ctrl+f10",),
        "jump": ("ctrl+home",),
        "aside": ("ctrl+insert",),
        "copy_block": ("ctrl+end",),
        "rename": ("ctrl+b",),
        "effort": ("ctrl+f5",),
        "jobs": ("ctrl+pagedown",),
        "limit": ("ctrl+pageup",),
        "cache": ("ctrl+f7",),
        "cost": ("ctrl+f2",),
        "memos": ("ctrl+f8",),
        "agents": ("shift+f10",),
        "servers": ("shift+f7",),
        "notices": ("ctrl+f1",),
        "secrets": ("ctrl+f12",),
        "permissions": ("ctrl+f11",),
        "trust": ("shift+f12",),
        "themes": ("ctrl+t",),
        "keys": ("shift+f1",),
        "copy_last": ("ctrl+l",),
        "export": ("shift+f6",),
        "paste_image": ("shift+f5",),
        "stop": ("ctrl+s",),
        "continue": ("shift+f2",),
    },
}

SWALLOWED = frozenset({f"ctrl+{c}" for c in "aewdxcvukzy"} | {"f5", "f6", "f7"})
"""Keys that the message editor handles itself while it has the focus."""

_SAME = {"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape"}
"""Keys that most terminals send as another key, with that key."""


_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "meta", "hyper"})
_CONTROL_KEYS = "escape enter tab space backspace delete insert home end pageup pagedown up down left right"
_PUNCTUATION = """comma full_stop slash backslash minus plus equals_sign semicolon colon question_mark exclamation_mark
left_square_bracket right_square_bracket left_curly_bracket right_curly_bracket apostrophe quotation_mark grave_accent tilde at
number_sign dollar_sign percent_sign circumflex_accent ampersand asterisk left_parenthesis right_parenthesis underscore
vertical_line less_than_sign greater_than_sign"""
_NAMED = frozenset(_CONTROL_KEYS.split()) | frozenset(_PUNCTUATION.split()) | {f"f{n}" for n in range(1, 25)}
_READ_OTHERWISE = frozenset({f"alt+{base}" for base in (*"0123456789bf", *_PUNCTUATION.split())} | {"shift+f3"})
"""Keys that the terminal input reads as a plain character, a move by words, or a report of the cursor's position."""


class KeyMap(msgspec.Struct, frozen=True):
    """The keys in force for every action (none where the person removed them), and problems of the person's keys."""

    keys: dict[ActionId, tuple[str, ...]]
    problems: tuple[Problem, ...] = ()

    def action(self, key: str) -> ActionId | None:
        """The action that a key starts, None where there is none."""
        return next((action for action, keys in self.keys.items() if key in keys), None)


def resolve(overrides: Mapping[ActionId, str | Sequence[str]], preset: Preset = "standard") -> KeyMap:
    """The keys in force: the standard ones, replaced by those of the preset, replaced by the person's `overrides`.

    A key that cannot work is reported and left out; an action without a working key in `overrides` keeps the keys it had. A key
    that the person gives to one action is taken from another, which is reported too; a key given to two actions goes to the first
    one in the table.
    """
    keys: dict[ActionId, tuple[str, ...]] = {a.id: PRESETS[preset].get(a.id, a.keys) for a in ACTIONS}
    problems: list[Problem] = []
    wishes: dict[ActionId, tuple[str, ...]] = {}
    for action in ACTION_IDS:
        if action not in overrides:
            continue
        wanted = split(overrides[action])
        faults = [(key, fault(key)) for key in wanted]
        problems += [_problem(action, key, *why) for key, why in faults if why]
        if not wanted or any(not why for _, why in faults):
            wishes[action] = tuple(key for key, why in faults if not why)
    keys |= wishes
    taken: dict[str, ActionId] = {}
    # the person's keys first, then the others, each in the order of the table
    for action in sorted(ACTION_IDS, key=lambda a: a not in wishes):
        for key in keys[action]:
            if (owner := taken.setdefault(key, action)) != action:
                problems.append(_conflict(key, owner, action, owner in wishes))
    resolved: dict[ActionId, tuple[str, ...]] = {
        a: tuple(k for k in dict.fromkeys(keys[a]) if taken[k] == a) for a in ACTION_IDS
    }
    return KeyMap(resolved, tuple(problems))


def split(keys: str | Sequence[str]) -> tuple[str, ...]:
    """The keys in a list, or in one text with commas, in lower case and without blanks."""
    parts = keys.split(",") if isinstance(keys, str) else keys
    return tuple(p for p in (part.strip().lower() for part in parts) if p)


def fault(key: str) -> tuple[str, str] | None:
    """Why a key cannot start an action, and the most similar valid name (or empty); None when it can."""
    *modifiers, base = key.split("+")
    if wrong := [m for m in modifiers if m not in _MODIFIERS]:
        return f"{display_value(wrong[0])} is no modifier (ctrl, shift, alt, super)", nearest(wrong[0], _MODIFIERS)
    if base not in _NAMED and len(base) != 1:
        return f"{display_value(key)} is no key", nearest(base, _NAMED)
    if key in SWALLOWED:
        return f"{key} is taken by the message editor while you type", ""
    if key in _READ_OTHERWISE:
        return f"{key} reaches the program as another sign or a move of the cursor", ""
    if key in _SAME:
        return f"{key} reaches the program as {_SAME[key]}", ""
    if len(base) == 1 and set(modifiers) <= {"shift"}:
        return f"{display_value(key)} is a letter you type", ""
    return None


def _problem(action: str, key: str, what: str, near: str) -> Problem:
    return Problem(what=what if key in what else f"{key}: {what}", key=f"keys.{action}", nearest=near)


def _conflict(key: str, owner: ActionId, loser: ActionId, wished: bool) -> Problem:
    what = f"{key} was the key of {loser}, which has it no longer" if wished else f"{key} is also the key of {loser}"
    return Problem(what=what, key=f"keys.{owner}")
