"""What the screens with one list have in common: rows, and a field whose words narrow them. Knows nothing of what is listed."""

from __future__ import annotations

from typing import Any, TypeVar

from textual.widget import Widget
from textual.widgets import Input

from ctxchat.tui.screens.panel import Panel
from ctxchat.tui.widgets.field import Field
from ctxchat.tui.widgets.rows import Rows

Result = TypeVar("Result")


class Listing(Panel[Result]):
    """A panel with one `Rows` and one field. Who derives from it yields both, and says what the words leave in `narrowed`."""

    def narrowed(self) -> None:
        """The words in the field are others."""
        raise NotImplementedError

    @staticmethod
    def field(words: str) -> Input:
        """The field; `words` are shown while it is empty."""
        return Field(placeholder=words, classes="find", compact=True)

    @property
    def words(self) -> str:
        """What stands in the field."""
        return self.query_one(Input).value

    @property
    def rows(self) -> Rows[Any]:
        """The list."""
        return self.query_one(Rows)

    @property
    def home(self) -> Widget | None:
        return self.rows

    def on_input_changed(self, event: Input.Changed) -> None:
        event.input.set_class(bool(event.value), "-filled")
        self.narrowed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.set_focus(self.home)

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))
