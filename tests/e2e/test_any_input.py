"""Keys, pastes, bytes, clicks and sizes at random, in a real terminal: after each the program lives, or it was asked to end."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from signal import SIGCONT

import pytest

from ctxchat.tui.terminal.parser import PASTE_TIMEOUT_S
from tests.cli.conftest import Home
from tests.e2e.conftest import READY, Open, left_clean
from tests.e2e.terminal import ESCAPE, Terminal
from tests.e2e.test_signals import state

pytestmark = [pytest.mark.pty, pytest.mark.long]

SEEDS = int(os.environ.get("CTXCHAT_FUZZ_SEEDS", "12"))
STEPS = 250
"""Actions with each seed: 3,000 in all."""
HANGS = 600.0
"""Seconds without an answer after which nobody is only slow."""

F_KEYS = [*(f"\x1bO{sign}" for sign in "PQRS"), *(f"\x1b[{n}~" for n in (15, 17, 18, 19, 20, 21, 23, 24))]
MOVES = [f"\x1b[{sign}" for sign in "ABCDHFZ"] + ["\x1b[5~", "\x1b[6~", "\x1b[3~"]
CONTROLS = [chr(n) for n in range(1, 27) if n != ord("\x11")]
ALTS = [ESCAPE + sign for sign in "abcdefghijklmnopqrstuvwxyz"]
COMMON = ["\r", "\r", "\t", ESCAPE, ESCAPE, ESCAPE, " ", "\x7f", "/", "@", "y", "n", "u", "d", "t", "3"]
TEXTS = [
    "Where is INTERVAL set?",
    "/context read",
    "/rename [b]x[/] \u202e",
    "/theme ",
    "/model nobody/none",
    "@src/g",
    "\U0001f469\u200d\U0001f4bb e\u0301\u200b 漢字 \ufffd",
    "[@click=app.quit]boo[/] [/tmp/x]",
]
PASTES = [
    "x" * 20_000,
    "two\nlines\r\nthree",
    "\x1b]0;x\x07\x1b[2J\x03\x11",
    "/etc/passwd",
    "README.md",
    "",
    "\x00\x9b31m",
]
SIZES = [(120, 36), (80, 24), (40, 20), (20, 5), (2, 2), (1, 1), (140, 44)]
QUIT = "\x11"


def a_key(chosen: random.Random) -> str:
    return chosen.choice(chosen.choice([F_KEYS, MOVES, CONTROLS, ALTS, COMMON, COMMON]))


def keys(chosen: random.Random) -> str:
    return "".join(a_key(chosen) for _ in range(chosen.choice([1, 1, 2, 3, 8])))


def text(chosen: random.Random) -> str:
    return chosen.choice(TEXTS) + chosen.choice(["", "\r", "\n", "\r\r"])


def paste(chosen: random.Random) -> str:
    return "\x1b[200~" + chosen.choice(PASTES) + chosen.choice(["\x1b[201~"] * 5 + [""])


def mouse(chosen: random.Random) -> str:
    x, y, button = chosen.randrange(1, 140), chosen.randrange(1, 44), chosen.choice([0, 0, 2, 35, 64, 65])
    return f"\x1b[<{button};{x};{y}M\x1b[<{button};{x};{y}m"


def noise(chosen: random.Random) -> bytes:
    raw = chosen.randbytes(chosen.randrange(1, 40)) if chosen.random() < 0.5 else b""
    sequence = "".join(chosen.choices("0123456789;:?<>[]OuM~ABcnty", k=chosen.randrange(1, 16)))
    return (raw + ESCAPE.encode() + b"[" + sequence.encode()).replace(QUIT.encode(), b"")


def leave(chosen: random.Random) -> str:
    return QUIT


ACTIONS: list[tuple[Callable[[random.Random], str | bytes], int]] = [
    (keys, 60),
    (text, 12),
    (paste, 5),
    (mouse, 8),
    (noise, 10),
    (leave, 1),
]


def act(terminal: Terminal, chosen: random.Random) -> str:
    """One thing, done; what it was."""
    if chosen.random() < 0.06:
        size = chosen.choice(SIZES)
        terminal.resize(*size)
        return f"size {size}"
    if chosen.random() < 0.05:
        return slow_paste(terminal, chosen)
    (what,) = chosen.choices([do for do, _ in ACTIONS], [often for _, often in ACTIONS])
    sent = what(chosen)
    terminal.type(sent)
    return f"{what.__name__} {sent!r:.200}"


def slow_paste(terminal: Terminal, chosen: random.Random) -> str:
    """Over a bad line: in pieces, its end late or never, and with another size in the middle."""
    whole = paste(chosen)
    cuts = sorted(chosen.randrange(len(whole)) for _ in range(3))
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        terminal.type(whole[start:end])
        terminal.read_for(chosen.choice([0.05, 0.3, 1.2, PASTE_TIMEOUT_S + 1]))
        if chosen.random() < 0.3:
            terminal.resize(*chosen.choice(SIZES))
    if chosen.random() < 0.3:
        terminal.read_for(chosen.choice([1.2, PASTE_TIMEOUT_S + 1]))
        terminal.type("\x1b[201~")
    return f"slow paste {whole!r:.60}"


def until(terminal: Terminal, wanted: Callable[[], bool]) -> None:
    """Until then, or it ended. Ctrl+Z while an editor has the terminal stops both, and whoever sits there goes on with them."""

    begun = time.monotonic()

    def seen() -> bool:
        if state(terminal.pid) == "T":
            os.killpg(terminal.pid, SIGCONT)
        if time.monotonic() - begun > 5 and terminal.in_lines:
            terminal.type(
                QUIT
            )  # Ctrl+S behind the end has stopped all that is written, as in any shell, and this lets it go on
        return terminal.exit_code is not None or wanted()

    terminal.until(seen, HANGS)


def draws(terminal: Terminal) -> None:
    """It is not stuck: another size is another screen."""
    before = len(terminal.raw)
    terminal.resize(100, 30)
    terminal.resize(101, 31)
    until(terminal, lambda: len(terminal.raw) > before)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_that_comes_in_ends_it(chat: Open, harbour: Home, seed: int) -> None:
    chosen = random.Random(seed)
    done: list[str] = []
    screens: list[str] = []
    terminal = None
    try:
        for _ in range(STEPS):
            if terminal is None:
                terminal = chat(EDITOR="true", VISUAL="true")
                terminal.until(READY, HANGS)
                done.append("start")
            screens = [*screens[-9:], terminal.text]
            done.append(act(terminal, chosen))
            terminal.read(chosen.choice([0.0, 0.01, 0.1]))
            if len(done) % 10 == 0:
                terminal.settle(0.4, HANGS)  # keys are taken one after another: without a pause they pile up
                draws(terminal)
            if terminal.exit_code is not None:
                since = done[len(done) - done[::-1].index("start") :]
                # The list of all commands holds Quit: keys that come at once may take it before it is painted.
                offered = any(re.search("quit|/undo +alt", one.lower()) for one in [*screens, terminal.text])
                listed = any(r"\x10" in one for one in since[-12:])
                pasted = any(
                    "slow paste" in one and repr(QUIT)[1:-1] in one for one in since
                )  # a piece that came too late
                asked = offered or listed or pasted or any("leave" in one for one in since)
                assert asked and terminal.exit_code == 0, terminal.exit_code
                ended(terminal, harbour)
                terminal = None
        if terminal is not None:
            over(terminal, harbour)
            ended(terminal, harbour)
            terminal = None
    except BaseException:
        print("\n".join(done[-40:]))
        if terminal is not None:
            print(f"── screen ──\n{terminal.text}\n── exit {terminal.exit_code} ──\n{terminal.raw[-1500:]!r}")
        raise
    finally:
        if terminal is not None:
            terminal.kill()
            terminal.wait()


def over(terminal: Terminal, harbour: Home) -> None:
    """A person leaves: out of the paste, the screens, the fields."""
    terminal.resize(100, 30)
    terminal.type("\x1b\\\x1b[201~")
    for _ in range(6):
        terminal.settle(0.2, 1.0)
        terminal.type(ESCAPE)
    settings = harbour.settings / "config.toml"
    if settings.exists() and "quit" in settings.read_text():  # the key may be another one
        terminal.kill(15)
        assert terminal.wait(HANGS) == 143
        return
    terminal.type(QUIT)
    until(terminal, lambda: False)
    assert terminal.wait() == 0  # behind all that was pressed before


def ended(terminal: Terminal, harbour: Home) -> None:
    terminal.wait()
    assert left_clean(terminal)
    assert "Traceback" not in terminal.raw and "never awaited" not in terminal.raw
    log = harbour.data / "errors.log"
    assert not log.exists(), log.read_text()
