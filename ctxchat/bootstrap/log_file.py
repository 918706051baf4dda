"""The log of `--log FILE`, for reports of faults: what happened, when and how long it took.

No word of what was said stands in it, and secrets are masked. Knows the standard library's logging and nothing of sessions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from ctxchat.core.errors import UsageError
from ctxchat.core.sanitize import clean
from ctxchat.core.secrets import masked


class _OneLineFormatter(logging.Formatter):
    """A record on one line, its traceback below it, in universal time."""

    converter: Callable[[float | None], time.struct_time] = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return clean(masked(super().format(record)))


def log_to(file: str) -> None:
    """Append to this file from now on: all that ctxchat logs, and warnings of the libraries. Raises UsageError where it cannot be
    written."""
    path = Path(file).expanduser().absolute()
    root = logging.getLogger()
    if any(isinstance(each, logging.FileHandler) and each.baseFilename == str(path) for each in root.handlers):
        return  # an editor has several programs in one process
    try:
        path.touch(mode=0o600)
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"--log {file}: {problem.strerror or problem}.", "Name a file that can be written.") from None
    handler.setFormatter(_OneLineFormatter())
    root.addHandler(handler)
    logging.getLogger("ctxchat").setLevel(logging.DEBUG)
