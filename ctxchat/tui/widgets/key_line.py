"""The line of keys at the bottom: those that matter now."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from ctxchat.tui.commands import Keys, shown_key
from ctxchat.tui.widgets.blocks import Line

IDLE_KEYS = (
    ("send", "send"),
    ("newline", "line"),
    ("context", "context"),
    ("archive", "archive"),
    ("xray", "x-ray"),
    ("free_up", "free up"),
    ("palette", "all commands"),
)
BUSY_KEYS = (("interrupt", "stop"), ("send", "queue"), *IDLE_KEYS[2:])


class KeyLine(Line):
    """The keys that matter now, as many as fit."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(id="keys")
        self._keys = keys
        self._wanted: Sequence[tuple[str, str]] = ()

    def use_keys(self, keys: Keys) -> None:
        """These from now on."""
        self._keys = keys
        self.refresh()

    def show(self, wanted: Sequence[tuple[str, str]]) -> None:
        """Pairs of an action of the key table (or a plain key after `=`) and a word or two."""
        if wanted != self._wanted:
            self._wanted = wanted
            self.refresh()

    def line(self, width: int) -> Content:
        shown = Content("")
        for action, words in self._wanted:
            key = action[1:] if action.startswith("=") else next(iter(self._keys.get(action, ())), "")
            if not key:
                continue
            pair = Content.assemble((shown_key(key), "$text-accent"), (f" {words}", "$text-muted"))
            joined = shown.append("   ").append(pair) if shown else pair
            if joined.cell_length > width:
                break
            shown = joined
        return shown
