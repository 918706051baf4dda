"""A question of the agent: its words, the answers it offers, a line for one's own.

Lies over the composer and takes the focus only where nobody is writing; question and answers are foreign text.
"""

from __future__ import annotations

from typing import Self

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ctxchat.core.events import QuestionAsked
from ctxchat.tui.reading.text import clean, one_line
from ctxchat.tui.widgets.asked import Asked, Keys
from ctxchat.tui.widgets.options import Options

LONGEST = 20_000
"""Characters of the question that are shown; how many more there are is said."""


class QuestionPanel(Asked):
    """One question that waits for a word."""

    BINDINGS = [
        Binding("escape", "say('')", "No answer", show=False),
        Binding("shift+up", "scroll_text(-1)", show=False),
        Binding("shift+down", "scroll_text(1)", show=False),
    ]

    class Answered(Message):
        """What the person said; empty for nothing."""

        def __init__(self, asked: QuestionAsked, text: str) -> None:
            super().__init__()
            self.asked, self.text = asked, text

    def __init__(self, asked: QuestionAsked) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        text, more = self._asked.text, len(self._asked.text) - LONGEST
        rest = (f"\n… {more:,} more characters", "$text-warning") if more > 0 else ""
        words = Content.assemble(("? ", "bold $text-warning"), Content(clean(text[:LONGEST])), rest)
        with VerticalScroll(classes="question words", can_focus=False):
            yield Static(words, markup=False)
        if options := self._asked.options:
            yield Options(*(Option(Content(one_line(clean(text), 200))) for text in options), markup=False)
        yield Input(placeholder="or in your own words" if options else "your answer", classes="why")

    @property
    def own_keys(self) -> Keys:
        more = (("=shift+↓", "read on"),) if self.query_one(VerticalScroll).max_scroll_y else ()
        return (("=enter", "answer"), ("=tab", "next"), ("=esc", "no answer"), *more)

    def focus(self, scroll_visible: bool = True) -> Self:
        """To the answers, else to the line."""
        target = self.query(OptionList).first() if self._asked.options else self.query_one(Input)
        target.focus(scroll_visible)
        return self

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_say(self._asked.options[event.option_index])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.action_say(event.value.strip())

    def action_scroll_text(self, lines: int) -> None:
        """Move in a long question; at once, or keys that come faster than frames count once."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False, immediate=True)

    def action_say(self, text: str) -> None:
        """Say it, once."""
        self.say(self.Answered(self._asked, text))
