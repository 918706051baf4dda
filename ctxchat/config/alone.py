"""One writer at a time for a small file that the program owns (trusted folders, standing permissions)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 5.0
"""Seconds to wait for another window, which needs milliseconds."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Between reading and writing nobody else writes: another window may be about to add something too."""
    from filelock import FileLock  # 80 ms that a start need not spend

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(
        path.with_name(f".{path.name}.lock"), timeout=PATIENCE, mode=0o600, poll_interval=0.01, fallback_to_soft=False
    ):
        yield
