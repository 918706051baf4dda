"""The question whether a folder is to be trusted, with everything that its settings would do then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ctxchat.tui.reading.text import clean
from ctxchat.tui.style import STYLE
from ctxchat.tui.widgets.panel_keys import PanelKeys


class TrustScreen(ModalScreen[bool]):
    """Yes or no; anything but yes is no. `lines` say what waits for it."""

    CSS_PATH = STYLE / "settings.tcss"
    BINDINGS = [Binding("y", "say(True)", "trust it"), Binding("n,escape", "say(False)", "no", key_display="n")]

    def __init__(self, folder: Path, lines: Sequence[str]) -> None:
        super().__init__(name="trust", classes="asking")
        self._folder, self._lines = folder, lines

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(f"Trust {clean(str(self._folder))}?"), markup=False)
            if self._lines:
                yield Static("From then on its own settings do this:", classes="quiet", markup=False)
                with VerticalScroll(classes="held"):
                    for line in self._lines:
                        yield Static(Content(f"· {clean(line)}"), markup=False)
            else:
                words = "It has no settings of its own now. Those it may get later could start programs without asking."
                yield Static(words, classes="quiet", markup=False)
            yield PanelKeys()

    def action_say(self, yes: bool) -> None:
        self.dismiss(yes)
