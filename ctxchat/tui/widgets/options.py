"""A list of Textual's in any window: page keys do nothing where there is no room for a line of it, and Textual's raise there."""

from __future__ import annotations

from typing import Literal

from textual.widgets import OptionList


class AnySizeList(OptionList):
    """One of its options can be chosen."""

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
