"""One of a few, in one word: a filter that goes on to its next value by key, click or a call."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static


class Choice(Static, can_focus=True):
    """Shows its value; says when that changed. Set apart while it is not the first."""

    BINDINGS = [
        Binding("space,enter,right", "step(1)", "next", show=False),
        Binding("left", "step(-1)", show=False),
    ]

    place: reactive[int] = reactive(0)

    class Changed(Message):
        """Another value is chosen."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

        @property
        def control(self) -> Choice:
            return self.choice

    def __init__(self, values: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(values[0], id=id, markup=False)
        self._values = tuple(values)

    @property
    def value(self) -> str:
        """The value in force."""
        return self._values[self.place]

    def step(self, by: int = 1) -> None:
        """To the next value; after the last comes the first."""
        self.place = (self.place + by) % len(self._values)

    def watch_place(self, old: int, new: int) -> None:
        if old != new:
            self.update(self.value)
            self.set_class(new > 0, "-chosen")
            self.post_message(self.Changed(self))

    def action_step(self, by: int) -> None:
        self.step(by)

    def on_click(self) -> None:
        self.step()
