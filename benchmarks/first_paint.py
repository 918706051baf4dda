"""How long from the command to something on screen, to all of the first screen, and to the first key on it, ctxchat beside
a bare Textual app.

`python -m benchmarks.first_paint`: both in a pseudo-terminal of 120×36, taking turns; medians, and their ratio. The bare app
has a header, an input and a log, and nothing to do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.terminal import Terminal

BARE = """
from textual.app import App
from textual.widgets import Header, Input, Log

class Bare(App):
    TITLE = "bare"
    CSS = "Input { dock: bottom; }"

    def compose(self):
        yield Header()
        yield Log()
        yield Input(placeholder="Ask something")

    def on_mount(self):
        self.query_one(Input).focus()

Bare().run()
"""


def environment(folder: Path) -> dict[str, str]:
    """A person's, with empty folders for settings and data."""
    kept = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "CTXCHAT_CONFIG_DIR", "CTXCHAT_DATA_DIR"}}
    own = {"CTXCHAT_CONFIG_DIR": str(folder / "settings"), "CTXCHAT_DATA_DIR": str(folder / "data")}
    return kept | own | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def once(command: list[str], placeholder: str, folder: Path) -> tuple[float, float, float]:
    """Seconds from the start to anything on screen, to the input's placeholder, and to a key (pressed until it is seen)."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with Terminal(command, environment(folder), columns=120, rows=36, cwd=str(work)) as terminal:
        terminal.until(lambda: bool(terminal.text.strip()))
        begun = time.perf_counter() - terminal.started
        terminal.until(placeholder)
        painted = time.perf_counter() - terminal.started
        pressed = 0.0
        while "zz" not in terminal.text:
            if time.perf_counter() - pressed > 0.05:
                pressed = time.perf_counter()
                terminal.type("zz")
            terminal.read(0.005)
        taken = time.perf_counter() - terminal.started
        terminal.settle(0.2, 1.0)  # what starts after the first paint is not to disturb the next run
    return begun, painted, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bare.py").write_text(BARE)
        apps = {
            "bare": ([sys.executable, str(folder / "bare.py")], "Ask something"),
            "ctxchat": ([sys.executable, "-m", "ctxchat"], "Ask, or type"),
        }
        times: dict[str, list[tuple[float, float, float]]] = {app: [] for app in apps}
        for run in range(runs + 1):
            for app, (command, placeholder) in apps.items():
                measured = once(command, placeholder, folder)
                if run:  # the first of each fills the caches
                    times[app].append(measured)
    result = {
        what: {app: round(statistics.median(t[place] for t in times[app]) * 1000) for app in apps}
        for place, what in enumerate(("first_cells_ms", "first_screen_ms", "first_key_ms"))
    }
    for figures in result.values():
        figures["ratio"] = round(figures["ctxchat"] / figures["bare"], 2)
    print(json.dumps({"runs": runs, **result}, indent=2))


if __name__ == "__main__":
    main()
