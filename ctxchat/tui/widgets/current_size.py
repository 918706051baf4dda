"""A screen that is laid out for the size the terminal has now, whatever sizes it had in between."""

from __future__ import annotations

from typing import TypeVar

from textual import on
from textual.events import Resize
from textual.screen import Screen

_Result = TypeVar("_Result")


class CurrentSizeScreen(Screen[_Result]):
    """The base of all our screens, which drops outdated sizes. Textual (8.2) tells a screen its size again whenever it was laid
    out for another one, so that after two quick changes of size each brings back the other, without end. Only the newest size is
    true."""

    @on(Resize)
    def drop_old_size(self, event: Resize) -> None:
        """Drop a size that is gone."""
        if event.size != self.app.size:
            event.prevent_default()
            event.stop()
