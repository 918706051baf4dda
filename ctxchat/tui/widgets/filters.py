"""Where to search, in a line of choices: which sessions, who said it, with which tool, and when."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual.app import ComposeResult
from textual.containers import Horizontal

from ctxchat.core.messages import Role
from ctxchat.core.search import NEWEST, Scope
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.widgets.choice import Choice

PLACES = ("all sessions", "this session")
ROLES: dict[str, Role | str] = {"anyone": "", "you": "user", "answers": "assistant", "tool results": "tool"}
ANY_TOOL = "any tool"
TIMES = {
    "any time": Scope(),
    "before last compaction": Scope(before=NEWEST),
    "since last compaction": Scope(after=NEWEST),
}


class Filters(Horizontal):
    """Says `Choice.Changed`. `session` is the one on screen, `tools` are the names of its tools."""

    def __init__(self, session: str, tools: Sequence[str]) -> None:
        super().__init__(id="filters")
        self._session = session
        self._tools = {one_line(name, 30): name for name in tools}

    def compose(self) -> ComposeResult:
        yield Choice(PLACES, id="place")
        yield Choice(tuple(ROLES), id="role")
        yield Choice((ANY_TOOL, *self._tools), id="tool")
        yield Choice(tuple(TIMES), id="time")

    @property
    def scope(self) -> Scope:
        """Where to look, as they stand."""
        session = self._session if self._value("place") == PLACES[1] else ""
        role, tool = ROLES[self._value("role")], self._tools.get(self._value("tool"), "")
        return msgspec.structs.replace(TIMES[self._value("time")], session=session, role=role, tool=tool)

    def step(self, which: str) -> None:
        """One of them to its next value."""
        self.query_one(f"#{which}", Choice).step()

    def _value(self, which: str) -> str:
        return self.query_one(f"#{which}", Choice).value
