"""`ctxchat` alone: the chat, or a clear word where there is no terminal to open it in.

Imports nothing heavy before the first frame is painted.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from ctxchat.cli.ending import ended
from ctxchat.tui.terminal.first_frame import FirstFrame, in_browser

TYPE_CHECKING = False  # without the import
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

NO_TERMINAL = (
    'ctxchat: this is not a terminal the chat can be drawn in ({why}). Use `ctxchat run "…"` for an answer on '
    "standard output, or see `ctxchat --help`."
)

FPS = "240"
"""How often a screen is painted in a second, at most: a key waits for the next time. With Textual's 60 that was up to 16 ms, most
of its way; what streams is drawn less often in any case."""


def open_chat(flags: Mapping[str, Any], *, tour: Callable[[], object] | None = None) -> int:
    """Open the interface until it is left; the exit code. `flags` are the fields of `Flags`. With `tour` it has the tour's
    guide; `tour()` removes what the tour made where the program is ended on the spot."""
    if not in_browser() and (why := _no_terminal()):
        print(NO_TERMINAL.format(why=why), file=sys.stderr)
        return 2
    if not in_browser():  # where the size comes in these
        for name in (
            "COLUMNS",
            "LINES",
        ):  # a shell may have exported those of another window; the terminal knows its size
            os.environ.pop(name, None)
    return ended(lambda: _painted(flags, tour))


def _painted(given: Mapping[str, Any], tour: Callable[[], object] | None) -> int:
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
    """For the import of Textual, which reads it there; a person's own `TEXTUAL_FPS` stands, and no process below is told ours."""
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
    return "TERM is dumb" if os.environ.get("TERM", "") in {"", "dumb"} else ""
