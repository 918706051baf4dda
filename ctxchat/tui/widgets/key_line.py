"""The line of keys at the bottom: those that matter now."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from ctxchat.tui.commands import Keys, shown_key
from ctxchat.tui.widgets.line import Line

BETWEEN = "  "

IDLE_KEYS = (
    ("send", "send"),
    ("newline", "line"),
    ("context", "context"),
    ("archive", "archive"),
    ("xray", "x-ray"),
    ("free_up", "free up"),
    ("palette", "all commands"),
)
BUSY_KEYS = (("interrupt", "stop"), ("send", "send next"), ("send_later", "after the turn"), *IDLE_KEYS[2:])
FOREMOST = ("interrupt", "send", "send_later", "free_up", "context", "palette", "archive", "xray", "newline")
"""Which are kept where there is no room for all, the most useful first; what is not named here stays as long as it fits."""


class KeyLine(Line):
    """The keys that matter now, as many as fit whole: the most useful of them, in their usual order."""

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
        pairs = [(action, pair) for action, words in self._wanted if (pair := self._pair(action, words))]
        room = width + len(BETWEEN)
        fitting: list[tuple[str, Content]] = []
        for each in sorted(pairs, key=lambda pair: FOREMOST.index(pair[0]) if pair[0] in FOREMOST else -1):
            room -= each[1].cell_length + len(BETWEEN)
            if room < 0:
                break
            fitting.append(each)
        return Content(BETWEEN).join([pair for action, pair in pairs if (action, pair) in fitting])

    def _pair(self, action: str, words: str) -> Content | None:
        key = action[1:] if action.startswith("=") else next(iter(self._keys.get(action, ())), "")
        return Content.assemble((shown_key(key), "$text-accent"), (f" {words}", "$text-muted")) if key else None
