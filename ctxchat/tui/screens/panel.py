"""What the screens over the chat have in common: a heading, keys at the bottom, a way back, and errors said instead of raised."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from ctxchat.config.files import Loaded
from ctxchat.core.errors import CtxchatError
from ctxchat.tui.reading.text import clean
from ctxchat.tui.transcript.lines import spread
from ctxchat.tui.widgets.line import Line

Result = TypeVar("Result")
Value = TypeVar("Value")

MUTED = "$text-muted"


class Heading(Line):
    """What this is at the left, what it says at the right: the longest of several ways to say it that fits."""

    def __init__(self, left: str = "") -> None:
        super().__init__(classes="panel-heading")
        self._left = Content.styled(left, "bold $text-accent")
        self._rights: Sequence[Content] = ()

    def show(self, left: str, *rights: Content | str) -> None:
        """From now on; what follows three spaces in `left` is its quieter part. `rights` the longest first."""
        name, _, rest = clean(left).partition("   ")
        self._left = Content.assemble((name, "bold $text-accent"), (f"   {rest}" if rest else "", MUTED))
        self._rights = [r if isinstance(r, Content) else Content.styled(clean(r), MUTED) for r in rights]
        self.refresh()

    def line(self, width: int) -> Content:
        for left in (40, 24):  # a shorter way to say it rather than half a title
            room = width - min(self._left.cell_length, left) - 2
            if right := next((r for r in self._rights if r.cell_length <= room), None):
                return spread(self._left, right, width)
        return spread(self._left, Content(""), width)


class Over(Screen[Result]):
    """Lies over the chat, or over another such screen."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """As Textual's, which closes whatever is on top: this one, and before it what lies over it; once."""
        stack = self.app.screen_stack
        if self not in stack:
            return AwaitComplete.nothing()
        for above in reversed(stack[stack.index(self) + 1 :]):
            above.dismiss(None)
        return super().dismiss(result)


class Panel(Over[Result]):
    """A screen over the chat. Esc leaves a field first, then the screen."""

    def action_back(self) -> None:
        """Out of a field, or out of the screen with nothing chosen."""
        if isinstance(self.focused, Input) and (home := self.home):
            self.set_focus(home)
        else:
            self.dismiss(None)

    def reread(self, loaded: Loaded) -> None:
        """The settings were edited."""

    def again(self) -> None:
        """The key that opened this was pressed once more."""
        self.dismiss(None)

    @property
    def home(self) -> Widget | None:
        """Where the focus is at rest; None for nowhere in particular."""
        return None

    async def attempt(self, work: Awaitable[Value]) -> Value | None:
        """The result of something that may fail; a failure is said and gives None."""
        try:
            return await work
        except CtxchatError as problem:
            self.notify(clean(str(problem)), severity="error", markup=False)
            return None
