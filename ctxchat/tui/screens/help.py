"""Help: every command with its key, and what the letters of the gauge mean."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ctxchat.config.keys import ACTIONS
from ctxchat.tui.commands import COMMANDS, Keys, keys_of, shown_key
from ctxchat.tui.figures_text import PARTS


class HelpScreen(ModalScreen[None]):
    """One page."""

    BINDINGS = [Binding("escape,q,enter", "dismiss", "Close", show=False)]

    def __init__(self, keys: Keys) -> None:
        super().__init__(name="help")
        self._keys = keys

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(Content.styled("Help", "bold $accent"), markup=False)
            yield Static("Type and press enter. Everything here is in the palette too.", markup=False, classes="quiet")
            yield Static(self._commands(), markup=False)
            yield Static(Content.styled("While you write", "bold"), markup=False, classes="part")
            yield Static(self._writing(), markup=False)
            yield Static(Content.styled("The bar at the bottom", "bold"), markup=False, classes="part")
            yield Static(self._letters(), markup=False)
            yield Static("esc closes", markup=False, classes="quiet part")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def _commands(self) -> Content:
        rows = []
        for command in COMMANDS:
            keys = " ".join(shown_key(k) for k in keys_of(command, self._keys)[:1])
            slash = f"/{command.name} {command.argument}".strip()
            rows.append(_row(keys, slash, command.title))
        return Content("\n").join(rows)

    def _writing(self) -> Content:
        shown = {"send", "newline", "interrupt", "editor", "palette", "scroll_up", "scroll_down"}
        rows = [
            _row(" ".join(shown_key(k) for k in self._keys.get(a.id, ())[:1]), "", a.help)
            for a in ACTIONS
            if a.id in shown
        ]
        rows += [
            _row("up", "", "On the first line: what you sent before; with messages waiting, the last of them"),
            _row("@", "", "A file of this folder"),
            _row("tab", "", "To the question that waits, and around the screen"),
        ]
        return Content("\n").join(rows)

    def _letters(self) -> Content:
        parts = [Content.assemble((p.letter, "bold $accent"), f" {p.label}") for p in PARTS.values()]
        parts += [Content.assemble((s, "bold $accent"), f" {w}") for s, w in (("╎", "target"), ("╷", "trigger"))]
        return Content("   ").join(parts)


def _row(key: str, slash: str, words: str) -> Content:
    return Content.assemble(
        (f"{key:<12}", "$text-accent"), (f"{slash:<24}" if slash else "", "$text"), (words, "$text-muted")
    )
