"""The table of signals: what each does to a running chat, and the terminal, the draft and the processes behind it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from signal import SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH
from typing import Any

import pytest

from ctxchat.tui.terminal.driver import LEFT
from tests.cli.conftest import Home
from tests.e2e.conftest import READY, Open, left_clean
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.pty
QUICK = {"asked again and again", "all of it, and sizes"}
"""Rows of the table that are tried each time; the others hold the same door from another side."""

ENDS: dict[str, tuple[Sequence[int], set[int]]] = {
    "the machine goes down": ([SIGTERM], {143}),
    "the terminal was closed": ([SIGHUP], {129}),
    "interrupted from outside": ([SIGINT], {130}),
    "asked to quit": ([SIGQUIT], {131}),
    # Which of several that wait is heard first, no system promises.
    "asked again and again": ([SIGHUP, SIGTERM, SIGINT, SIGHUP], {129, 130, 143}),
    "asked while it is stopped": ([SIGTSTP, SIGTERM, SIGCONT], {143}),
}
STAYS: dict[str, Sequence[int]] = {
    "told to go on though it ran": [SIGCONT],
    "stopped and going on": [SIGTSTP, SIGCONT],
    "stopped twice": [SIGTSTP, SIGTSTP, SIGCONT],
    "stopped without a chance to put anything in order": [SIGSTOP, SIGCONT],
    "all of it, and sizes": [SIGCONT, *[SIGWINCH] * 30, SIGTSTP, SIGCONT, SIGCONT, SIGPIPE],
}
MODES = [("\x1b[?25l", "\x1b[?25h"), *((f"\x1b[?{n}h", f"\x1b[?{n}l") for n in (1049, 1000, 1003, 1004, 1006, 2004))]
"""On and off."""


def rows(table: dict[str, Any]) -> list[Any]:
    return [pytest.param(row, id=name, marks=() if name in QUICK else pytest.mark.long) for name, row in table.items()]


def written(terminal: Terminal) -> None:
    """There is a draft, and it has been kept."""
    terminal.until(READY)
    terminal.type("half a thought")
    terminal.until("half a thought")
    terminal.settle(0.6, 1.5)


def send(terminal: Terminal, numbers: Sequence[int]) -> None:
    for number in numbers:
        os.kill(terminal.pid, number)
        if number in (SIGTSTP, SIGSTOP):
            stopped(terminal)


def stopped(terminal: Terminal) -> None:
    terminal.until(lambda: state(terminal.pid) in {"T", "Z"})


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def below(pid: int) -> list[int]:
    """The processes it started, and theirs."""
    found = [int(each) for task in Path(f"/proc/{pid}/task").glob("*/children") for each in task.read_text().split()]
    return [each for child in found for each in (child, *below(child))]


def gone(pids: Sequence[int]) -> bool:
    return all(state(pid) == "Z" for pid in pids)


def draft_is_back(chat: Open) -> None:
    with chat() as terminal:
        terminal.until(READY)
        terminal.press("\x1b[A")
        terminal.until("half a thought")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("row", rows(ENDS))
def test_what_asks_for_the_end_gets_it_in_good_order(chat: Open, row: tuple[Sequence[int], set[int]]) -> None:
    numbers, codes = row
    with chat() as terminal:
        written(terminal)
        processes = below(terminal.pid)
        send(terminal, numbers)
        assert terminal.wait() in codes
        assert left_clean(terminal)
        assert "Traceback" not in terminal.raw and "never awaited" not in terminal.raw
        terminal.until(lambda: gone(processes)) if not gone(processes) else None
    draft_is_back(chat)


@pytest.mark.parametrize("numbers", rows(STAYS))
def test_what_stops_it_or_lets_it_go_on_leaves_it_as_it_was(chat: Open, numbers: Sequence[int]) -> None:
    with chat() as terminal:
        written(terminal)
        send(terminal, numbers)
        terminal.screen.reset()  # what it shows from here on it has drawn anew
        terminal.resize(100, 30)
        terminal.type(", and the rest")
        terminal.until("half a thought, and the rest")
        assert all(terminal.raw.rfind(on) > terminal.raw.rfind(off) for on, off in MODES)
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
        assert left_clean(terminal)


WRITES_A_LOT = """
from textual.app import App
from ctxchat.tui.terminal.driver import Terminal

class Full(App):
    def on_mount(self):
        for _ in range(25):
            self._driver.write("x" * 20_000)
        self.exit()

Full(driver_class=Terminal).run()
"""


def test_all_that_was_written_is_out_before_the_terminal_is_given_back() -> None:
    with Terminal([sys.executable, "-c", WRITES_A_LOT], os.environ) as terminal:
        while terminal.settings_kept:
            time.sleep(0.01)
        while not terminal.settings_kept:  # more was written than a terminal holds: it goes as fast as it is read
            terminal.take(0.0, 4096)
        os.kill(terminal.pid, SIGSTOP)
        while terminal.take(0.2):
            pass
        assert terminal.raw.count("x" * 20_000) == 25 and LEFT in terminal.raw
        os.kill(terminal.pid, SIGCONT)


@pytest.mark.long
def test_stopped_the_terminal_is_as_it_was_before(chat: Open) -> None:
    with chat() as terminal:
        written(terminal)
        os.kill(terminal.pid, SIGTSTP)
        stopped(terminal)
        terminal.settle(0.1, 1.0)
        assert left_clean(terminal)
        os.kill(terminal.pid, SIGCONT)
        terminal.until("half a thought")
        os.kill(terminal.pid, SIGKILL)
        assert terminal.wait() == -SIGKILL


def test_a_terminal_that_is_gone_ends_it_and_everything_it_started(chat: Open, harbour: Home) -> None:
    with chat() as terminal:
        written(terminal)
        processes = [terminal.pid, *below(terminal.pid)]
        terminal.hang_up()
        end = time.monotonic() + 30
        while not gone(processes) and time.monotonic() < end:
            time.sleep(0.05)
        assert gone(processes)
    assert not (harbour.data / "errors.log").exists()
    draft_is_back(chat)


@pytest.mark.long
def test_one_that_takes_no_output_is_left_all_the_same(chat: Open, harbour: Home) -> None:
    """A connection that hangs: nobody reads, the screen cannot be drawn, and nobody waits for that for ever."""
    with chat() as terminal:
        written(terminal)
        for number in range(400):
            terminal.type("\x1bOQ" if number % 2 else "words that have to be drawn, ")
        os.kill(terminal.pid, SIGTERM)
        end = time.monotonic() + 30
        while state(terminal.pid) != "Z" and time.monotonic() < end:
            time.sleep(0.05)
        assert state(terminal.pid) == "Z"
        assert terminal.wait() == 143
        assert terminal.settings_kept


@pytest.mark.parametrize("left_open", ["\x1b[200~half a paste", "\x1b[200~half\x1b[20", "\x1b[20"])
def test_ctrl_q_ends_it_behind_a_paste_whose_end_was_lost(chat: Open, left_open: str) -> None:
    with chat() as terminal:
        terminal.until(READY, 180)
        terminal.resize(40, 12)
        terminal.type(left_open)
        terminal.resize(120, 36)
        terminal.settle(1.5, 10.0)
        terminal.read(1.2)
        terminal.type("\x11")
        assert terminal.wait() == 0
        assert left_clean(terminal)
