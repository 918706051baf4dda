"""How long from the command to the first word of an answer, straight and through litellm, beside a bare Textual app; and what
the whole tree of processes weighs at rest after it.

`python -m benchmarks.first_word`: each in a pseudo-terminal of 120×36, taking turns, against one model server on loopback that
answers at once. A message is typed as soon as keys are taken, then Enter. Medians; memory as the kernel shares it out (PSS).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.first_paint import environment
from tests.doubles.replies import says
from tests.e2e.serving import model_options, serving
from tests.e2e.terminal import Terminal

BARE = """
import json, sys
import httpx
from textual.app import App
from textual.widgets import Input, Log

class Bare(App):
    CSS = "Input { dock: bottom; }"

    def compose(self):
        yield Log()
        yield Input(placeholder="Ask something")

    def on_mount(self):
        self.query_one(Input).focus()

    def on_input_submitted(self, event):
        self.run_worker(self.ask(event.value))

    async def ask(self, text):
        body = {"model": "double", "stream": True, "messages": [{"role": "user", "content": text}]}
        async with httpx.AsyncClient(verify=False) as client:
            async with client.stream("POST", sys.argv[1] + "/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]):
                        self.query_one(Log).write(choices[0]["delta"].get("content") or "")

Bare().run()
"""

WORD = "Marzipan"
"""What only the answer says."""


def once(command: list[str], placeholder: str, folder: Path) -> tuple[float, float]:
    """Seconds from the start to the answer's first word, and the tree's memory in MB two seconds later."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with Terminal(command, environment(folder), columns=120, rows=36, cwd=str(work)) as terminal:
        terminal.until(placeholder)
        terminal.type("hello there")
        terminal.until("hello there")
        terminal.type("\r")
        terminal.until(WORD)
        word = time.perf_counter() - terminal.started
        terminal.settle(2.0, 8.0)
        processes = tree(terminal.pid)
        memory = sum(map(weight, processes))
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        terminal.until(lambda: terminal.exit_code is not None)
    return word, memory


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(below for child in children for below in tree(int(child)))]


def weight(pid: int) -> float:
    """MB of a process, what it shares counted by share."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name, serving(lambda _: says(f"{WORD} it is.")) as double:
        folder = Path(name)
        (folder / "bare.py").write_text(BARE)
        (folder / "settings").mkdir()
        ctxchat = [sys.executable, "-m", "ctxchat", *model_options(double)]
        apps = {
            "bare": ([sys.executable, str(folder / "bare.py"), double.base_url], "Ask something", ""),
            "straight": (ctxchat, "Ask, or type", "auto"),
            "litellm": (ctxchat, "Ask, or type", "litellm"),
        }
        taken: dict[str, list[tuple[float, float]]] = {app: [] for app in apps}
        for run in range(runs + 1):
            for app, (command, placeholder, transport) in apps.items():
                setting = f'[models."openai/double"]\ntransport = "{transport}"\n' if transport else ""
                (folder / "settings" / "config.toml").write_text(setting)
                measured = once(command, placeholder, folder)
                if run:  # the first time files are read from the disk
                    taken[app].append(measured)
        figures = {
            app: {
                "first_word_s": round(statistics.median(word for word, _ in each), 3),
                "tree_mb": round(statistics.median(memory for _, memory in each)),
            }
            for app, each in taken.items()
        }
    bare = figures["bare"]["first_word_s"]
    print(f"{'':10}{'first word':>12}{'to bare':>9}{'memory':>9}")
    for app, each in figures.items():
        print(f"{app:10}{each['first_word_s']:>10} s{each['first_word_s'] / bare:>9.2f}{each['tree_mb']:>6} MB")
    print(json.dumps({**figures, "load": os.getloadavg()}))


if __name__ == "__main__":
    main()
