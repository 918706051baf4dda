"""A draft in the person's own editor, which has the terminal meanwhile, its keys for signals included."""

from __future__ import annotations

from pathlib import Path
from signal import SIGWINCH

import pytest

from tests.cli.conftest import Home
from tests.e2e.conftest import READY, Open, left_clean

SIGNALS = """#!/bin/sh
trap '' INT QUIT
kill -INT 0 && kill -QUIT 0 && kill -TSTP 0
printf 'seen by an editor' > "$1"
rm "$0"
"""
"""What Ctrl+C, Ctrl+\\ and Ctrl+Z are where a terminal's keys are signals: to the editor and ctxchat alike. Nobody would let them
go on, and then the system does not stop them."""


@pytest.mark.pty
def test_an_editor_has_the_keys_and_one_that_is_missing_is_named(chat: Open, harbour: Home) -> None:
    editor = harbour.put("editor", SIGNALS)
    Path(editor).chmod(0o700)
    with chat(VISUAL="", EDITOR=editor) as terminal:
        terminal.until(READY)
        terminal.press("\x07")
        terminal.until("seen by an editor")
        terminal.press("\x07")
        terminal.until("No such file")
        terminal.type(", and on")
        terminal.until("seen by an editor, and on")
        terminal.screen.reset()
        terminal.kill(SIGWINCH)  # another size that was gone before it was seen
        terminal.until("seen by an editor, and on")
        for size in ((100, 30), (120, 36)):
            terminal.resize(*size)
        terminal.screen.reset()
        terminal.until("seen by an editor, and on")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
        assert left_clean(terminal)
