"""A screen that is laid out for the size the terminal has now, whatever sizes it had in between."""

from __future__ import annotations

from typing import TypeVar

from textual import on
from textual.events import Resize
from textual.screen import Screen

_Result = TypeVar("_Result")


class CurrentSizeScreen(Screen[_Result]):
    """What all our screens are.

    Textual (seen with 8.2) tells a screen its size again whenever it was laid out for another one. Where two sizes came in quick
    succession each brings back the other, without end. Only the newest is true: the others are dropped.
    """

    @on(Resize)
    def drop_old_size(self, event: Resize) -> None:
        """Drop a size that is gone."""
        if event.size != self.app.size:
            event.prevent_default()
            event.stop()
