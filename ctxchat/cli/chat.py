"""`ctxchat` alone: the chat, or a clear word where there is no terminal to open it in.

Imports nothing heavy before the first frame is painted.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from ctxchat.cli.ending import ended
from ctxchat.tui.terminal.first_frame import FirstFrame, in_browser

TYPE_CHECKING = False  # type checkers know the name; importing `typing` would take time
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

NO_TERMINAL = (
    'ctxchat: this is not a terminal the chat can be drawn in ({why}). Use `ctxchat run "…"` for an answer on '
    "standard output, or see `ctxchat --help`."
)

FPS = "240"
"""How often a screen is painted in a second, at most: a key waits for the next time. With Textual's 60 that was up to 16 ms,
most of the time from a key to the screen; what streams is drawn less often in any case."""


def open_chat(flags: Mapping[str, Any], *, tour: Callable[[], object] | None = None) -> int:
    """Open the interface until it is left; the exit code. `flags` are the fields of `Flags`. With `tour` the guide of the tour
    is shown; `tour()` is called where the program is ended on the spot, and removes what the tour made."""
    if not in_browser() and (why := _no_terminal()):
        print(NO_TERMINAL.format(why=why), file=sys.stderr)
        return 2
    if not in_browser():  # in a browser the size comes in these variables
        # A shell may have exported those of another window; the terminal knows its size.
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)
    return ended(lambda: _painted(flags, tour))


def _painted(given: Mapping[str, Any], tour: Callable[[], object] | None) -> int:
    """Paint the first frame, then import the interface behind it and run that; the exit code."""
    with FirstFrame(tour) as first:
        from ctxchat.bootstrap.flags import Flags
        from ctxchat.bootstrap.lazy_program import LazyProgram

        flags = Flags(**given)
        program = LazyProgram(flags)
        with painting_often():
            from ctxchat.cli.interface import run  # the big import; the program tries its sandbox meanwhile

        return run(program, flags.session, first, tour=tour is not None)


@contextmanager
def painting_often() -> Generator[None]:
    """Sets `TEXTUAL_FPS` while Textual is imported, which reads it then. A person's own value stands, and ours is gone before
    other processes are started."""
    if "TEXTUAL_FPS" in os.environ:
        yield
        return
    os.environ["TEXTUAL_FPS"] = FPS
    try:
        yield
    finally:
        del os.environ["TEXTUAL_FPS"]


def _no_terminal() -> str:
    if not sys.stdin or not sys.stdin.isatty():
        return "standard input is a pipe or a file"
    if not sys.stdout or not sys.stdout.isatty():
        return "standard output is a pipe or a file"
    if not sys.stderr or not sys.stderr.isatty():  # the interface is drawn through it
        return "standard error is a pipe or a file"
    return {"": "TERM is not set", "dumb": "TERM is dumb"}.get(os.environ.get("TERM", ""), "")
