"""Small files that the program owns: written whole or not at all, by one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctxchat import atomic_write
from ctxchat.core.errors import CtxchatError

LOCK_TIMEOUT_S = 5.0
"""Seconds to wait for another window, which needs milliseconds."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Between reading and writing nobody else writes: another window may be about to add something too."""
    from filelock import FileLock  # 80 ms that a start need not spend

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
