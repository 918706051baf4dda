"""Two short questions over a screen: yes or no, and a line of text."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ctxchat.tui.reading.text import cut
from ctxchat.tui.screens.panel import Over
from ctxchat.tui.widgets.field import Field
from ctxchat.tui.widgets.panel_keys import PanelKeys


class Confirm(Over[bool], ModalScreen[bool]):
    """A question with yes and no; anything but yes is no."""

    BINDINGS = [Binding("y", "say(True)", "yes"), Binding("n,escape", "say(False)", "no", key_display="n")]

    def __init__(self, question: str) -> None:
        super().__init__(classes="asking")
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(cut(self._question)), markup=False)
            yield PanelKeys()

    def action_say(self, yes: bool) -> None:
        self.dismiss(yes)


class AskText(Over[str], ModalScreen[str]):
    """A line of text, or None."""

    BINDINGS = [Binding("escape", "leave", "back")]

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__(classes="asking")
        self._question, self._text = question, text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(cut(self._question)), markup=False)
            yield Field(self._text, compact=True)
            yield PanelKeys()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)
