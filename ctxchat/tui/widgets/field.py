"""A field of one line, for everything that is asked for in a few words. Knows nothing of what is asked."""

from __future__ import annotations

from textual.widgets import Input

from ctxchat.tui.reading.text import LONGEST, clean


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
