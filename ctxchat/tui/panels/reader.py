"""Shows messages whole, as they were."""

from __future__ import annotations

from collections.abc import Sequence

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


def whole_messages(messages: Sequence[Message]) -> str:
    """Several messages as text, each whole under a line that names it."""
    parts = (f"── {_title(message)}\n{whole_message(message)}" for message in messages)
    return cut("\n\n".join(parts), MAX_SHOWN_CHARS, ": the export holds them")


def _title(message: Message, note: bool = False) -> str:
    words = f"{NOTE if note else WHO[message.role]} {one_line(message.name, 40)}".rstrip()
    return f"{message.id}   {words}" if message.seq else words


class TextScreen(Panel[str]):
    """Text to read and copy, with `left` and `right` in the heading."""

    HOME = TextArea
    BINDINGS = [Binding("escape,q", "back", "back", key_display="esc")]

    def __init__(self, text: str, left: str, right: str) -> None:
        super().__init__()
        self._text, self._left, self._right = text, left, right

    def body(self) -> ComposeResult:
        yield TextArea(self._text, read_only=True, id="reading", show_cursor=False)

    def on_mount(self) -> None:
        self.head(self._right, left=self._left)


class ReaderScreen(TextScreen):
    """One message, whole; of a `note`, that it is one. Comes back with `restore` where the message is to be put back."""

    BINDINGS = [Binding("r", "restore", "put back")]

    def __init__(self, message: Message, *, note: bool = False) -> None:
        super().__init__(whole_message(message), _title(message, note), clock(message.at))

    def action_restore(self) -> None:
        self.dismiss("restore")
