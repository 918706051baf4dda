"""The question whether to make room, once the trigger is reached: now, after this task, later, or with instructions.

Lies over the composer and takes neither the draft nor the focus: `tab` or the mouse goes to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.events import CompactionSuggested
from ctxchat.core.figures import Figures
from ctxchat.tui.reading.figures_text import percent
from ctxchat.tui.reading.text import short
from ctxchat.tui.widgets.asked import Offer, Offered

Reply = Literal["now", "after", "later"]
REPLIES: tuple[Reply, ...] = get_args(Reply)


class SuggestionPanel(Offered):
    """One suggestion that waits for a word."""

    BINDINGS = [
        Binding("n", "answer('now')", "Now", show=False),
        Binding("a", "answer('after')", "After this task", show=False),
        Binding("s,escape", "answer('later')", "Later", show=False),
        Binding("i", "answer('instruct')", "With instructions", show=False),
    ]
    IN_WORDS = "instruct"
    PLACEHOLDER = "what the summary is to keep; enter makes room, esc goes back"

    class Replied(Message):
        """What the person said, and what the summary is to keep."""

        def __init__(self, reply: Reply, instructions: str = "") -> None:
            super().__init__()
            self.reply: Reply = reply
            self.instructions = instructions

    def __init__(self, suggested: CompactionSuggested) -> None:
        super().__init__(id="suggestion")
        self._suggested = suggested

    @property
    def offers(self) -> Sequence[Offer]:
        return (
            ("now", "n", "now", False),
            ("after", "a", "after this task", False),
            ("later", "s", "snooze", False),
            ("instruct", "i", "add instructions", True),
        )

    def keep_up(self, figures: Figures) -> None:
        """The window is this full by now. What came since the question was asked stays where room is made."""
        more = figures.used - self._suggested.used
        self._suggested = CompactionSuggested(
            figures.used, figures.limit, figures.pressure, max(0, self._suggested.after_used + more)
        )
        for question in self.query(".question").results(Static):
            question.update(self._head())

    def body(self) -> Iterable[Widget]:
        yield Static(self._head(), markup=False, classes="question")

    def _head(self) -> Content:
        said = self._suggested
        gain = f"{short(said.used)} → ~{short(said.after_used)}"
        words = f"The window is {percent(said.pressure)} full. Free up context?  "
        return Content.assemble(("? ", "bold $text-warning"), words, (gain, "bold"))

    def answer(self, what: str) -> None:
        """When, if at all."""
        self.say(self.Replied(REPLIES[REPLIES.index(what)]))

    def worded(self, text: str) -> None:
        self.say(self.Replied("now", text))
