"""A person at a terminal, in a small repository."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Home
from tests.e2e.terminal import Terminal

Open = Callable[..., Terminal]

READY = "enter send"
"""What stands below the composer when the interface is up, and not in the first frame."""


@pytest.fixture
def harbour(tmp_path: Path) -> Home:
    """A person whose repository says who the gauge at Pier 7 reports to."""
    home = Home(tmp_path)
    home.put("README.md", "# Harbour logger\n\nThe gauge at Pier 7 reports every 90 s to the logger Cormorant.\n")
    home.put("src/gauge.py", 'LOGGER = "cormorant"\nINTERVAL = 90  # seconds\n')
    return home


@pytest.fixture
def chat(harbour: Home) -> Open:
    """Opens the chat in a terminal."""

    def open(*arguments: str, columns: int = 120, rows: int = 35, **environ: str) -> Terminal:
        command = [sys.executable, "-m", "ctxchat", *arguments]
        return Terminal(command, {**harbour.environ, **environ}, columns=columns, rows=rows, cwd=str(harbour.work))

    return open


def left_clean(terminal: Terminal) -> bool:
    """The terminal is as it was: main screen, cursor shown, no mouse reports, keys echoed and in lines."""
    raw = terminal.raw
    ends = all(
        raw.rfind(off) > raw.rfind(on)
        for on, off in (
            ("\x1b[?1049h", "\x1b[?1049l"),
            ("\x1b[?25l", "\x1b[?25h"),
            ("\x1b[?1000h", "\x1b[?1000l"),
            ("\x1b[?1003h", "\x1b[?1003l"),
            ("\x1b[?2004h", "\x1b[?2004l"),
        )
        if on in raw
    )
    return ends and terminal.settings_kept
