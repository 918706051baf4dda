"""The filters of a search as a line of choices: which sessions, whose messages, with which tool, and when."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from ctxchat.core.messages import Role
from ctxchat.core.search import NEWEST, Scope
from ctxchat.presentation.text import one_line


class Choice(Static, can_focus=True):
    """A choice of one of several values, which it steps through. It is highlighted unless the first value is chosen."""

    BINDINGS = [
        Binding("space,enter,right", "step(1)", "next", show=False),
        Binding("left", "step(-1)", show=False),
    ]

    place: reactive[int] = reactive(0)

    class Changed(Message):
        """Another value was chosen."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

        @property
        def control(self) -> Choice:
            return self.choice

    def __init__(self, values: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(values[0], id=id, markup=False)
        self._values = tuple(values)

    def offer(self, values: Sequence[str]) -> None:
        """Offer these values from now on; the first one is the default."""
        self._values = tuple(values)

    @property
    def value(self) -> str:
        """The chosen value."""
        return self._values[self.place]

    def watch_place(self, old: int, new: int) -> None:
        if old != new:
            self.update(self.value)
            self.set_class(new > 0, "-chosen")
            self.post_message(self.Changed(self))

    def action_step(self, by: int = 1) -> None:
        """Choose the next value; after the last comes the first."""
        self.place = (self.place + by) % len(self._values)

    def on_click(self) -> None:
        self.action_step()


PLACES = ("all sessions", "this session")
ROLES: dict[str, Role | str] = {"anyone": "", "you": "user", "answers": "assistant", "tool results": "tool"}
ANY_TOOL = "any tool"
TIMES = {
    "any time": Scope(),
    "before last compaction": Scope(before=NEWEST),
    "since last compaction": Scope(after=NEWEST),
}


class Filters(Horizontal):
    """The filters. A change posts `Choice.Changed`; `session` is the session on screen."""

    def __init__(self, session: str) -> None:
        super().__init__(id="filters")
        self._session = session
        self._tools: dict[str, str] = {}

    def offer(self, tools: Sequence[str]) -> None:
        """Offer these tools."""
        self._tools = {one_line(name, 30): name for name in tools}
        self.query_one("#tool", Choice).offer((ANY_TOOL, *self._tools))

    def compose(self) -> ComposeResult:
        yield Choice(PLACES, id="place")
        yield Choice(tuple(ROLES), id="role")
        yield Choice((ANY_TOOL,), id="tool")
        yield Choice(tuple(TIMES), id="time")

    @property
    def scope(self) -> Scope:
        """The scope of the search by the chosen values."""
        session = self._session if self._value("place") == PLACES[1] else ""
        role, tool = ROLES[self._value("role")], self._tools.get(self._value("tool"), "")
        return msgspec.structs.replace(TIMES[self._value("time")], session=session, role=role, tool=tool)

    def step(self, which: str) -> None:
        """Step one filter to its next value."""
        self.query_one(f"#{which}", Choice).action_step()

    def _value(self, which: str) -> str:
        return self.query_one(f"#{which}", Choice).value
