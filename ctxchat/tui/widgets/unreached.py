"""The question how to go on where nobody is at the model's address: in a stored session, or with a message that waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.tui.reading.text import one_line
from ctxchat.tui.widgets.asked import Offer, Offered

Way = Literal["again", "another", "offline"]
WAYS: tuple[Way, ...] = get_args(Way)


class UnreachedPanel(Offered):
    """Try again, another model, the offline assistant, or none of it now. `waiting` says that a message has no answer yet, or
    half of one."""

    BINDINGS = [
        Binding("r", "answer('again')", "Try again", show=False),
        Binding("m", "answer('another')", "Another model", show=False),
        Binding("o", "answer('offline')", "Offline assistant", show=False),
        Binding("escape", "answer('later')", "Not now", show=False),
    ]
    ELSEWHERE = (("=tab", "to the question"), ("send", "send"), ("models", "models"), ("palette", "all commands"))

    class Answered(Message):
        """The way to go on, empty for none now."""

        def __init__(self, way: Way | None, waiting: bool) -> None:
            super().__init__()
            self.way: Way | None = way
            self.waiting = waiting

    def __init__(self, model: str, address: str, *, waiting: bool) -> None:
        super().__init__(id="unreached")
        self._model, self._address, self._waiting = one_line(model, 80), one_line(address, 120), waiting

    @property
    def offers(self) -> Sequence[Offer]:
        return (
            ("again", "r", "try again", False),
            ("another", "m", "other model", False),
            ("offline", "o", "offline assistant", False),
            ("later", "esc", "not now", False),
        )

    def body(self) -> Iterable[Widget]:
        where = f"{self._model} at {self._address}" if self._address else self._model
        words = f"{where} cannot be reached."
        if self._waiting:
            words = f"Your message waits for {where}."
        yield Static(Content.assemble(("? ", "bold $text-warning"), (words, "bold")), markup=False, classes="question")

    def answer(self, what: str) -> None:
        """Once; what comes of it may ask again."""
        self.say(self.Answered(next((way for way in WAYS if way == what), None), self._waiting))
