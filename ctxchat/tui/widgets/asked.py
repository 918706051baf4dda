"""What questions over the composer have in common: answers by key, by click or in words, given once.

A question never takes the focus from someone who writes. Its keys are letters of the draft until `tab` has gone to it, and that
is what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ctxchat.tui.widgets.answer import Answer

Offer = tuple[str, str, str, bool]
"""An answer: what it is, its key, its word, and whether small windows leave it out."""


class Asked(Widget, can_focus=True):
    """One question. Made of its `body` and its `offers`; what is chosen goes to `answer`, what is typed to `worded`."""

    PLACEHOLDER = ""
    """What the line for an answer in words says while it is empty."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="asked")
        self._done = False

    def body(self) -> Iterable[Widget]:
        """What stands above the answers."""
        raise NotImplementedError

    @property
    def offers(self) -> Sequence[Offer]:
        """The answers there are."""
        raise NotImplementedError

    def answer(self, what: str) -> None:
        """This was chosen."""
        raise NotImplementedError

    def worded(self, text: str) -> None:
        """This was typed."""
        raise NotImplementedError

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The keys that answer it, for the line of keys: those that work where the focus is now."""
        if self.has_focus or self.has_pseudo_class("focus-within"):
            return tuple((f"={key}", words) for _, key, words, _ in self.offers)
        return (("=tab", "to the question"), ("send", "queue"), ("interrupt", "stop"))

    def compose(self) -> ComposeResult:
        yield from self.body()
        with Widget(classes="answers"):
            for what, key, words, more in self.offers:
                yield Answer(what, key, words, more=more)
            yield Static(Content("tab first"), markup=False, classes="hint")

    def say(self, message: Message) -> None:
        """The answer, once."""
        if not self._done:
            self._done = True
            self.post_message(message)

    def ask_in_words(self) -> None:
        """A line to type in; enter answers, escape goes back."""
        if not self.query(Input):
            line = Input(placeholder=self.PLACEHOLDER, classes="why")
            self.mount(line)
            line.focus()

    def action_answer(self, what: str) -> None:
        """A key of ours."""
        if any(what == offer[0] for offer in self.offers):
            self.answer(what)

    def on_answer_pressed(self, event: Answer.Pressed) -> None:
        event.stop()
        self.action_answer(event.what)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.worded(event.value.strip())

    def on_key(self, event: Key) -> None:
        if event.key == "escape" and self.query(Input):
            event.stop()
            event.prevent_default()
            self.query(Input).remove()
            self.focus()
