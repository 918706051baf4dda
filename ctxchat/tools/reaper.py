"""Runs a command and, when that has ended or is told to, ends everything it began: daemons too, whatever they did to hide.
A program by itself, for where no sandbox holds a command's processes together: `reaper.py COMMAND…`. Linux.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_SET_CHILD_SUBREAPER, _SET_PDEATHSIG = 36, 1  # prctl(2)

_OBEY_S = 0.6
"""Time the command has to end when it is told to; less than whoever told this program waits for it."""


class _Told(Exception):
    """SIGTERM has come."""


def main(command: list[str]) -> int:
    """The command's exit code; ends by the command's own signal where that was how it ended."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent becomes ours, and is no longer lost
    signal.signal(signal.SIGTERM, _on_signal)
    prctl(_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    first = os.fork()
    if not first:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)
        except OSError as problem:
            os.write(2, f"{command[0]}: {problem.strerror}\n".encode())
            os._exit(127)
    try:
        status = _wait(first)
    except _Told:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        status = _wait(first, time.monotonic() + _OBEY_S)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_all()
    if status is None or os.WIFSIGNALED(status):
        number = signal.SIGKILL if status is None else os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status or 0)


def _on_signal(*_: object) -> None:
    raise _Told


def _wait(first: int, deadline: float | None = None) -> int | None:
    """The status of the command once it has ended; others that end meanwhile are buried. None when it is later than that."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG if deadline else 0)
        if ended == first:
            return status
        if deadline and not ended:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)


def _end_all() -> None:
    """Kill what is left; the children of what dies come to us and are next."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)  # ours, and not buried yet: the number is nobody else's
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _children() -> list[int]:
    own, found = str(os.getpid()), list[int]()
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = place.read_text("utf-8", "replace").rpartition(")")[2].split()[1]
        except (OSError, IndexError):  # it has ended
            continue
        if parent == own:
            found.append(int(place.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
