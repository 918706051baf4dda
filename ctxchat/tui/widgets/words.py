"""A text that is often another one and seldom of another height."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Words(Static):
    """Plain text as wide as its place. Textual's `Static` has the whole screen laid out with each word that changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._words = ""

    def say(self, words: str) -> None:
        """From now on; around it all stays where it is, unless it is higher or lower than before."""
        if words == self._words:
            return
        self._words, content, size = words, Content(words), self.content_size
        self.update(content, layout=content.get_height({}, size.width) != size.height if size else True)
