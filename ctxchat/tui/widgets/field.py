"""Textual's fields, editors and lists, so that no text is too long for them and no window too small. Knows nothing of what is
asked."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from textual.document._document import EditResult, Location
from textual.document._edit import Edit
from textual.events import Paste
from textual.keys import REPLACED_KEYS, key_to_character
from textual.widgets import Input, OptionList, TextArea

from ctxchat.presentation.text import MAX_LAID_OUT_CHARS, MAX_SHOWN_CHARS, WIDEST, clean, editable
from ctxchat.tui.graphemes import sign_after, sign_before

_RARE_LINE_END = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def with_newlines(text: str) -> str:
    """The text with every line end there is, old and rare ones too, as a newline."""
    return _RARE_LINE_END.sub("\n", text)


class Field(Input):
    """An `Input` that no text can hold up. A text too long to be edited here stays as it is until something is written in its
    place, and says so; what is pasted and too long is not taken, which is said too.
    """

    def __init__(self, text: str = "", *, placeholder: str = "", **given: object) -> None:
        long = len(text) > MAX_LAID_OUT_CHARS
        self._as_it_was = text if long else ""
        super().__init__(
            "" if long else clean(text),
            placeholder=f"{len(text):,} characters stay unless you write here" if long else placeholder,
            max_length=MAX_LAID_OUT_CHARS,
            **given,  # type: ignore[arg-type]
        )

    @property
    def text(self) -> str:
        """The field's text, or the value from before if nothing was written."""
        return self.value or self._as_it_was

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Signs too that Textual calls by names of its own, such as `slash`: a footer must not offer what would be written."""
        return super().check_consume_key(key, character or key_to_character(REPLACED_KEYS.get(key, key)))

    def action_delete_left(self) -> None:
        if self.selection.is_empty:
            self.delete(sign_before(self.value, self.cursor_position), self.cursor_position)
        else:
            self.delete_selection()

    def action_delete_right(self) -> None:
        if self.selection.is_empty:
            self.delete(self.cursor_position, sign_after(self.value, self.cursor_position))
        else:
            self.delete_selection()

    def action_cursor_left(self, select: bool = False) -> None:
        if select or not self.selection.is_empty:
            super().action_cursor_left(select)
        else:
            self.cursor_position = sign_before(self.value, self.cursor_position)

    def action_cursor_right(self, select: bool = False) -> None:
        at = self.cursor_position
        if select or not self.selection.is_empty or at == len(self.value):
            super().action_cursor_right(select)
        else:
            self.cursor_position = sign_after(self.value, at)

    def restricted(self) -> None:
        self.notify(f"A line takes {MAX_LAID_OUT_CHARS:,} characters. The paste was left out.", markup=False)


class TextEditor(TextArea):
    """Textual's editor, but its keys take signs whole, and a line ends at every line end there is."""

    def get_cursor_left_location(self) -> Location:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        return (row, sign_before(line, column)) if column else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        return (row, sign_after(line, column)) if column < len(line) else super().get_cursor_right_location()

    def edit(self, edit: Edit) -> EditResult:
        return super().edit(replace(edit, text=with_newlines(edit.text)))

    def load_text(self, text: str) -> None:
        super().load_text(with_newlines(text))


class PasteLimitedEditor(TextEditor):
    """A `TextArea` that no paste can hold up: one that is too long is not taken, which is said."""

    async def _on_paste(self, event: Paste) -> None:
        line = self.document.get_line(self.cursor_location[0]) + event.text
        if editable(line) < len(line) or len(self.text) + len(event.text) > MAX_SHOWN_CHARS:
            event.stop()
            event.prevent_default()
            self.notify(
                f"A line takes {WIDEST:,} characters here, all {MAX_SHOWN_CHARS:,}. The paste was left out.",
                markup=False,
            )


class AnySizeList(OptionList):
    """A list of options of which one can be chosen."""

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
