"""The unsent message of a session, as a file in its folder: a kill costs no word of it. Knows nothing of what is in it."""

from __future__ import annotations

import os
from pathlib import Path

from ctxchat.storage import files
from ctxchat.storage.faults import faults

NAME = "draft.json"


def keep(data: Path, session: str, draft: bytes) -> None:
    """In place of the one before; nothing to keep removes it. The file is there whole or not at all. Raises StorageError."""
    folder = files.session_folder(data, session)
    place = folder / NAME
    with faults(place):
        if not draft:
            place.unlink(missing_ok=True)
            return
        files.private_folder(folder)
        half = place.with_name(f".{NAME}.{os.getpid()}")
        half.unlink(missing_ok=True)
        with os.fdopen(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(draft)
        half.replace(place)


def read(data: Path, session: str) -> bytes:
    """What was kept, empty for nothing. Raises StorageError."""
    place = files.session_folder(data, session) / NAME
    with faults(place):
        return place.read_bytes() if place.is_file() and not place.is_symlink() else b""
