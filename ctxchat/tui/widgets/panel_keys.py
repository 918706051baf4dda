"""The line of keys of a screen over the chat: the way back always, of the others as many as fit whole."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

WAYS_BACK = frozenset({"back", "leave", "say(False)"})
"""Actions whose key is shown however narrow it gets."""

BETWEEN = 3
"""Columns a key takes beside its words: one inside, two after it."""


class PanelKeys(Footer):
    """Textual's own, which would cut the end off: the end is where the way back stands."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def compose(self) -> ComposeResult:
        keys = [key for key in super().compose() if isinstance(key, FooterKey)]
        back = [key for key in keys if key.action in WAYS_BACK]
        room = self.screen.size.width - sum(_columns(key) for key in back)
        for key in (key for key in keys if key not in back):
            if _columns(key) <= room:  # what is too long gives its place to what is not
                room -= _columns(key)
                yield key
        yield from back

    def on_resize(self) -> None:
        self.refresh(recompose=True)


def _columns(key: FooterKey) -> int:
    return len(key.key_display) + len(key.description) + BETWEEN
