"""How long a typed key takes to be on screen: with nothing going on, while litellm loads in its process, and while a reply
streams at a hundred tokens a second.

`python -m benchmarks.echo`: in a pseudo-terminal of 120×36, against a model server on loopback; median and 95th percentile in
milliseconds. A key counts as seen when the program has written it, before any terminal has drawn it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.first_paint import environment
from tests.doubles.replies import says
from tests.e2e.serving import model_options, serving
from tests.e2e.terminal import Terminal

READY = "Ask, or type"
EVERY = 0.075
"""Seconds from one key to the next: a quick typist."""

LETTERS = [chr(c) for c in range(ord("а"), ord("я") + 1)] + [chr(c) for c in range(ord("α"), ord("ω") + 1)]
"""Keys that are on no other part of the screen, each used once."""


def echoes(terminal: Terminal, keys: int) -> Iterator[float]:
    """Seconds from each key to its echo."""
    for letter in LETTERS[:keys]:
        pressed = time.perf_counter()
        at = len(terminal.raw)
        terminal.type(letter)
        while letter not in terminal.raw[at:]:
            if time.perf_counter() - pressed > 10:
                raise SystemExit("a key was lost")
            terminal.take(0.002)
        yield time.perf_counter() - pressed
        while time.perf_counter() - pressed < EVERY:
            terminal.take(0.005)


def start(folder: Path, *options: str) -> Terminal:
    """The chat, as soon as it is painted."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    terminal = Terminal(
        [sys.executable, "-m", "ctxchat", *options], environment(folder), columns=120, rows=36, cwd=str(work)
    )
    terminal.until(READY)
    return terminal


def idle(folder: Path, keys: int) -> list[float]:
    """Nothing but the keys."""
    with start(folder, "--model", "offline/assistant") as terminal:
        terminal.settle(1.0)
        return list(echoes(terminal, keys))


def loading(folder: Path, keys: int) -> list[float]:
    """From the first paint on: the session is opened, and litellm's process has just been started."""
    with serving([says("hello")]) as double, start(folder, *model_options(double)) as terminal:
        return list(echoes(terminal, keys))


def streaming(folder: Path, keys: int) -> list[float]:
    """A hundred pieces of five characters each second."""
    reply = says("Beginning. " + "one two six ten. " * 4000, delay=0.01)
    with serving([reply]) as double, start(folder, *model_options(double)) as terminal:
        terminal.type("Tell me\r")
        terminal.until("Beginning.", 60)
        terminal.settle(0.05, 1.0)
        return list(echoes(terminal, keys))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=50)
    keys = min(parser.parse_args().keys, len(LETTERS))
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for state in (idle, loading, streaming):
            times = sorted(seconds * 1000 for seconds in state(Path(name), keys))
            result[state.__name__] = {
                "p50_ms": round(statistics.median(times), 1),
                "p95_ms": round(times[int(0.95 * (len(times) - 1))], 1),
                "worst_ms": round(times[-1], 1),
            }
    print(json.dumps({"keys": keys, **result}, indent=2))


if __name__ == "__main__":
    main()
