"""What the interface costs while nothing happens: wake-ups and CPU of all its processes, and their memory, beside those of a
bare Textual app with one input.

`python -m benchmarks.idle [--seconds 30]`: in a pseudo-terminal of 120×36, from five seconds after the first frame. Linux only:
read from /proc. Memory is what no other process shares (the sum of `Private_*`), in megabytes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.first_paint import environment
from tests.doubles.replies import says
from tests.e2e.serving import model_options, serving
from tests.e2e.terminal import Terminal

BARE = """
from textual.app import App
from textual.widgets import Input

class Bare(App):
    def compose(self):
        yield Input(placeholder="Ask, or type")

Bare().run()
"""
TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[Path]:
    """The process and what it started, as folders of /proc."""
    found = [root]
    for process in found:
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [Path(f"/proc/{process}") for process in found]


def spent(processes: list[Path]) -> tuple[int, float]:
    """Wake-ups and seconds of CPU of all their threads so far."""
    wakes, ticks = 0, 0
    for task in (task for process in processes for task in (process / "task").iterdir()):
        status = (task / "status").read_text()
        wakes += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        ticks += sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return wakes, ticks / TICKS


def measured(command: list[str], folder: Path, seconds: float) -> dict[str, float]:
    with Terminal(command, environment(folder), columns=120, rows=36, cwd=str(folder)) as terminal:
        terminal.until("Ask, or type")
        terminal.settle(5)
        processes = tree(terminal.pid)
        before, start = spent(processes), time.perf_counter()
        time.sleep(seconds)
        after, took = spent(processes), time.perf_counter() - start
        private = [
            int(line.split()[1])
            for process in processes
            for line in (process / "smaps_rollup").read_text().splitlines()
            if line.startswith("Private_")
        ]
    return {
        "wakeups_per_second": round((after[0] - before[0]) / took, 1),
        "cpu_percent": round(100 * (after[1] - before[1]) / took, 2),
        "memory_mb": round(sum(private) / 1024),
        "processes": len(processes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    seconds = parser.parse_args().seconds
    python = [sys.executable]
    with tempfile.TemporaryDirectory() as name, serving([says("hello")]) as double:
        work = Path(name)
        chat = [*python, "-m", "ctxchat"]
        result = {
            "bare Textual": measured([*python, "-c", BARE], work, seconds),
            "offline assistant": measured([*chat, "--model", "offline/assistant"], work, seconds),
            "a server on loopback": measured([*chat, *model_options(double)], work, seconds),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
