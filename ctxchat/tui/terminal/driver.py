"""The terminal the interface is drawn in: what it sends goes through `parser`, and its modes are as they were whenever
ctxchat does not have it: while it is stopped, behind an editor, at the end, and when the terminal itself goes away.

Knows no widget, and of the app only that it runs and takes what was typed before.
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
"""Every mode that is set is left again: pastes, wrapping, sizes, mouse, keys, the other screen, the cursor, the focus."""

OTHER_SCREEN = "\x1b[?1049h"
TAKEN = OTHER_SCREEN + "\x1b[?25l\x1b[?1004h\x1b[=25;1u\x1b[?2004h\x1b[?7l"
"""Modes that Textual sets, but for the mouse: those of keys are set, not laid over others, to be left only once."""


class Terminal(LinuxDriver):
    """Textual's driver of a terminal. `first` has the keys until this takes them over, and the settings to give back."""

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
        """As Textual's, but for the order: what is written goes out in a thread of its own, and all of it is out before the
        terminal is given back. One whose keys are signals again throws away with them what it has not read yet, and it would be
        left in our modes."""
        self.write(LEFT)
        self.disable_input()
        self.close()
        if self.attrs_before is not None:
            with suppress(termios.error):  # it is gone
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    def write(self, data: str) -> None:
        if self._first and data == OTHER_SCREEN:
            return  # it is there, and many terminals would clear it
        if self._writer_thread is not None:  # else somebody else has the terminal
            super().write(data)

    def close(self) -> None:
        super().close()
        self._writer_thread = None

    def disable_input(self) -> None:
        if self._key_thread is not None and self._key_thread.is_alive():
            self._stop_reading.send(b".")
        super().disable_input()

    def give_back(self) -> None:
        """Leave all modes at once and wait for nothing: for an end in which nothing else can be relied on."""
        settings = self._settings or self.attrs_before
        try:
            if settings is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, settings)
            os.set_blocking(self._file.fileno(), False)
            os.write(self._file.fileno(), LEFT.encode())
        except (OSError, termios.error):
            return  # it is gone

    # ── stopped, and going on ──

    def _sigtstp_application(self, *_: object) -> None:
        """A handler may come in the middle of anything, a write included: the loop does it when it gets there."""
        if self._app.is_running:
            self._loop.call_soon_threadsafe(self._stop)
        else:
            signal.raise_signal(signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        if self._app.is_running:
            self._loop.call_soon_threadsafe(self._go_on)

    def _stop(self) -> None:
        if self._must_signal_resume:
            return  # it was stopped, and goes on in a moment
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        signal.raise_signal(signal.SIGSTOP)

    def _go_on(self) -> None:
        """Take the terminal again. Where it was never given back (a stop that cannot be caught), its modes may be others now."""
        if not self._auto_restart or not self._app.is_running:
            return  # an editor has it, or nobody wants it any more
        if self._must_signal_resume:
            self.resume_application_mode()
        elif os.tcgetpgrp(self.fileno) == os.getpgrp():  # in the background it is somebody else's
            termios.tcsetattr(self.fileno, termios.TCSANOW, self._own)
            self.write(TAKEN)
            self._enable_mouse_support()
        self._app.call_later(self._app.refresh, layout=True)

    # ── what it sends ──

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except (OSError, EOFError):
            self._terminal_closed()
        except Exception as fault:
            self._loop.call_soon_threadsafe(self._app._handle_exception, fault)

    def run_input_thread(self) -> None:
        """Read until input is disabled. Raises OSError or EOFError where there is nothing to read from any more.

        Waits without a limit but for the rest of a key that has begun: Textual's wakes up ten times a second.
        """
        parser, decode = InputParser(self._debug), lenient_decoder("utf-8")().decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            if self._first:
                if typed := self._first.taken_over():  # nothing would say that it is the end
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

    def _process_messages(self, found: Iterable[Message]) -> None:
        for event in found:
            self.process_message(event)

    def _terminal_closed(self) -> None:
        """It was closed, whether or not the system says so too."""
        if self._app.is_running:
            signal.raise_signal(signal.SIGHUP)


class _Output:
    """A stream that is written to as long as it takes anything. Where Textual's writer ended with it, the screen would wait for
    ever for a place in its queue."""

    def __init__(self, stream: IO[str] | None, gone: Callable[[], None]) -> None:
        self._stream, self._gone = stream, gone

    def write(self, text: str) -> None:
        self._try_stream("write", text)

    def flush(self) -> None:
        self._try_stream("flush")

    def _try_stream(self, what: str, *text: str) -> None:
        if self._stream is None:
            return
        try:
            getattr(self._stream, what)(*text)
        except (OSError, ValueError):
            self._stream = None
            self._gone()

    def fileno(self) -> int:
        return sys.__stderr__.fileno() if sys.__stderr__ else -1
