"""Memory of the whole program in a terminal, interface and all, as one session grows: turns with a tool call each, and the passes
they need in a window of 16,000 tokens.

`python -m benchmarks.life [turns]`. Linux only: megabytes (PSS) of all its processes, from /proc.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.speed import memory, opened
from tests.doubles.replies import Reply, call, calls, says
from tests.e2e.serving import model_options, serving

TOLD = (100, 300, 1000, 2000, 3000)
ASKED = "how is the service?"


def answer(body: dict[str, Any]) -> Reply:
    """A look into the log, then an answer; a summary where one is wanted."""
    if not body.get("tools"):
        return says("They asked about the service, and were told.")
    turn = body["messages"]
    asked = max((n for n, message in enumerate(turn) if ASKED in json.dumps(message)), default=0)
    if any(message["role"] == "tool" for message in turn[asked:]):
        return says("The service is well, as it was before. " * 5)
    return calls(call("read_file", path="log.txt"))


def main(turns: int) -> None:
    with tempfile.TemporaryDirectory() as name, serving(answer) as double:
        folder = Path(name)
        (folder / "work").mkdir()
        (folder / "work" / "log.txt").write_text("a line of the log\n" * 10)
        command = [sys.executable, "-m", "ctxchat", *model_options(double), "--window", "16000"]
        with opened(command, folder) as terminal:
            terminal.until("enter send")
            print(f"{'turn':>6} {'MB':>7}")
            for turn in range(1, turns + 1):
                done = len(double.requests)
                terminal.type(f"question {turn}: {ASKED}\r")
                terminal.until(lambda: len(double.requests) >= done + 2 and "enter send" in terminal.text)  # noqa: B023
                terminal.raw = ""  # it keeps all that was ever written
                if turn in TOLD or turn == turns:
                    terminal.settle(2.0, 10.0)
                    print(f"{turn:6} {memory(terminal.pid):7.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TOLD[-1])
