"""A paste is text from its first mark to its last: what is inside can press no key.

Textual's parser reads escape sequences inside a bracketed paste as keys (seen with 8.2), and some terminals let them through; so
control characters are taken out before it sees them. Knows no widget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver

START, END = "\x1b[200~", "\x1b[201~"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class PasteFilter:
    """What a terminal sends, piece by piece, with the control characters inside pastes left out."""

    def __init__(self) -> None:
        self._inside = False
        self._held = ""  # inside a paste: what may be the beginning of its end
        self._tail = ""  # outside: what may be the beginning of a start

    def feed(self, data: str) -> str:
        """The next piece, made harmless. May be empty while a piece is held back."""
        kept: list[str] = []
        while data:
            step, data = self._paste(data) if self._inside else self._plain(data)
            kept.append(step)
        return "".join(kept)

    def _plain(self, data: str) -> tuple[str, str]:
        seen = self._tail + data
        at = seen.find(START)
        if at < 0:
            self._tail = seen[-(len(START) - 1) :]
            return data, ""
        self._inside, end = True, at + len(START) - len(self._tail)
        self._tail = ""
        return data[:end], data[end:]

    def _paste(self, data: str) -> tuple[str, str]:
        data, self._held = self._held + data, ""
        at = data.find(END)
        if at >= 0:
            self._inside = False
            return _CONTROLS.sub("", data[:at]) + END, data[at + len(END) :]
        keep = next((n for n in range(len(END) - 1, 0, -1) if data.endswith(END[:n])), 0)
        self._held = data[len(data) - keep :]
        return _CONTROLS.sub("", data[: len(data) - keep]), ""


class PasteSafeParser(XTermParser):
    """Textual's parser behind the filter."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._filter = PasteFilter()

    def feed(self, data: str) -> Iterable[Any]:
        kept = self._filter.feed(data)
        return () if data and not kept else super().feed(kept)


def make_pastes_safe() -> None:
    """Let Textual's driver use our parser. It offers no way to hand one in, so its module's name is set."""
    setattr(linux_driver, "XTermParser", PasteSafeParser)  # noqa: B010
