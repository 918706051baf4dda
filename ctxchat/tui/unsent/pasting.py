"""A paste is text from its first mark to its last: what is inside can press no key.

Textual's parser reads escape sequences inside a bracketed paste as keys (seen with 8.2), and some terminals let them through; so
control characters are taken out before it sees them. Knows no widget.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver

from ctxchat.tui.first_frame import in_browser

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

    def __init__(self, debug: bool = False, early: int = 0) -> None:
        super().__init__(debug)
        self._filter = PasteFilter()
        self._early = early

    def feed(self, data: str) -> Iterable[Any]:
        if self._early:
            data, self._early = entered(data, self._early)
        kept = self._filter.feed(data)
        return () if data and not kept else super().feed(kept)


def entered(data: str, early: int) -> tuple[str, int]:
    """What was typed, with Enter for each new line among its first `early` bytes, and how many such bytes are still to come."""
    taken = data.encode("utf-8", "surrogateescape")[:early].decode("utf-8", "ignore")
    rest = max(0, early - len(data.encode("utf-8", "surrogateescape")))
    return taken.replace("\n", "\r") + data[len(taken) :], rest


def make_pastes_safe(early: int = 0) -> None:
    """Let Textual's driver use our parser, which takes the first `early` bytes for typed in front of an ordinary terminal. The
    driver, that of a terminal or of a browser, offers no way to hand one in, so its module's name is set."""
    driver = import_module("textual.drivers.web_driver") if in_browser() else linux_driver
    setattr(driver, "XTermParser", partial(PasteSafeParser, early=early))  # noqa: B010
    setattr(driver, "getincrementaldecoder", forgiving)  # noqa: B010


def forgiving(encoding: str) -> partial[codecs.IncrementalDecoder]:
    """What is no UTF-8 (a paste of binary data, a terminal of another encoding) becomes `\ufffd`: Textual's own decoder raises,
    and the draft would be gone with the interface."""
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")
