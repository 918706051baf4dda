"""Reading a text file that somebody else wrote: its head where it is huge, a word of warning where it is no text.

Blocking; callers go through a thread.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ctxchat.repository_files import read_checked


class TextFile(msgspec.Struct, frozen=True):
    """What could be read, and what was wrong, as the rest of a sentence (empty when nothing was)."""

    text: str
    problem: str = ""


def read_text(path: Path, max_bytes: int, within: Path | None = None) -> TextFile:
    """At most `max_bytes` of a file as text, `within` a folder of somebody else's. Never raises OSError; cuts fall on character
    boundaries."""
    found = read_checked(path, within, max_bytes + 1)
    if found.problem:
        return TextFile("", found.problem)
    if b"\0" in found.data[:8192]:
        return TextFile("", "is not a text file")
    huge = len(found.data) > max_bytes
    text = found.data[:max_bytes].decode("utf-8-sig", errors="ignore" if huge else "replace")
    long = f"is {max(found.size, max_bytes) // 1000} kB long; only its first {max_bytes // 1000} kB are used"
    return TextFile(text, long if huge else "")
