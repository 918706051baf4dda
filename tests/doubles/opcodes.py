"""How much work a piece of the program does, as the number of Python instructions it runs: the same on any machine, however busy.

What C code does within one instruction (joining tuples, SQLite) is not seen.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Opcodes:
    """Counts in `counted` while it is `on`, in all threads begun while it is installed, and only code of `package`."""

    def __init__(self, package: str = "/ctxchat/ctxchat/") -> None:
        self.package = package
        self.on = False
        self.counted = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watches from here on, at no great cost while it is not `on`."""
        before = sys.gettrace()
        threading.settrace(self._calls)
        sys.settrace(self._calls)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]

    def _calls(self, frame: FrameType, event: str, arg: object) -> Any:
        if not self.on or self.package not in frame.f_code.co_filename:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._steps

    def _steps(self, frame: FrameType, event: str, arg: object) -> Any:
        self.counted += event == "opcode"
        return self._steps
