"""Words that are pressed: by Enter where they have the focus, or by a click."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click
from textual.widgets import Static


class Pressable(Static, can_focus=True):
    """A widget that can be pressed by key or click, which calls its `action_press`."""

    BINDINGS = [("enter,space", "press", "Press")]

    key_words: Sequence[tuple[str, str]] = (("enter", "choose"),)
    """Its keys, and what each does in a word or two."""

    def action_press(self) -> None:
        """Do what pressing the widget does."""
        raise NotImplementedError

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_press()
