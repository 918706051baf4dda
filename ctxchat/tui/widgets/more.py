"""A line that says how many messages lie outside of what is shown. Knows not where they come from."""

from __future__ import annotations

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static


class More(Static, can_focus=True):
    """How many messages are above or below; press it for some of them."""

    BINDINGS = [("enter,space", "press", "Show")]

    class Pressed(Message):
        """Show more in this direction."""

        def __init__(self, older: bool) -> None:
            super().__init__()
            self.older = older

    def __init__(self, older: bool) -> None:
        super().__init__(classes="more", markup=False)
        self._older = older
        self.display = False

    def say(self, count: int) -> None:
        """None: nothing there."""
        self.display = count > 0
        arrow, word = ("▲", "earlier") if self._older else ("▼", "later")
        self.update(Content(f"{arrow} {count:,} {word} message{'' if count == 1 else 's'}"))

    def action_press(self) -> None:
        self.post_message(self.Pressed(self._older))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_press()
