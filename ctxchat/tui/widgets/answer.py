"""One answer to a question over the composer: a key and a word, to be clicked or chosen with enter."""

from __future__ import annotations

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static


class AnswerButton(Static, can_focus=True):
    """`more` marks one that small windows leave out; its key works there too."""

    BINDINGS = [("enter,space", "press", "Choose")]

    class Pressed(Message):
        """This one; `what` is its name."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    def __init__(self, what: str, key: str, words: str, *, more: bool = False, classes: str = "") -> None:
        super().__init__("", markup=False, classes=f"answer {classes} {'-more' * more}".strip())
        self.what, self._key = what, key
        self.reword(words)

    def reword(self, words: str) -> None:
        """Say it in other words."""
        self.update(Content.assemble((f" {self._key} ", "bold $text-accent"), (f"{words} ", "$text")))

    def action_press(self) -> None:
        self.post_message(self.Pressed(self.what))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_press()
