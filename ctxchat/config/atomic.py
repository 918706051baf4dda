"""Files written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Put the text in place of the file (through a symlink), keeping its permissions; a new one gets `mode`.

    Makes missing folders, for their owner only. Raises OSError; the old file is whole then.
    """
    import tempfile  # three milliseconds that a start without writing need not spend

    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if target.exists():
        mode = target.stat().st_mode & 0o777
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
