"""Texts too large for the view, as files in the session's folder that the agent can page through."""

from __future__ import annotations

from pathlib import Path

from ctxchat.core.errors import StorageError
from ctxchat.storage import files
from ctxchat.storage.faults import faults

FOLDER = "tool-results"


def spill(folder: Path, name: str, text: str) -> str:
    """Save a text in a session's folder; its path within that folder (`tool-results/m12.txt`), which a fork keeps.

    `name` may be any text and is made safe; a safe one stays as it is. The same text under the same name is saved once;
    another text gets another name: nothing is overwritten. Raises StorageError.
    """
    target = files.private_folder(files.private_folder(folder) / FOLDER)
    safe = files.safe_name(name.removeprefix(f"{FOLDER}/"))
    data = text.encode("utf-8", "replace")
    stem, dot, suffix = safe.rpartition(".")
    for number in range(1, 10_000):
        place = target / (safe if number == 1 else f"{stem or suffix}-{number}{dot and f'.{suffix}'}")
        with faults(place):
            if place.is_symlink():
                continue
            if not place.exists():
                files.write_private(place, data)
            elif place.read_bytes() != data:
                continue
        return f"{FOLDER}/{place.name}"
    raise StorageError(f"{target} holds too many files named {safe}.", "Remove some of them.")


def read_spilled(folder: Path, path: str) -> str:
    """A saved text by the path `spill` gave. Raises StorageError when it is missing or the path leads elsewhere."""
    name = path.removeprefix(f"{FOLDER}/")
    place = folder / FOLDER / name
    if name != files.safe_name(name) or place.is_symlink() or (folder / FOLDER).is_symlink():
        raise StorageError(f"{path!r} is no saved text of this session.")
    if not place.is_file():
        raise StorageError(f"{path} is missing.", "Its head and tail are still in the conversation.")
    with faults(place):
        return place.read_text("utf-8", "replace")
