"""Whether files have changed since they were last looked at. Looks only when asked; knows nothing of what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int]
"""When a file was last written, how large it is, and which one it is: an editor that writes beside and renames counts too."""


PATTERNS = ("*.toml", "*.md", "*/*.md")
"""What is looked for in a folder: themes, agents, command files, skills."""


class Watch:
    """Files and folders (their TOML and Markdown files) under watch. What is not there yet is watched for as well."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = tuple(dict.fromkeys(places))
        self._seen = self._stamps_now()

    def add_places(self, places: Iterable[Path]) -> None:
        """Watch these as well, from as they are now. Touches the disk."""
        new = Watch(place for place in places if place not in self._places)
        self._places += new._places
        self._seen |= new._seen

    def changed(self) -> frozenset[Path]:
        """The files that came, went or were written since the last call. Quick, but touches the disk: off the event loop."""
        before, self._seen = self._seen, self._stamps_now()
        return frozenset(p for p in before.keys() | self._seen.keys() if before.get(p) != self._seen.get(p))

    def _stamps_now(self) -> dict[Path, Stamp]:
        stamps = ((file, _stamp(file)) for place in self._places for file in _files(place))
        return {file: stamp for file, stamp in stamps if stamp}


def _files(place: Path) -> tuple[Path, ...]:
    try:
        if place.is_dir() and place.suffix not in {".toml", ".json"}:
            return tuple(file for pattern in PATTERNS for file in place.glob(pattern))
        return (place,)
    except OSError:
        return ()


def _stamp(file: Path) -> Stamp | None:
    try:
        info = file.stat()
    except (OSError, ValueError):
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino
