"""A program in a pseudo-terminal, with the screen it draws: what a person at the keyboard sees and does."""

from __future__ import annotations

import os
import re
import signal
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

import pexpect
import pyte

ESCAPE = "\x1b"
KEYS = {
    "enter": "\r",
    "esc": ESCAPE,
    "ctrl+c": "\x03",
    "ctrl+f": "\x06",
    "ctrl+q": "\x11",
    "f2": "\x1bOQ",
    "f3": "\x1bOR",
    "f8": "\x1b[19~",
    "backspace": "\x7f",
}


class Terminal:
    """Starts a command and draws what it writes. `raw` keeps every character that came; `screen` is pyte's."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 120,
        rows: int = 35,
        cwd: str | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.raw = ""
        self.started = time.perf_counter()
        self._process: pexpect.spawn[str] = pexpect.spawn(
            command[0],
            list(command[1:]),
            env=dict(env),
            cwd=cwd,
            dimensions=(rows, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=30,
            preexec_fn=_keep_output,
        )
        self._process.delaybeforesend = None
        self._before = termios.tcgetattr(self._process.child_fd)
        self._process.ptyproc.delayafterclose = 0.02

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(f"── screen ──\n{self.text}\n── exit {self.exit_code} ──")
        self._process.close(force=True)

    # ── what is seen ──

    @property
    def lines(self) -> list[str]:
        """The screen's rows, without the blanks at their ends."""
        # Not pyte's `display`: it raises where half of a wide character was written over.
        columns = range(self.screen.columns)
        return [
            "".join(row[x].data for x in columns).rstrip()
            for row in map(self.screen.buffer.__getitem__, range(self.screen.lines))
        ]

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(self.lines)

    def shows(self, text: str) -> bool:
        """The text is on screen, wherever its lines were broken."""
        return "".join(text.split()) in "".join(self.text.split())

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code when it ended, the signal's number below zero when one ended it."""
        if self._process.isalive():
            return None
        return -self._process.signalstatus if self._process.signalstatus else self._process.exitstatus

    @property
    def settings_kept(self) -> bool:
        """The terminal's own settings (echo, lines, signals) are as they were before the program began."""
        return termios.tcgetattr(self._process.child_fd) == self._before

    @property
    def in_lines(self) -> bool:
        """What is typed goes to nobody before its line ends, as in a shell: no program has the terminal to itself."""
        return bool(termios.tcgetattr(self._process.child_fd)[3] & termios.ICANON)

    # ── what is done ──

    def read(self, timeout: float = 0.05, most: int = 1 << 16) -> bool:
        """Take what has been written, `most` bytes of it, and draw it; False when nothing came in time."""
        new = self.take(timeout, most)
        self._stream.feed(_known(new))
        return bool(new)

    def take(self, timeout: float, most: int = 1 << 16) -> str:
        """What has been written, not drawn, which is slow, `most` bytes of it; empty when nothing came in time."""
        try:
            new = self._process.read_nonblocking(most, timeout)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return ""
        self.raw += new
        return new

    def until(self, wanted: str | Callable[[], bool], timeout: float = 60.0) -> None:
        """Read until the text is on screen, however it is broken, or the condition holds. Raises AssertionError."""
        seen = wanted if callable(wanted) else lambda: self.shows(wanted)
        end = time.monotonic() + timeout
        while not seen():
            if time.monotonic() > end:
                name = wanted if isinstance(wanted, str) else "the condition"
                raise AssertionError(f"{name!r} not seen within {timeout:.0f} s:\n{self.text}")
            if not self.read() and not self._process.isalive() and not self.read(0.2) and not seen():
                raise AssertionError(f"it ended ({self.exit_code}) before {wanted!r}:\n{self.text}\n{self.raw[-2000:]}")

    def settle(self, quiet: float = 0.3, most: float = 5.0) -> None:
        """Read until nothing has come for so long (a cursor blinks every half second), or for the longest time."""
        end = time.monotonic() + most
        while self.read(quiet) and time.monotonic() < end:
            pass

    def read_for(self, seconds: float) -> None:
        """Nothing is done for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()

    def type(self, text: str | bytes) -> None:
        """Type text, or bytes that are none, as they stand; what is written meanwhile is taken, so that neither waits."""
        left = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        while left:
            left = left[os.write(self._process.child_fd, left[:1024]) :]
            if left:
                self.read(0.0)

    def press(self, *keys: str) -> None:
        """Press keys by name, or by their character."""
        for key in keys:
            self._process.send(KEYS.get(key, key))

    def resize(self, columns: int, rows: int) -> None:
        """As when the window is dragged."""
        self.screen.resize(rows, columns)
        self._process.setwinsize(rows, columns)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the program."""
        self._process.kill(number)

    def hang_up(self) -> None:
        """The terminal goes away, without a word to the program but what the system says."""
        self._process.ptyproc.fileobj.close()

    def wait(self, timeout: float = 60.0) -> int:
        """Read to its end; the exit code."""
        end = time.monotonic() + timeout
        while self._process.isalive():
            self.read()
            if time.monotonic() > end:
                raise AssertionError(f"still running after {timeout:.0f} s:\n{self.text}")
        with suppress(AssertionError):
            self.settle(0.05)
        code = self.exit_code
        assert code is not None
        return code


def _keep_output() -> None:
    """A key that is a signal throws away what was not read, and we read later than a terminal does."""
    settings = termios.tcgetattr(0)
    settings[3] |= termios.NOFLSH
    termios.tcsetattr(0, termios.TCSANOW, settings)


_UNKNOWN = re.compile(r"\x1b\[(?:[<>=][0-9;]*u|\?[0-9;]*\$p|>[0-9;]*[a-zA-Z])|\x1b(?:P|_)[^\x1b]*\x1b\\")
"""What pyte does not know and would print: the keyboard protocol, mode queries, application strings."""


def _known(text: str) -> str:
    return _UNKNOWN.sub("", text)
