"""The first frame, painted by the standard library alone while the rest is still being imported. Keys are taken from then on:
what is typed is seen at once, and handed on byte by byte.

Import nothing here that is not light: this module is what makes the start quick. Knows nothing of the application.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress

from ctxchat.tui.terminal.early_keys import EarlyKeys, cells, draw_input

TYPE_CHECKING = False  # without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

ENTER = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l\x1b[?2004h"
LEAVE = "\x1b[?2004l\x1b[?25h\x1b[?1049l"

INVITATIONS = ("Ask, or type / for commands and @ for files", "Ask, or type / or @ for more", "Ask, or type /", "Ask")
"""What an empty editor says, the longest first."""

UNSENT = "This was not sent and could not be kept:\n\n{}\n"
"""Said of words that are written when the end comes and nothing is there to keep them."""

MAX_WAITING_MESSAGES = 4
"""Messages that wait which are shown."""


def invitation(width: int) -> str:
    """The one that fits."""
    return next((words for words in INVITATIONS if len(words) < width), INVITATIONS[-1])


def frame(width: int, height: int, typed: EarlyKeys) -> str:
    """What is painted: the name on top, the composer with what is typed, and the line of the gauge where they will be."""
    if width < 1 or height < 1:
        return ""
    roomy = height >= 18 and width >= 8
    low = 2 if height >= 18 else 1  # rows from the gauge down: it, and the keys where there is room for them
    rows = {1: " ctxchat" if width >= 8 else ""}
    if height > 1:
        rows[height - low + 1] = f" {'·' * (width - 2)} " if width >= 3 else ""
    at = height - low - 1 if roomy else height - low  # of the composer's words
    if roomy:
        rows[at - 1], rows[at + 1] = f" ╭{'─' * (width - 4)}╮ ", f" ╰{'─' * (width - 4)}╯ "
    edge = " │ " if roomy else "  "
    room = width - 2 * len(edge)
    if at > 1 and room > 1:
        words = draw_input(typed.text, typed.cursor, room) if typed.text else _invited(room)
        rows[at] = edge + words + edge[::-1]
        above = at - (2 if roomy else 1)
        for n, message in enumerate(reversed(typed.sent[-MAX_WAITING_MESSAGES:])):
            if above - n > 1 and width >= 20:
                rows[above - n] = f"{edge[0]}  next  {_cut(message, width - 10)}"
    return "".join(f"\x1b[{y};1H{row}\x1b[K" for y, row in sorted(rows.items()))


def _invited(room: int) -> str:
    words = invitation(room)[:room]
    return f"\x1b[7m{words[0]}\x1b[27m\x1b[2m{words[1:]}\x1b[22m{' ' * (room - len(words))}"


def _cut(message: str, room: int) -> str:
    shown = ""
    for sign in " ".join(message.split()):
        if (room := room - cells(sign)) < 0:
            break
        shown += sign
    return shown


class FirstFrame:
    """`with FirstFrame() as first: …; first.hand_over(); …; first.taken_over()`. Asked to end meanwhile, it ends the program.

    Until the application takes them over, all keys are kept as they were sent. The terminal's settings come back at the end,
    whatever happens; so does the screen, unless the application left it. Where there is no terminal nothing is done. `tidy` is
    called where it ends the program, which then runs nothing else.
    """

    def __init__(self, tidy: Callable[[], object] | None = None) -> None:
        self._tidy = tidy
        self.settings: list[Any] | None = None
        """The terminal's own, as it had them before; None where it has none."""
        self._painted = False
        self._size = (0, 0)
        self._kept, self._typed = b"", EarlyKeys()
        self._reader: threading.Thread | None = None
        self._end_reading, self._ended = -1, -1

    def __enter__(self) -> FirstFrame:
        if _is_terminal():
            for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"):
                signal.signal(getattr(signal, name), self._end)
            try:
                self._begin()
            except BaseException:
                self.__exit__(None, None, None)
                raise
        return self

    def _begin(self) -> None:
        self._keep_keys()
        self._painted = True
        _write_raw(ENTER)
        self._paint()
        self._read_on()

    def hand_over(self) -> None:
        """From here on the application paints, and leaves the screen as it found it."""
        self._painted = False

    def taken_over(self) -> bytes:
        """All that was typed so far, once: from here on the application reads keys itself. What it has not painted over stays as
        it is."""
        self._stop()
        kept, self._kept, self._typed = self._kept, b"", EarlyKeys()
        return kept

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if self._painted:
            _write_raw(LEAVE)
        if self.settings is not None:
            import termios

            with suppress(termios.error):  # it is gone
                termios.tcsetattr(_keyboard(), termios.TCSANOW, self.settings)
        if self._typed.unsent:
            _write_raw(UNSENT.format(self._typed.unsent))

    def _end(self, number: int, _: object) -> None:
        """Not by raising: it may come in the middle of an import, and libraries are not made for that. Nothing is open yet that
        would have to be closed."""
        try:
            self.__exit__(None, None, None)
            if self._tidy:
                self._tidy()
        finally:
            os._exit(128 + number)

    def _keep_keys(self) -> None:
        """Keys are neither echoed nor held back until Enter, and Enter stays Enter; ctrl+c still works and loses nothing."""
        try:
            import termios
        except ImportError:  # Windows
            return
        fd = _keyboard()
        self.settings = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)
        quiet[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON | termios.IXOFF)
        quiet[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        quiet[3] |= termios.NOFLSH
        quiet[6][termios.VSUSP] = os.fpathconf(fd, "PC_VDISABLE").to_bytes(1, "little")  # ctrl+z is a key of the editor
        termios.tcsetattr(fd, termios.TCSANOW, quiet)
        if early := _waiting(fd):  # of every Enter until here the terminal has made a new line
            self._keep(os.read(fd, early).replace(b"\n", b"\r"))

    def _read_on(self) -> None:
        if self.settings is not None:
            self._ended, self._end_reading = os.pipe()
            reader = threading.Thread(target=self._read_keys, name="early keys", daemon=True)
            reader.start()
            self._reader = reader

    def _read_keys(self) -> None:
        fd = _keyboard()
        with suppress(OSError):  # it is gone, which whoever reads next is told
            while fd in (ready := select.select([fd, self._ended], [], [])[0]):  # what was typed, before the end
                data = os.read(fd, 4096)
                if not data:
                    return
                self._keep(data)
                if self._ended not in ready:
                    self._paint()

    def _stop(self) -> None:
        reader, self._reader = self._reader, None
        if reader:
            os.write(self._end_reading, b".")
            reader.join()
            os.close(self._end_reading)
            os.close(self._ended)

    def _keep(self, data: bytes) -> None:
        self._kept += data
        self._typed.feed(data)

    def _paint(self) -> None:
        """All of it: that is a few hundred bytes."""
        size = os.get_terminal_size(sys.__stderr__.fileno())  # type: ignore[union-attr]
        anew = "\x1b[2J" if size != self._size else ""
        self._size = size
        _write_raw(anew + frame(*size, self._typed))


def _keyboard() -> int:
    return sys.__stdin__.fileno()  # type: ignore[union-attr]


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


def _write_raw(text: str) -> None:
    """Past the stream's buffer: a signal may come in the middle of a write, and its handler writes too."""
    stream = sys.__stderr__
    if stream is not None:
        data = text.encode(stream.encoding, "backslashreplace")
        while data:
            data = data[os.write(stream.fileno(), data) :]
