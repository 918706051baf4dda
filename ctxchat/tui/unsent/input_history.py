"""Keeps the messages that were sent, oldest first, in a small file of JSON lines if one is given. Knows no widget."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ctxchat.config.atomic import write_text

MAX_ENTRIES = 500
MAX_ENTRY_CHARS = 20_000


class InputHistory:
    """Walks up and down through what was sent; the draft waits at the bottom."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lines = _load_history(file) if file else []
        self._place = len(self._lines)
        self._draft = ""

    def add_entry(self, text: str) -> bool:
        """Add a sent message. If the file cannot be written, it is left alone from then on, and the messages are kept for this
        run only. False if this one is not kept after this run."""
        if text.strip() and len(text) <= MAX_ENTRY_CHARS and (not self._lines or self._lines[-1] != text):
            self._lines = [*self._lines, text][-MAX_ENTRIES:]
            if self._file:
                try:
                    _append(self._file, text)
                except OSError:
                    self._file = None
        self._place, self._draft = len(self._lines), ""
        return not text.strip() or (self._file is not None and self._lines[-1:] == [text])

    def back(self, draft: str) -> str | None:
        """The one before, or None at the oldest."""
        if self._place == 0:
            return None
        if self._place == len(self._lines):
            self._draft = draft
        self._place -= 1
        return self._lines[self._place]

    def forward(self) -> str | None:
        """The one after, at last the draft; None when already there."""
        if self._place >= len(self._lines):
            return None
        self._place += 1
        return self._draft if self._place == len(self._lines) else self._lines[self._place]


def _append(file: Path, text: str) -> None:
    """Append a line in a single write, since other windows write to the same file; it begins with a line end, since a kill may
    have left half a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"\n{json.dumps(text)}\n".encode())
    finally:
        os.close(handle)


def _load_history(file: Path) -> list[str]:
    """The newest messages; what is damaged is left out. A file that has grown long is made short."""
    try:
        found = [text for line in file.read_text("utf-8", "replace").split("\n") for text in _entry_texts(line)]
    except OSError:
        return []
    if len(found) > 4 * MAX_ENTRIES:
        with suppress(OSError):  # the folder may be read-only; what was read is there all the same
            write_text(file, "".join(json.dumps(text) + "\n" for text in found[-MAX_ENTRIES:]))
    return found[-MAX_ENTRIES:]


def _entry_texts(written: str) -> Iterator[str]:
    """The texts in a line of the file: one, or several where something glued them; without those that are damaged."""
    at, decoder = 0, json.JSONDecoder()
    while (at := written.find('"', at)) >= 0:
        try:
            line, at = decoder.raw_decode(written, at)
        except (ValueError, RecursionError):
            return
        if line:
            yield line
