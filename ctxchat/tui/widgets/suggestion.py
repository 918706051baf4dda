"""The question whether to make room, once the trigger is reached: now, after this task, later, or with instructions.

Lies over the composer and takes neither the draft nor the focus: `tab` or the mouse goes to it.
"""

from __future__ import annotations

from typing import Literal, get_args

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ctxchat.core.events import CompactionSuggested
from ctxchat.tui.figures_text import percent
from ctxchat.tui.text import short
from ctxchat.tui.widgets.answer import Answer

Reply = Literal["now", "after", "later"]
REPLIES: tuple[Reply, ...] = get_args(Reply)


class SuggestionPanel(Widget, can_focus=True):
    """One suggestion that waits for a word."""

    BINDINGS = [
        Binding("n", "reply('now')", "Now", show=False),
        Binding("a", "reply('after')", "After this task", show=False),
        Binding("s,escape", "reply('later')", "Later", show=False),
        Binding("i", "reply('instruct')", "With instructions", show=False),
    ]

    class Replied(Message):
        """What the person said, and what the summary is to keep."""

        def __init__(self, reply: Reply, instructions: str = "") -> None:
            super().__init__()
            self.reply: Reply = reply
            self.instructions = instructions

    def __init__(self, suggested: CompactionSuggested) -> None:
        super().__init__(id="suggestion", classes="asked")
        self._suggested = suggested
        self._done = False

    def compose(self) -> ComposeResult:
        said = self._suggested
        gain = f"{short(said.used)} → ~{short(said.after_used)}"
        words = f"The window is {percent(said.pressure)} full. Free up context?  "
        head = Content.assemble(("? ", "bold $text-warning"), words, (gain, "bold"), ("   tab answers", "$text-muted"))
        yield Static(head, markup=False, classes="question")
        with Widget(classes="answers"):
            yield Answer("now", "n", "now")
            yield Answer("after", "a", "after this task")
            yield Answer("later", "s", "snooze")
            yield Answer("instruct", "i", "add instructions", more=True)

    def on_answer_pressed(self, event: Answer.Pressed) -> None:
        event.stop()
        self.action_reply(event.what)

    def action_reply(self, what: str) -> None:
        """Say it, once."""
        if what == "instruct":
            self._ask_what()
        elif what in REPLIES:
            self._say(REPLIES[REPLIES.index(what)])

    def _say(self, reply: Reply, instructions: str = "") -> None:
        if not self._done:
            self._done = True
            self.post_message(self.Replied(reply, instructions))

    def _ask_what(self) -> None:
        if not self.query(Input):
            what = Input(placeholder="what the summary is to keep; enter makes room, esc goes back", classes="why")
            self.mount(what)
            what.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._say("now", event.value.strip())

    def on_key(self, event: Key) -> None:
        if event.key == "escape" and self.query(Input):
            event.stop()
            event.prevent_default()
            self.query(Input).remove()
            self.focus()
