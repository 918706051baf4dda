"""Shows one message whole, as it was."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import TextArea

from ctxchat.core.messages import Message
from ctxchat.presentation.text import NOTE, WHO, clock, cut, one_line
from ctxchat.tui.panels.panel import Panel

MAX_SHOWN_CHARS = 400_000
"""Characters that are shown; what is longer says so and is whole in an export."""


def whole_message(message: Message) -> str:
    """All of a message as text: reasoning, words, calls."""
    parts = [f"(reasoning)\n{message.reasoning.text}"] if message.reasoning else []
    parts += [message.text] if message.text else []
    parts += [f"{call.name} {call.arguments}" for call in message.calls]
    return cut("\n\n".join(parts), MAX_SHOWN_CHARS, ": the export holds them")


class ReaderScreen(Panel[str]):
    """Text to read and copy; of a `note`, that it is one. Comes back with `restore` where the message is to be put back."""

    HOME = TextArea
    BINDINGS = [Binding("r", "restore", "put back"), Binding("escape,q", "back", "back", key_display="esc")]

    def __init__(self, message: Message, *, note: bool = False) -> None:
        super().__init__()
        self._message, self._note = message, note

    def body(self) -> ComposeResult:
        yield TextArea(whole_message(self._message), read_only=True, id="reading", show_cursor=False)

    def on_mount(self) -> None:
        message = self._message
        words = f"{NOTE if self._note else WHO[message.role]} {one_line(message.name, 40)}".rstrip()
        self.head(clock(message.at), left=f"{message.id}   {words}")

    def action_restore(self) -> None:
        self.dismiss("restore")
