"""Saves and reads files in a session's folder: texts too large for the view, which the agent can page through, images of
messages, and the unsent message, which so survives a kill."""

from __future__ import annotations

import os
from pathlib import Path

from ctxchat.core.errors import StorageError
from ctxchat.core.messages import ATTACHED
from ctxchat.storage import private_files
from ctxchat.storage.faults import faults

FOLDER = "tool-results"
"""The folder of long texts in a session's folder; `ATTACHED` is that of images."""


def spill(folder: Path, name: str, text: str) -> str:
    """Save a text in a session's folder; its path within that folder (`tool-results/m12.txt`), which stays true in a branch.

    `name` may be any text, also such a path, and is made safe where it is not. The same text under the same name is saved once;
    another text gets a number, so that nothing is overwritten. Raises StorageError.
    """
    return _save(folder, FOLDER, name.removeprefix(f"{FOLDER}/"), text.encode("utf-8", "replace"))


def attach(folder: Path, name: str, data: bytes) -> str:
    """Save an image of a message as `spill` does a text; its path within the session's folder (`attachments/shot.png`). Raises
    StorageError."""
    return _save(folder, ATTACHED, name, data)


def _save(folder: Path, below: str, name: str, data: bytes) -> str:
    """Write data into the folder `below` of the session's folder; returns the path in the latter. Where a file of that name has
    other content, the new one gets a number."""
    target = private_files.private_folder(private_files.private_folder(folder) / below)
    safe = private_files.safe_name(name)
    stem, dot, suffix = safe.rpartition(".")
    for number in range(1, 10_000):
        place = target / (safe if number == 1 else f"{stem or suffix}-{number}{dot and f'.{suffix}'}")
        with faults(place):
            if place.is_symlink():
                continue
            if not place.exists():
                private_files.write_private(place, data)
            elif place.read_bytes() != data:
                continue
        return f"{below}/{place.name}"
    raise StorageError(f"{target} holds too many files named {safe}.", "Remove some of them.")


def read_attached(folder: Path, path: str) -> bytes:
    """The data of an image, by the path that `attach` returned. Raises StorageError when it is missing or the path leads
    elsewhere."""
    name = path.removeprefix(f"{ATTACHED}/")
    place = folder / ATTACHED / name
    if name != private_files.safe_name(name) or place.is_symlink() or place.parent.is_symlink():
        raise StorageError(f"{path!r} is no saved file of this session.")
    if not place.is_file():
        raise StorageError(f"{path} is missing.", "What was said about it is still in the conversation.")
    with faults(place):
        return place.read_bytes()


DRAFT = "draft.json"


def keep_draft(data: Path, session: str, draft: bytes) -> None:
    """Save the unsent message in place of an earlier one, completely or not at all; an empty one removes the file. Raises
    StorageError."""
    folder = private_files.session_folder(data, session)
    place = folder / DRAFT
    with faults(place):
        if not draft:
            place.unlink(missing_ok=True)
            return
        private_files.private_folder(folder)
        unfinished = place.with_name(f".{DRAFT}.{os.getpid()}")
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(draft)
        unfinished.replace(place)


def kept_draft(data: Path, session: str) -> bytes:
    """The saved unsent message; empty where there is none. `data` is the folder of all sessions, as in `keep_draft`. Raises
    StorageError."""
    place = private_files.session_folder(data, session) / DRAFT
    with faults(place):
        return place.read_bytes() if place.is_file() and not place.is_symlink() else b""
