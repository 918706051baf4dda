"""Textual's fields, editors and lists, so that no text is too long for them and no window too small. Knows nothing of what is
asked."""

from __future__ import annotations

from typing import Literal

from textual.events import Paste
from textual.widgets import Input, OptionList, TextArea

from ctxchat.presentation.text import LONGEST, MOST, WIDEST, clean, editable


class Field(Input):
    """An `Input` that no text can hold up. A text too long to be edited here stays as it is until something is written in its
    place, and says so; what is pasted and too long is not taken, which is said too.
    """

    def __init__(self, text: str = "", *, placeholder: str = "", **given: object) -> None:
        long = len(text) > LONGEST
        self._as_it_was = text if long else ""
        super().__init__(
            "" if long else clean(text),
            placeholder=f"{len(text):,} characters stay unless you write here" if long else placeholder,
            max_length=LONGEST,
            **given,  # type: ignore[arg-type]
        )

    @property
    def text(self) -> str:
        """What was written, or what was there before where nothing was."""
        return self.value or self._as_it_was

    def restricted(self) -> None:
        self.notify(f"A line takes {LONGEST:,} characters. The paste was left out.", markup=False)


class Editor(TextArea):
    """A `TextArea` that no paste can hold up: one that is too long is not taken, which is said."""

    async def _on_paste(self, event: Paste) -> None:
        line = self.document.get_line(self.cursor_location[0]) + event.text
        if editable(line) < len(line) or len(self.text) + len(event.text) > MOST:
            event.stop()
            event.prevent_default()
            self.notify(f"A line takes {WIDEST:,} characters here, all {MOST:,}. The paste was left out.", markup=False)


class AnySizeList(OptionList):
    """One of its options can be chosen."""

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
