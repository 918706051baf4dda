"""Files in the session's folder: texts too large for the view, which the agent can page through, and images of messages."""

from __future__ import annotations

from pathlib import Path

from ctxchat.core.errors import StorageError
from ctxchat.core.messages import ATTACHED
from ctxchat.storage import files
from ctxchat.storage.faults import faults

FOLDER = "tool-results"


def spill(folder: Path, name: str, text: str) -> str:
    """Save a text in a session's folder; its path within that folder (`tool-results/m12.txt`), which a fork keeps.

    `name` may be any text and is made safe; a safe one stays as it is. The same text under the same name is saved once;
    another text gets another name: nothing is overwritten. Raises StorageError.
    """
    return _save(folder, FOLDER, name.removeprefix(f"{FOLDER}/"), text.encode("utf-8", "replace"))


def attach(folder: Path, name: str, data: bytes) -> str:
    """Save an image of a message, with the same care; its path within the session's folder (`attachments/shot.png`). Raises
    StorageError."""
    return _save(folder, ATTACHED, name, data)


def _save(folder: Path, below: str, name: str, data: bytes) -> str:
    target = files.private_folder(files.private_folder(folder) / below)
    safe = files.safe_name(name)
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
        return f"{below}/{place.name}"
    raise StorageError(f"{target} holds too many files named {safe}.", "Remove some of them.")


def read_attached(folder: Path, path: str) -> bytes:
    """An image by the path `attach` gave. Raises StorageError when it is missing or the path leads elsewhere."""
    name = path.removeprefix(f"{ATTACHED}/")
    place = folder / ATTACHED / name
    if name != files.safe_name(name) or place.is_symlink() or place.parent.is_symlink():
        raise StorageError(f"{path!r} is no saved file of this session.")
    if not place.is_file():
        raise StorageError(f"{path} is missing.", "What was said about it is still in the conversation.")
    with faults(place):
        return place.read_bytes()
