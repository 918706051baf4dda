"""What is typed and sent while the program starts: nothing of it is lost, doubled or swapped, and the terminal is given back."""

from __future__ import annotations

import os
import random
import sys
from signal import SIGHUP, SIGINT, SIGTERM

import pytest

from tests.cli.conftest import Home
from tests.e2e.conftest import READY, Open, left_clean
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.pty

TYPED = "a 漢b,c é\x1b[200~ pasted\n漢 é x\x1b[201~ de e\u0301fg h\x7fi\x1b[D\x1b[Cj 🙂k 0123456789"
SEEN = ("a 漢b,c é pasted", "漢 é x de éfg ij 🙂k 0123456789")

SEEDS = [pytest.param(seed, marks=() if seed < 3 else pytest.mark.long) for seed in range(20)]


def test_a_question_typed_before_there_is_a_frame_is_asked(harbour: Home) -> None:
    with Terminal([sys.executable, "-m", "ctxchat"], harbour.environ, cwd=str(harbour.work)) as terminal:
        terminal.type("Where is INTERVAL set?\r")
        terminal.until("src/gauge.py:2")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_typed_at_whatever_moment_arrives_as_it_was_typed(chat: Open, seed: int) -> None:
    """Byte by byte, so that keys and pastes are cut wherever that can be."""
    chosen = random.Random(seed)
    slow = chosen.choice([0.0, 0.01, 0.03])
    with chat("--model", "offline/assistant") as terminal:
        for byte in TYPED.encode():
            terminal.type(bytes([byte]))
            terminal.read(chosen.uniform(0, slow))
        terminal.until(READY)
        for words in SEEN:
            terminal.until(words)
        assert [sum(words in row for row in terminal.lines) for words in SEEN] == [1, 1]
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


def test_keys_are_seen_before_the_interface_is_there(chat: Open) -> None:
    with chat("--model", "offline/assistant", "--window", "0") as terminal:
        terminal.until("Ask, or type")
        assert not terminal.shows(READY)
        terminal.type("Where is INTERVAL set?\r")
        terminal.until("next Where is INTERVAL set?")
        terminal.type("and then\x17so")
        terminal.until("and so")
        assert not terminal.shows(READY)
        terminal.until("src/gauge.py:2")
        terminal.until(lambda: any(row.startswith(" │ and so ") for row in terminal.lines))
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


def test_what_was_typed_stays_in_sight_until_the_interface_is_there(chat: Open) -> None:
    """Each frame is drawn in small pieces and looked at after each; the other screen is not entered, and cleared, again."""
    with chat("--model", "offline/assistant") as terminal:
        terminal.until("Ask, or type")
        terminal.type("zebra")
        terminal.until("zebra")
        while not terminal.shows(READY):
            terminal.read(0.05, 64)
            assert terminal.shows("zebra")
        assert terminal.raw.count("\x1b[?1049h") == 1
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_asked_to_end_while_it_starts_it_gives_the_terminal_back(chat: Open, seed: int) -> None:
    chosen = random.Random(seed)
    how = chosen.choice([SIGHUP, SIGINT, SIGTERM, b"\x03"])
    with chat("--model", "offline/assistant") as terminal:
        terminal.until("ctxchat")
        terminal.type("half a thought")
        terminal.settle(0.01, chosen.uniform(0, 0.5))
        interface = "\x1b[?1004h" in terminal.raw
        if isinstance(how, bytes):
            terminal.type(how)
            if interface:
                terminal.press("ctrl+q")  # there ctrl+c copies
        else:
            os.kill(terminal.pid, how)
        assert terminal.wait() in {0, 129, 130, 143}
        assert left_clean(terminal)
        assert "Traceback" not in terminal.raw
        left = terminal.raw.rpartition("\x1b[?1049l")[2]
        assert interface or ("This was not sent" in left and "half a thought" in left)


@pytest.mark.parametrize(
    "arguments", [["--bogus"], ["--help"], ["--window", "x"], ["--session"], ["nothing"], ["config", "path"]]
)
def test_what_opens_no_chat_paints_nothing(chat: Open, arguments: list[str]) -> None:
    with chat(*arguments) as terminal:
        terminal.wait()
        assert terminal.raw.strip() and "\x1b[?1049h" not in terminal.raw


def test_a_settings_file_that_is_not_there_is_said_on_the_screen_there_was_before(chat: Open) -> None:
    with chat("--config", "nowhere.toml") as terminal:
        assert terminal.wait() == 2
        assert left_clean(terminal)
        assert "there is no such settings file" in terminal.raw.rpartition("\x1b[?1049l")[2]
