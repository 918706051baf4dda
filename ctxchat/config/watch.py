"""Finds out whether files have changed since the last check. It checks only when asked, and does not know the files' meaning."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int]
"""Time of change, size and inode of a file. The inode also changes where an editor writes a new file and renames it."""


PATTERNS = ("*.toml", "*.md", "*/*.md")
"""The files watched in a folder: themes, agents, command files, skills."""


class Watch:
    """Watches files, and TOML and Markdown files in folders. Files that do not exist yet are watched as well."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = tuple(dict.fromkeys(places))
        self._seen = self._stamps_now()

    def add_places(self, places: Iterable[Path]) -> None:
        """Watch further files and folders for changes from now on. Reads the disk."""
        new = Watch(place for place in places if place not in self._places)
        self._places += new._places
        self._seen |= new._seen

    def changed(self) -> frozenset[Path]:
        """The files created, removed or written since the last call. Fast, but reads the disk: call it off the event loop."""
        before, self._seen = self._seen, self._stamps_now()
        return frozenset(p for p in before.keys() | self._seen.keys() if before.get(p) != self._seen.get(p))

    def _stamps_now(self) -> dict[Path, Stamp]:
        stamps = ((file, _stamp(file)) for place in self._places for file in _files(place))
        return {file: stamp for file, stamp in stamps if stamp}


def _files(place: Path) -> tuple[Path, ...]:
    """The files at a place: itself, or those in a folder that are watched."""
    try:
        if place.is_dir() and place.suffix not in {".toml", ".json"}:
            return tuple(file for pattern in PATTERNS for file in place.glob(pattern))
        return (place,)
    except OSError:
        return ()


def _stamp(file: Path) -> Stamp | None:
    """The stamp of a file; None where it does not exist."""
    try:
        info = file.stat()
    except (OSError, ValueError):
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino
