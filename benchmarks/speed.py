"""What a person waits for and what it costs, beside a bare Textual app that streams Markdown from the same server: one table.

`python -m benchmarks.speed [--rounds 3] [--idle 20] [--also PYTHON] [--json FILE]`: each in a terminal of 120×36 against
one model server on loopback, taking turns; medians. `--also` measures the ctxchat of another Python beside this one, as that of a
release. Linux only: processor time, wake-ups and memory (PSS, what is shared counted by share) are those of the whole tree of
processes, from /proc.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Named, Sealed
from ctxchat.core.messages import Message
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, says
from tests.e2e.serving import model_options, serving
from tests.e2e.terminal import Terminal

BARE = """
import json, sys
import httpx
from textual.app import App
from textual.containers import VerticalScroll
from textual.widgets import Input, Markdown

class Bare(App):
    CSS = "Input { dock: bottom; }"

    def compose(self):
        yield VerticalScroll(Markdown())
        yield Input(placeholder="Ask, or type")

    def on_mount(self):
        self.query_one(Input).focus()
        self.query_one(VerticalScroll).anchor()

    def on_input_submitted(self, event):
        event.input.clear()
        self.run_worker(self.ask(event.value))

    async def ask(self, text):
        body = {"model": "double", "stream": True, "messages": [{"role": "user", "content": text}]}
        shown = Markdown.get_stream(self.query_one(Markdown))
        async with httpx.AsyncClient(verify=False, timeout=None) as client:
            async with client.stream("POST", sys.argv[1] + "/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]):
                        await shown.write(choices[0]["delta"].get("content") or "")
        await shown.stop()
        self.query_one(VerticalScroll).scroll_end(animate=False)

Bare().run()
"""

READY = "Ask, or type"
FIRST, LAST = "Marzipan", "Zanzibar"
"""What only an answer says, at its beginning and at its end."""

PIECES = "one two six ten. " * 4 + "\n\n"
EVERY = 0.075
"""Seconds from one key to the next: a quick typist."""

LETTERS = [chr(c) for c in range(ord("а"), ord("я") + 1)] + [chr(c) for c in range(ord("α"), ord("ω") + 1)]
"""Keys that are on no other part of the screen, each used once."""

TICKS = os.sysconf("SC_CLK_TCK")

ROWS = {
    "paint_ms": "first screen",
    "key_ms": "first key seen",
    "word_ms": "start, type, Enter: first word of the answer",
    "stream_cpu_s": "1,000 tokens at 100 a second, processor time",
    "echo_p95_ms": "a key in such a stream, 95th percentile",
    "echo_max_ms": "a key in such a stream, worst",
    "burst_ms": "3,000 tokens at once, until all is seen",
    "idle_percent": "at rest, processor",
    "idle_wakes": "at rest, wake-ups a second",
    "memory_mb": "at rest, memory",
}


def answer(body: dict[str, Any]) -> Reply:
    """What the server says, by the message's first word."""
    text = body["messages"][-1]["content"]
    text = text if isinstance(text, str) else "".join(part.get("text", "") for part in text)
    match text.split()[0]:
        case "stream":
            return says(f"{FIRST}. " + PIECES * 73 + LAST, delay=0.01)
        case "burst":
            return says(f"{FIRST}. " + PIECES * 220 + LAST)
        case _:
            return says(f"{FIRST} it is.")


def environment(folder: Path) -> dict[str, str]:
    """A person's, with empty folders for settings and data, and where what was compiled is kept."""
    unlike = {"NO_COLOR", "CTXCHAT_CONFIG_DIR", "CTXCHAT_DATA_DIR", "PYTHONDONTWRITEBYTECODE"}
    kept = {k: v for k, v in os.environ.items() if k not in unlike}
    own = {"CTXCHAT_CONFIG_DIR": str(folder / "settings"), "CTXCHAT_DATA_DIR": str(folder / "data")}
    return kept | own | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def tree(pid: int) -> list[Path]:
    """A process and all below it, as folders of /proc."""
    found = [pid]
    for process in found:
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [Path(f"/proc/{process}") for process in found]


def spent(pid: int) -> tuple[float, int]:
    """Seconds of processor time and wake-ups of the tree so far."""
    ticks, wakes = 0, 0
    for process in tree(pid):
        own = (process / "stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, own[11:15]))  # with those of children that have ended
        for task in (process / "task").iterdir():
            said = (task / "status").read_text()
            wakes += int(said.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return ticks / TICKS, wakes


def run(pid: int) -> float:
    """Seconds of processor time of the threads that live, to the microsecond: at rest a tick of the clock is too coarse."""
    tasks = [task for process in tree(pid) for task in (process / "task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def memory(pid: int) -> float:
    """Megabytes of the tree."""
    rows = [line for process in tree(pid) for line in (process / "smaps_rollup").read_text().splitlines()]
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024


@contextmanager
def opened(command: list[str], folder: Path) -> Iterator[Terminal]:
    """The app in a terminal; nothing of it is left."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with Terminal(command, environment(folder), columns=120, rows=36, cwd=str(work)) as terminal:
        try:
            yield terminal
        finally:
            for process in tree(terminal.pid):
                os.kill(int(process.name), signal.SIGKILL)
            terminal.until(lambda: terminal.exit_code is not None)


def since(start: float) -> float:
    return (time.perf_counter() - start) * 1000


def begun(terminal: Terminal) -> dict[str, float]:
    """From the command to the first answer: a key is pressed until it is seen, as a person would."""
    terminal.until(READY)
    paint, pressed = since(terminal.started), 0.0
    while "z" not in terminal.text:
        if time.perf_counter() - pressed > 0.05:
            pressed = time.perf_counter()
            terminal.type("z")
        terminal.read(0.005)
    key = since(terminal.started)
    terminal.type(" hello there")
    terminal.until("hello there")
    terminal.type("\r")
    terminal.until(FIRST)
    return {"paint_ms": paint, "key_ms": key, "word_ms": since(terminal.started)}


def rested(terminal: Terminal, seconds: float) -> dict[str, float]:
    """What it costs while nothing happens, from five seconds after the last event."""
    terminal.settle(5.0, 12.0)
    cpu, wakes, start = run(terminal.pid), spent(terminal.pid)[1], time.perf_counter()
    time.sleep(seconds)
    cpu_after, wakes_after, took = run(terminal.pid), spent(terminal.pid)[1], time.perf_counter() - start
    return {
        "idle_percent": 100 * (cpu_after - cpu) / took,
        "idle_wakes": (wakes_after - wakes) / took,
        "memory_mb": memory(terminal.pid),
    }


def streamed(terminal: Terminal) -> dict[str, float]:
    """A thousand tokens at a hundred a second, the last of them seen."""
    before = spent(terminal.pid)[0]
    terminal.type("stream please\r")
    terminal.until(LAST)
    return {"stream_cpu_s": spent(terminal.pid)[0] - before}


def echoed(terminal: Terminal, keys: int = 50) -> dict[str, float]:
    """A quick typist in the middle of a stream."""
    terminal.type("stream again\r")
    terminal.settle(0.05, 1.5)
    times: list[float] = []
    for letter in LETTERS[:keys]:
        pressed, at = time.perf_counter(), len(terminal.raw)
        terminal.type(letter)
        while letter not in terminal.raw[at:]:
            if since(pressed) > 10_000:
                raise SystemExit("a key was lost")
            terminal.take(0.002)
        times.append(since(pressed))
        while time.perf_counter() - pressed < EVERY:
            terminal.take(0.005)
    times.sort()
    return {"echo_p95_ms": times[int(0.95 * (len(times) - 1))], "echo_max_ms": times[-1]}


def burst(terminal: Terminal) -> dict[str, float]:
    """Three thousand tokens as fast as they can be sent, from Enter until the last is seen."""
    terminal.type("burst please")
    terminal.until("burst please")
    start = time.perf_counter()
    terminal.type("\r")
    terminal.until(LAST)
    return {"burst_ms": since(start)}


def measured(command: list[str], folder: Path, idle: float) -> dict[str, float]:
    """All of it for one app; a burst and a stream with keys each in a life of its own, where the words they end with are new."""
    with opened(command, folder) as terminal:
        found = begun(terminal) | rested(terminal, idle) | streamed(terminal)
    for further in (burst, echoed):
        with opened(command, folder) as terminal:
            begun(terminal)
            terminal.settle(1.0, 5.0)
            found |= further(terminal)
    return found


def stored(folder: Path, messages: int) -> str:
    """The id of a session of so many messages, the last of them `LAST`."""
    said = [
        Message(n, "user" if n % 2 else "assistant", f"Word {n}: {PIECES}", at="2026-11-21T10:00:00.000Z")
        for n in range(1, messages)
    ]
    said.append(Message(messages, "assistant", LAST, at="2026-11-21T10:00:00.000Z"))
    with Database(folder / "data") as database:
        return sessions.create(database, records=[Named("long"), Sealed(group_messages(said))])


def resumed(command: list[str], folder: Path, double: ModelDouble, session: str) -> dict[str, float]:
    """From the command to the last message and to the gauge; from Enter to the request."""
    roomy = ["--window", "4000000"]  # what is asked is the start of a turn, not a pass
    with opened([*command, *roomy, "--session", session], folder) as terminal:
        terminal.until(LAST)
        seen = since(terminal.started)
        terminal.until("%")
        gauge = since(terminal.started)
        terminal.settle(1.5, 8.0)
        asked = len(double.requests)
        terminal.type("hello there")
        terminal.until("hello there")
        start = time.perf_counter()
        terminal.type("\r")
        while len(double.requests) == asked:
            terminal.read(0.005)
    return {"last_message_ms": seen, "gauge_ms": gauge, "request_ms": since(start)}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--also", metavar="PYTHON", help="The interpreter of another ctxchat, as of a release.")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, serving(answer) as double:
        root = Path(name)
        (root / "bare.py").write_text(BARE)
        chat = ["-m", "ctxchat", *model_options(double)]
        apps = {"bare": [sys.executable, str(root / "bare.py"), double.base_url], "ctxchat": [sys.executable, *chat]}
        apps["litellm"] = apps["ctxchat"]
        if given.also:
            apps["also"] = [given.also, *chat]
        folders = {app: root / app for app in apps}
        for app, folder in folders.items():
            (folder / "settings").mkdir(parents=True)
            if app == "litellm":
                (folder / "settings" / "config.toml").write_text('[models."openai/double"]\ntransport = "litellm"\n')
        taken: dict[str, list[dict[str, float]]] = {app: [] for app in apps}
        kept: dict[int, list[dict[str, float]]] = {10: [], 10_000: []}
        of_size = {size: stored(folders["ctxchat"], size) for size in kept}
        for number in range(given.rounds + 1):
            for app, command in apps.items():
                found = measured(command, folders[app], given.idle if number else 1)
                if number:  # the first time files are read from the disk
                    taken[app].append(found)
            for size, runs in kept.items():
                found = resumed(apps["ctxchat"], folders["ctxchat"], double, of_size[size])
                if number:
                    runs.append(found)
    context_usage = {app: medians(runs) for app, runs in taken.items()}
    print(f"{'':48}" + "".join(f"{app:>10}{'to bare' if app != 'bare' else '':>9}" for app in context_usage))
    for name, words in ROWS.items():
        bare = context_usage["bare"][name]
        cells = (
            f"{each[name]:>10,.4g}{f'{each[name] / bare:.2f}' if app != 'bare' and bare else '':>9}"
            for app, each in context_usage.items()
        )
        print(f"{words:48}" + "".join(cells))
    lengths = {size: medians(runs) for size, runs in kept.items()}
    for name, words in (
        ("last_message_ms", "its last message seen"),
        ("gauge_ms", "its gauge seen"),
        ("request_ms", "Enter to the request"),
    ):
        few, many = (lengths[size][name] for size in (10, 10_000))
        print(f"a session of 10,000 messages: {words:22}{many:>10,.4g}  (of 10: {few:,.4g})")
    report = {**context_usage, "sessions": lengths, "rounds": given.rounds, "load": os.getloadavg()}
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
