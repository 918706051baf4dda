"""What was typed before, oldest first; kept in a small file of JSON lines where one is handed in. Knows no widget."""

from __future__ import annotations

import json
from pathlib import Path

MOST = 500
LONGEST = 20_000


class InputHistory:
    """Walks up and down through what was sent; the draft waits at the bottom."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lines = _read(file) if file else []
        self._place = len(self._lines)
        self._draft = ""

    def add(self, text: str) -> None:
        """What was sent. A file that cannot be written costs the memory of it, nothing else."""
        if text.strip() and len(text) <= LONGEST and (not self._lines or self._lines[-1] != text):
            self._lines = [*self._lines, text][-MOST:]
            if self._file:
                try:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    self._file.write_text("".join(json.dumps(line) + "\n" for line in self._lines), "utf-8")
                    self._file.chmod(0o600)
                except OSError:
                    self._file = None
        self._place, self._draft = len(self._lines), ""

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


def _read(file: Path) -> list[str]:
    try:
        lines = [json.loads(line) for line in file.read_text("utf-8", "replace").splitlines()]
    except (OSError, ValueError):
        return []
    return [line for line in lines if isinstance(line, str)][-MOST:]
