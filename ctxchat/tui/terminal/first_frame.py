"""Paints the first frame with the standard library alone, while the rest is still being imported. From then on keys are read:
typed text is shown at once, and all bytes are handed to the application later.

Import nothing heavy here: this module is what makes the start quick. Knows nothing of the application.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress

from ctxchat.tui.terminal.early_keys import EarlyKeys, cells, draw_input

TYPE_CHECKING = False  # importing `typing` would take too long
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

ENTER = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l\x1b[?2004h"
LEAVE = "\x1b[?2004l\x1b[?25h\x1b[?1049l"

INVITATIONS = ("Ask, or type / for commands and @ for files", "Ask, or type / or @ for more", "Ask, or type /", "Ask")
"""Placeholders of an empty editor, the longest first."""

UNSENT = "This was not sent and could not be kept:\n\n{}\n"
"""Printed when the program ends with a draft that could not be saved; `{}` is its text."""

MAX_WAITING_MESSAGES = 4
"""Number of queued messages that are shown."""


def invitation(width: int) -> str:
    """The longest placeholder that fits in `width` columns, else the shortest."""
    return next((words for words in INVITATIONS if len(words) < width), INVITATIONS[-1])


def frame(width: int, height: int, typed: EarlyKeys) -> str:
    """The frame as text with control sequences: the program's name, the composer with the typed text, and an empty gauge, where
    the application will paint them. `width` and `height` in cells."""
    if width < 1 or height < 1:
        return ""
    roomy = height >= 18 and width >= 8
    low = 2 if height >= 18 else 1  # rows from the gauge down: the gauge, and the key line where there is room for it
    rows = {1: " ctxchat" if width >= 8 else ""}
    if height > 1:
        rows[height - low + 1] = f" {'·' * (width - 2)} " if width >= 3 else ""
    text_row = height - low - 1 if roomy else height - low
    if roomy:
        rows[text_row - 1], rows[text_row + 1] = f" ╭{'─' * (width - 4)}╮ ", f" ╰{'─' * (width - 4)}╯ "
    edge = " │ " if roomy else "  "
    room = width - 2 * len(edge)
    if text_row > 1 and room > 1:
        text = draw_input(typed.text, typed.cursor, room) if typed.text else _placeholder(room)
        rows[text_row] = edge + text + edge[::-1]
        above = text_row - (2 if roomy else 1)
        for n, message in enumerate(reversed(typed.sent[-MAX_WAITING_MESSAGES:])):
            if above - n > 1 and width >= 20:
                rows[above - n] = f"{edge[0]}  next  {_cut(message, width - 10)}"
    return "".join(f"\x1b[{y};1H{row}\x1b[K" for y, row in sorted(rows.items()))


def _placeholder(room: int) -> str:
    """The placeholder of an empty editor, dimmed, with the cursor on its first letter and blanks up to `room` columns."""
    text = invitation(room)[:room]
    return f"\x1b[7m{text[0]}\x1b[27m\x1b[2m{text[1:]}\x1b[22m{' ' * (room - len(text))}"


def _cut(message: str, room: int) -> str:
    """A message on one line, cut to `room` columns."""
    shown = ""
    for character in " ".join(message.split()):
        if (room := room - cells(character)) < 0:
            break
        shown += character
    return shown


class FirstFrame:
    """A context manager that paints the first frame and reads keys until the application does.

    `with FirstFrame() as first: …; first.hand_over(); …; first.taken_over()`. All keys are stored as they were sent until
    `taken_over`. At the end the terminal's settings are restored in any case; so is the screen, unless the application left it.
    Without a terminal it does nothing. A signal to end the program ends it at once: only `tidy` is called before.
    """

    def __init__(self, tidy: Callable[[], object] | None = None) -> None:
        self._tidy = tidy
        self.settings: list[Any] | None = None
        """The terminal's settings before the start, from `termios.tcgetattr`; None without a terminal, or without termios."""
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
        """Leave the terminal to the application, which paints it and restores it at the end."""
        self._painted = False

    def taken_over(self) -> bytes:
        """Stop reading keys, as the application reads them from here on, and return the bytes typed so far. The frame stays on
        screen until the application paints over it."""
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

            with suppress(termios.error):  # the terminal is closed
                termios.tcsetattr(_keyboard(), termios.TCSANOW, self.settings)
        if self._typed.unsent:
            _write_raw(UNSENT.format(self._typed.unsent))

    def _end(self, number: int, _: object) -> None:
        """End the program on a signal. It does not raise, as the signal may arrive in the middle of an import, which libraries do
        not expect; nothing is open yet that would have to be closed."""
        try:
            self.__exit__(None, None, None)
            if self._tidy:
                self._tidy()
        finally:
            os._exit(128 + number)

    def _keep_keys(self) -> None:
        """Set the terminal so that keys are neither echoed nor held back until Enter, and Enter is not turned into a newline;
        ctrl+c still interrupts, without discarding typed keys."""
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
        if early := _waiting(fd):  # until now the terminal has turned every Enter into a newline
            self._keep(os.read(fd, early).replace(b"\n", b"\r"))

    def _read_on(self) -> None:
        """Start the thread that reads keys."""
        if self.settings is not None:
            self._ended, self._end_reading = os.pipe()
            reader = threading.Thread(target=self._read_keys, name="early keys", daemon=True)
            reader.start()
            self._reader = reader

    def _read_keys(self) -> None:
        fd = _keyboard()
        with suppress(OSError):  # the terminal is closed; the application finds out when it reads
            while fd in (
                ready := select.select([fd, self._ended], [], [])[0]
            ):  # typed bytes are read before the request to stop
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
        """Paint the whole frame: it is only a few hundred bytes."""
        size = os.get_terminal_size(sys.__stderr__.fileno())  # type: ignore[union-attr]
        clear = "\x1b[2J" if size != self._size else ""
        self._size = size
        _write_raw(clear + frame(*size, self._typed))


def _keyboard() -> int:
    return sys.__stdin__.fileno()  # type: ignore[union-attr]


def _waiting(fd: int) -> int:
    """The number of bytes that were typed and not read yet."""
    import fcntl
    import struct
    import termios

    try:
        (count,) = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))
    except OSError:
        return 0
    return int(count)


def in_browser() -> bool:
    """Whether textual-serve shows the interface in a browser, through pipes instead of a terminal."""
    return os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")


def _is_terminal() -> bool:
    """Whether keys come from a terminal and the frame can be painted on one. Textual paints on standard error."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return os.environ.get("TERM", "") not in {"", "dumb"} and all(s is not None and s.isatty() for s in streams)


def _write_raw(text: str) -> None:
    """Write to the terminal past the stream's buffer: a signal may arrive in the middle of a write, and its handler writes
    too."""
    stream = sys.__stderr__
    if stream is not None:
        data = text.encode(stream.encoding, "backslashreplace")
        while data:
            data = data[os.write(stream.fileno(), data) :]
