"""The Textual driver for the terminal: passes its input to `parser`, and restores its modes whenever ctxchat does not use it:
while the program is stopped, while an editor runs, at the end, and when the terminal is closed.

Knows no widget, and of the app only that it runs and accepts keys typed before it started.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import termios
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from ctxchat.tui.terminal.first_frame import FirstFrame
from ctxchat.tui.terminal.input_queue import InOrder, TypedEarly
from ctxchat.tui.terminal.parser import InputParser, lenient_decoder

LEFT = (
    "\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Control sequences that reset every mode: pastes, wrapping, sizes, mouse, keys, the alternate screen, the cursor, the focus."""

OTHER_SCREEN = "\x1b[?1049h"
TAKEN = OTHER_SCREEN + "\x1b[?25l\x1b[?1004h\x1b[=25;1u\x1b[?2004h\x1b[?7l"
"""Control sequences that set Textual's modes, except the mouse's. The mode of keys replaces the present one instead of being
pushed on the terminal's stack, so that resetting it once is enough."""


class Terminal(LinuxDriver):
    """Textual's driver with a first frame before it: `first` holds the keys typed so far and the terminal settings to restore."""

    def __init__(self, app: InOrder, *, first: FirstFrame | None = None, **more: Any) -> None:
        super().__init__(app, **more)
        self._in_order, self._first = app, first
        self._settings = first.settings if first else None
        self._file = _Output(sys.__stderr__, self._terminal_closed)  # type: ignore[assignment]

    def start_application_mode(self) -> None:
        self._stop_reading, self._stopped = socket.socketpair()
        if self._first:
            self._in_order.hold_picture()
        super().start_application_mode()
        if self._settings is not None:
            self.attrs_before = self._settings
        self._own = termios.tcgetattr(self.fileno)

    def stop_application_mode(self) -> None:
        """Like Textual's, but in another order: all output is written, in the writer thread, before the terminal's settings are
        restored. Once keys raise signals again, a signal discards unwritten output, and the terminal would stay in the app's
        modes."""
        self.write(LEFT)
        self.disable_input()
        self.close()
        if self.attrs_before is not None:
            with suppress(termios.error):  # the terminal is closed
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    def write(self, data: str) -> None:
        if self._first and data == OTHER_SCREEN:
            return  # the first frame has switched to it already, and many terminals would clear it
        if self._writer_thread is not None:  # without the thread another program uses the terminal
            super().write(data)

    def close(self) -> None:
        super().close()
        self._writer_thread = None

    def disable_input(self) -> None:
        if self._key_thread is not None and self._key_thread.is_alive():
            self._stop_reading.send(b".")
        super().disable_input()

    def give_back(self) -> None:
        """Reset all modes at once and wait for nothing, for a program that ends abnormally."""
        settings = self._settings or self.attrs_before
        try:
            if settings is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, settings)
            os.set_blocking(self._file.fileno(), False)
            os.write(self._file.fileno(), LEFT.encode())
        except (OSError, termios.error):
            return  # the terminal is closed

    # ── stop and continue (SIGTSTP, SIGCONT) ──

    def _sigtstp_application(self, *_: object) -> None:
        """Let the event loop stop the app: the signal may arrive in the middle of anything, a write included."""
        if self._app.is_running:
            self._loop.call_soon_threadsafe(self._stop)
        else:
            signal.raise_signal(signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        if self._app.is_running:
            self._loop.call_soon_threadsafe(self._go_on)

    def _stop(self) -> None:
        if self._must_signal_resume:
            return  # it was stopped already, and continues in a moment
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        signal.raise_signal(signal.SIGSTOP)

    def _go_on(self) -> None:
        """Set the modes again after a stop. After a stop that could not be caught they were never reset, but may have been
        changed."""
        if not self._auto_restart or not self._app.is_running:
            return  # an editor uses the terminal, or the app has ended
        if self._must_signal_resume:
            self.resume_application_mode()
        elif os.tcgetpgrp(self.fileno) == os.getpgrp():  # in the background another program uses the terminal
            termios.tcsetattr(self.fileno, termios.TCSANOW, self._own)
            self.write(TAKEN)
            self._enable_mouse_support()
        self._app.call_later(self._app.refresh, layout=True)

    # ── input ──

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except (OSError, EOFError):
            self._terminal_closed()
        except Exception as fault:
            self._loop.call_soon_threadsafe(self._app._handle_exception, fault)

    def run_input_thread(self) -> None:
        """Read until input is disabled. Raises OSError or EOFError when the terminal is closed.

        Waits without a limit, except for the rest of an incomplete key; Textual's own wakes up ten times a second.
        """
        parser, decode = InputParser(self._debug), lenient_decoder("utf-8")().decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            if self._first:
                if typed := self._first.taken_over():  # an empty text would mean the end of all input
                    self._process_messages(parser.feed(decode(typed)))
                self._first = None
                self.process_message(TypedEarly())
            while True:
                ready = {key.fileobj for key, _ in selector.select(0.1 if parser.is_incomplete else None)}
                if self._stopped in ready:
                    return
                if ready:
                    data = os.read(self.fileno, 4096)
                    if not data:
                        raise EOFError
                    self._process_messages(parser.feed(decode(data)))
                self._process_messages(parser.tick())

    def _process_messages(self, messages: Iterable[Message]) -> None:
        for event in messages:
            self.process_message(event)

    def _terminal_closed(self) -> None:
        """Raise SIGHUP because the terminal was closed, whether or not the system sends it too."""
        if self._app.is_running:
            signal.raise_signal(signal.SIGHUP)


class _Output:
    """A stream that ignores writes once one has failed, and calls `gone` then. Textual's writer thread would end with the error,
    and the screen would wait for ever for room in its queue."""

    def __init__(self, stream: IO[str] | None, gone: Callable[[], None]) -> None:
        self._stream, self._gone = stream, gone

    def write(self, text: str) -> None:
        self._try_stream("write", text)

    def flush(self) -> None:
        self._try_stream("flush")

    def _try_stream(self, method: str, *text: str) -> None:
        if self._stream is None:
            return
        try:
            getattr(self._stream, method)(*text)
        except (OSError, ValueError):
            self._stream = None
            self._gone()

    def fileno(self) -> int:
        return sys.__stderr__.fileno() if sys.__stderr__ else -1
