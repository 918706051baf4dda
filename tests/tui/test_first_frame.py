"""The first frame in a real pseudo-terminal: painted at once, no key lost, the terminal given back as it was."""

from __future__ import annotations

import sys
import termios
import time
from pathlib import Path
from signal import SIGTERM

import pexpect
import pyte
import pytest

from ctxchat.tui.terminal.early_keys import EarlyKeys
from ctxchat.tui.terminal.first_frame import frame

START = """
import sys
from ctxchat.tui.terminal.first_frame import FirstFrame
with FirstFrame() as first:
    if "break" in sys.argv:
        while "ght" not in first._typed.text:
            pass
        raise SystemExit("broken on the way")
    from pathlib import Path
    from ctxchat.config.schema import Settings
    from ctxchat.tui.app import CtxchatApp, Runtime
    from ctxchat.tui.terminal.driver import Terminal
    from functools import partial
    from tests.tui.fakes import FakeServices, FakeSession
    runtime = Runtime(driver=partial(Terminal, first=first))
    app = CtxchatApp(FakeServices(Path(sys.argv[1]), FakeSession()), Settings(), {}, runtime=runtime)
    first.hand_over()
    app.run()
print("left", [m for m in ("litellm", "tiktoken") if m in sys.modules])
"""


BUSY = """
import time
from ctxchat.tui.terminal.first_frame import FirstFrame
class Busy(FirstFrame):
    def _paint(self):
        super()._paint()
        time.sleep(0.5)
with Busy():
    time.sleep(60)
"""


def start(*arguments: str, code: str = START) -> pexpect.spawn:
    here = str(Path(__file__).parents[2])
    return pexpect.spawn(
        sys.executable, ["-c", code, *arguments], dimensions=(24, 80), timeout=60, encoding="utf-8", cwd=here,
        env={"TERM": "xterm-256color", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )  # fmt: skip


@pytest.mark.pty
def test_keys_typed_before_anything_is_imported_are_all_there(tmp_path: Path) -> None:
    child = start(str(tmp_path))
    child.expect("ctxchat")
    before = child.before
    child.send("typed early")
    child.expect("You said|typed early")
    child.send(" and late\r")
    child.expect("You said: typed early and late")
    assert "\x1b[?1049h" in before
    child.send("\x11")
    child.expect(r"left \[\]")
    child.expect(pexpect.EOF)


@pytest.mark.pty
def test_a_failed_start_gives_the_terminal_back(tmp_path: Path) -> None:
    child = start(str(tmp_path), "break")
    before = termios.tcgetattr(child.child_fd)
    child.expect("ctxchat")
    child.send("half a thought")
    child.expect("broken on the way")
    left = child.before.rpartition("\x1b[?1049l")[2]
    assert "half a thought" in left
    child.expect(pexpect.EOF)
    assert termios.tcgetattr(child.child_fd)[3] == before[3] | termios.ECHO | termios.ICANON


@pytest.mark.parametrize(("width", "height"), [(120, 36), (80, 24), (40, 18), (20, 5), (3, 2), (1, 1)])
def test_the_frame_fits_and_has_its_parts(width: int, height: int) -> None:
    screen = pyte.Screen(width, height)
    typed = EarlyKeys()
    typed.feed("sent\rand 漢字 typed".encode() * 9)
    pyte.Stream(screen).feed(frame(width, height, typed))
    rows = screen.display
    assert len(rows) == height
    assert ("ctxchat" in rows[0]) == (width >= 8)
    assert any("·" in row for row in rows) == (width >= 3 and height >= 2)
    assert any("╭" in row for row in rows) == (height >= 18)
    assert any("typed" in row for row in rows) == (width >= 20)
    assert any("next  and" in row for row in rows) == (width >= 20 and height >= 5)


def test_nothing_heavy_is_imported_for_it() -> None:
    code = "import sys, ctxchat.tui.terminal.first_frame; print([m for m in 'textual rich msgspec'.split() if m in sys.modules])"
    child = pexpect.spawn(sys.executable, ["-c", code], encoding="utf-8", timeout=60)
    child.expect(r"\[\]")


@pytest.mark.pty
@pytest.mark.parametrize("how", ["ctrl+c", "SIGTERM"])
def test_what_was_typed_right_before_the_end_is_told_too(how: str) -> None:
    child = start(code=BUSY)
    child.expect("ctxchat")
    child.send("half")
    child.expect("half")
    child.send(" a thought")
    time.sleep(0.1)  # it has reached the terminal, and waits there
    if how == "ctrl+c":
        child.send("\x03")
    else:
        child.kill(SIGTERM)
    child.expect("This was not sent")
    child.expect("half a thought")
    child.expect(pexpect.EOF)
