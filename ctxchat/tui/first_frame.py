"""The first frame, painted by the standard library alone while the rest is still being imported, and keys kept from then on.

Import nothing here that is not light: this module is what makes the start quick. Knows nothing of the application.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any

ENTER, LEAVE = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def frame(width: int, height: int) -> str:
    """What is painted: the name on top, an empty composer and the line of the gauge where they will be."""
    rows = [""] * height
    rows[0] = " ctxchat" if width >= 8 else ""
    low = 1 if height < 18 else 2  # rows below the composer: the gauge, and the keys where there is room for them
    if height >= 18 and width >= 8:
        inside = width - 4
        rows[height - low - 3] = f" ╭{'─' * inside}╮ "
        rows[height - low - 2] = f" │{' ' * inside}│ "
        rows[height - low - 1] = f" ╰{'─' * inside}╯ "
    if height >= 2:
        rows[height - low] = f" {'·' * (width - 2)} " if width >= 3 else ""
    return "".join(f"\x1b[{y};1H{row}" for y, row in enumerate(rows, 1) if row)


class FirstFrame:
    """`with FirstFrame() as first: …; first.hand_over(); app.run()`.

    Keys typed meanwhile stay with the terminal until the application reads them. The terminal's settings come back at the
    end, whatever happens; so does the screen, unless the application took it over. Where there is no terminal nothing is done.
    """

    def __init__(self) -> None:
        self.settings: list[Any] | None = None
        """The terminal's own, as it had them before; None where it has none."""
        self._painted = False
        self.early = 0
        """Bytes typed before keys were kept as they are: the terminal has made a new line of every Enter among them."""

    def __enter__(self) -> FirstFrame:
        if _is_terminal():
            for name in ("SIGHUP", "SIGQUIT", "SIGTERM"):  # on the way out the terminal is given back
                signal.signal(getattr(signal, name), _end)
            self._keep_keys()
            self._paint()
        return self

    def hand_over(self) -> None:
        """From here on the application paints, and leaves the screen as it found it."""
        self._painted = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._painted:
            _write(LEAVE)
        if self.settings is not None:
            import termios

            with suppress(termios.error):  # it is gone
                termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, self.settings)  # type: ignore[union-attr]

    def _keep_keys(self) -> None:
        """Keys are neither shown nor held back until Enter, and Enter stays Enter; ctrl+c still works."""
        try:
            import termios
        except ImportError:  # Windows
            return
        fd = sys.__stdin__.fileno()  # type: ignore[union-attr]
        self.settings = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)
        quiet[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON | termios.IXOFF)
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(fd, termios.TCSANOW, quiet)
        self.early = _waiting(fd)

    def _paint(self) -> None:
        width, height = os.get_terminal_size(sys.__stderr__.fileno())  # type: ignore[union-attr]
        if width > 0 and height > 0:
            self._painted = True
            _write(ENTER + frame(width, height))


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _waiting(fd: int) -> int:
    """Bytes that were typed and not read yet."""
    import fcntl
    import struct
    import termios

    try:
        (count,) = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))
    except OSError:
        return 0
    return int(count)


def in_browser() -> bool:
    """The interface is shown by textual-serve, through pipes, and there is no terminal."""
    return os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")


def _is_terminal() -> bool:
    """Keys come from a terminal and the screen is one that can be painted on. Textual paints on standard error."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return os.environ.get("TERM", "") not in {"", "dumb"} and all(s is not None and s.isatty() for s in streams)


def _write(text: str) -> None:
    stream = sys.__stderr__
    if stream is not None:
        stream.write(text)
        stream.flush()
