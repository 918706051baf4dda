"""Reading a text file that somebody else wrote: its head where it is huge, a word of warning where it is no text.

Blocking; callers go through a thread.
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class TextFile(msgspec.Struct, frozen=True):
    """What could be read, and what was wrong, as the rest of a sentence (empty when nothing was)."""

    text: str
    problem: str = ""


def read_text(path: Path, most: int) -> TextFile:
    """At most `most` bytes of a file as text. Never raises OSError; cuts fall on character boundaries."""
    try:
        if not path.is_file():
            return TextFile("", "is a link that leads nowhere" if path.is_symlink() else "is no regular file")
        size = path.stat().st_size
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        return TextFile("", f"could not be read: {error.strerror or error}")
    if b"\0" in raw[:8192]:
        return TextFile("", "is not a text file")
    huge = len(raw) > most
    text = raw[:most].decode("utf-8-sig", errors="ignore" if huge else "replace")
    problem = f"is {max(size, len(raw)) // 1000} kB long; only its first {most // 1000} kB are used" if huge else ""
    return TextFile(text, problem)
