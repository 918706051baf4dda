"""Words that fit themselves to their place: a line, and a text that is often another one and seldom of another height."""

from __future__ import annotations

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static


class Line(Widget):
    """One line that fits itself to its width."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    class TargetPressed(Message):
        """A click on a target (`widgets.lines.target`): `what` is `key` or `group` for what it is `about`, else a command with
        that as its argument."""

        def __init__(self, what: str, about: str) -> None:
            super().__init__()
            self.what, self.about = what, about

    def draw_line(self, width: int) -> Content:
        """The content of the line in so many cells."""
        raise NotImplementedError

    def render(self) -> Content:
        return self.draw_line(self.size.width)

    def on_click(self, event: Click) -> None:
        if press := event.style.meta.get("press"):
            event.stop()
            self.post_message(self.TargetPressed(*press))


class Words(Static):
    """Plain text as wide as its place. Textual's `Static` has the whole screen laid out with each word that changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._words = ""

    def set_words(self, words: str) -> None:
        """Show these words from now on. The layout around the line is kept, unless its height changes."""
        if words == self._words:
            return
        self._words, content, size = words, Content(words), self.content_size
        self.update(content, layout=content.get_height({}, size.width) != size.height if size else True)
