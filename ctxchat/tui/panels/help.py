"""Help: every command with its key, the keys while one writes, and what the letters of the gauge mean."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ctxchat.config.keys import ACTIONS
from ctxchat.presentation.usage_text import PARTS
from ctxchat.tui.commands import COMMANDS, Keys, keys_of, shown_key
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.style import MUTED

WRITING = ("send", "newline", "interrupt", "editor", "palette", "scroll_up", "scroll_down")
"""Actions that are no command, with those that matter most while one writes."""

Entry = tuple[str, str, str]
"""A key, a slash command (or empty), and what it does."""


def entries(keys: Keys) -> list[Entry]:
    """Every command."""
    return [(first(keys_of(c, keys)), f"/{c.name}{f' {c.argument}' if c.argument else ''}", c.help) for c in COMMANDS]


def writing(keys: Keys) -> list[Entry]:
    """The keys of the composer and what each does."""
    by_id = {a.id: a for a in ACTIONS}
    return [
        *((first(keys.get(name, ())), "", by_id[name].help) for name in WRITING if name in by_id),
        ("up", "", "On the first line: what you sent before; with messages waiting, the last of them"),
        ("@", "", "A file of this folder, or a resource of an MCP server"),
        ("tab", "", "To the question that waits, and around the screen"),
    ]


def first(keys: Sequence[str]) -> str:
    """The first key as people write it; a dash where there is none."""
    return shown_key(keys[0]) if keys else "–"


def lines(rows: Sequence[Entry], width: int) -> Content:
    """Rows in columns; words that are too long go on under themselves. Where it is narrow, what a command may be followed by is
    left out, where it is narrower the command stands behind the words, and where they have no room at all, they under the key."""
    key = max(len(r[0]) for r in rows) + 2
    longest = max(len(r[2]) for r in rows)
    if width < key + max(len(r[1]) for r in rows) + 2 + longest:
        rows = [(shown, command.partition(" ")[0], words) for shown, command, words in rows]
    slash = max(len(r[1]) for r in rows)
    slash += 2 if slash else 0
    beside = width - key - slash >= 30
    below = width - key < 16
    indent = " " * (2 if below else key + (slash if beside else 0))
    room = max(10, width - len(indent))
    found: list[Content] = []
    for shown, command, words in rows:
        text = words if beside or not command else f"{words}  {command}"
        rest = wrap(text, room, break_on_hyphens=False) or [""]
        head = "" if below else rest.pop(0)
        column = f"{command:<{slash}}" if beside else ""
        found.append(Content.assemble((f"{shown:<{key}}", "$text-accent"), (column, "$text"), (head, "$text-muted")))
        found += [Content.assemble(indent, (more, "$text-muted")) for more in rest]
    return Content("\n").join(found)


def letters(width: int) -> Content:
    """The letters of the bar and their meaning, as many in a row as fit."""
    signs = [(p.letter, p.label) for p in PARTS.values()]
    signs += [("╎", "target"), ("╷", "trigger"), ("┃", "learned limit"), (":", "maybe used"), ("!", "over budget")]
    cell = max(len(label) for _, label in signs) + 5
    across = max(1, width // cell)
    parts = [Content.assemble((s, "bold $accent"), f" {label:<{cell - 2}}") for s, label in signs]
    rows = [Content("").join(parts[i : i + across]) for i in range(0, len(parts), across)]
    return Content("\n").join(rows)


class HelpScreen(Panel[None]):
    """The help, on one page as wide as the terminal."""

    TITLE = "Help"
    HOME = VerticalScroll
    BINDINGS = [
        Binding("k", "keys", "other keys"),
        Binding("escape,q,enter", "back", "back", key_display="esc"),
    ]

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    def body(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield Static(id="commands", markup=False)
            yield Static(Content.styled("While you write", "bold"), markup=False, classes="part")
            yield Static(id="writing", markup=False)
            yield Static(Content.styled("The bar at the bottom", "bold"), markup=False, classes="part")
            yield Static(id="letters", markup=False)
            yield Static(
                Content.styled("The manual is in docs/ and in README.md.", MUTED), markup=False, classes="part"
            )

    def on_mount(self) -> None:
        palette = first(self._keys.get("palette", ()))
        self.head(f"type and press enter; {palette} finds every command", f"{palette} finds all")

    def on_resize(self) -> None:
        width = max(10, self.size.width - 4)  # margins, a scrollbar, and a cell before it
        self.query_one("#commands", Static).update(lines(entries(self._keys), width))
        self.query_one("#writing", Static).update(lines(writing(self._keys), width))
        self.query_one("#letters", Static).update(letters(width))

    def action_keys(self) -> None:
        """The screen that changes them."""
        self.dismiss(None)
        self.app.call_later(self.app.run_action, "command('keys')")
