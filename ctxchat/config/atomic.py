"""Writes small files of the program: completely or not at all, and by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctxchat import atomic_write
from ctxchat.core.errors import CtxchatError

LOCK_TIMEOUT_S = 5.0
"""Seconds to wait for another process, which needs milliseconds."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock for a file while it is read and rewritten, so that no other process writes in between."""
    from filelock import FileLock  # takes 80 ms, which the start of the program saves

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(
        path.with_name(f".{path.name}.lock"),
        timeout=LOCK_TIMEOUT_S,
        mode=0o600,
        poll_interval=0.01,
        fallback_to_soft=False,
    ):
        yield


def write_text(path: Path, text: str, mode: int = 0o600) -> None:
    """Put the text in place of the file (through a symlink), keeping its owner, permissions and other names. A new one gets
    `mode`.

    Makes missing folders, for their owner only. Raises NotSaved; the old file is whole then.
    """
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic_write.write_atomically(target, text.encode(), new_mode=mode)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise NotSaved(
            f"{path} could not be saved: {why}. Nothing was changed.",
            "Give yourself write permission and room there, or set CTXCHAT_CONFIG_DIR to another folder.",
        ) from problem


class NotSaved(CtxchatError, OSError):
    """A file of the settings could not be written."""
