"""The one `Masking` of a start: its key, which is the machine's own, and what the settings say of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ctxchat.config.schema import Settings
from ctxchat.core.secrets import Masking
from ctxchat.storage.files import write_private

KEY = "masking.key"
LENGTH = 32


def masking_of(data: Path, settings: Settings) -> Masking:
    """With the key that lies in the data folder; one is made where there is none. A folder that takes none costs marks that stay
    the same from one start to the next. Reads and writes a file."""
    path = data / KEY
    key = b""
    with suppress(OSError):
        if not path.exists():
            with suppress(FileExistsError):  # another window was quicker
                write_private(path, os.urandom(LENGTH))
        key = path.read_bytes()[:LENGTH]
    masking = Masking(key if len(key) == LENGTH else os.urandom(LENGTH))
    adapt(masking, settings)
    return masking


def adapt(masking: Masking, settings: Settings) -> None:
    """From now on by these settings."""
    masking.on, masking.allowed = settings.secrets.mask, settings.secrets.allow
