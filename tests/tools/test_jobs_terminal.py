"""Background commands of a program that has a terminal: however they end, it is as it was, and nothing of them is left."""

from __future__ import annotations

import os
import select
import sys
import termios
from pathlib import Path

import pytest

from ctxchat.core.ports import ToolContext

PROGRAM = """
import asyncio, os, sys
from ctxchat.core.ports import ToolContext
from ctxchat.tools.jobs import MAX_RUNNING, Jobs
from ctxchat.tools.sandbox import Sandbox, find_sandbox
from ctxchat.tools.shell import Shell

many, workspace, folder = int(sys.argv[1]), *sys.argv[2:4]
ENDS = (
    "exit {n}",
    "kill -9 $$",
    "sleep 72{n:03} & echo held",
    "trap '' TERM; while :; do sleep 72{n:03}; done",
    "stty raw -echo < /dev/tty; stty raw -echo; tput civis; cat > /dev/null; sleep 72{n:03}",
    "printf '\\\\033[?1049h\\\\033[?25l'; setsid sleep 72{n:03} & sleep 72{n:03}",
)

async def main():
    context = ToolContext("c", workspace, folder)
    jobs = Jobs(folder)
    shells = [Shell(Sandbox(), os.environ, jobs=jobs), Shell(find_sandbox(), os.environ, jobs=jobs)]
    for first in range(0, many, MAX_RUNNING):
        begun = []
        for n in range(first, min(many, first + MAX_RUNNING)):
            command = ENDS[n % len(ENDS)].format(n=n % 1000)
            begun.append(await shells[n % 2].begin(command, ["/bin/bash", "-c", command], context))
        await asyncio.gather(*(job.wait(60) for n, job in enumerate(begun, first) if n % len(ENDS) < 3))
        await asyncio.gather(*(job.stop() for job in begun))
    much = f"head -c {many * 500_000} /dev/zero"
    job = await shells[0].begin(much, ["/bin/bash", "-c", much], context)
    await job.wait(300)
    print("ended", many, job.received, job.state)
    await jobs.close()

asyncio.run(main())
"""


def seen_from(terminal: int, child: int) -> str:
    """What a program wrote to its terminal until it ended."""
    seen = b""
    while select.select([terminal], [], [], 0.1)[0] or not os.waitpid(child, os.WNOHANG)[0]:
        seen += os.read(terminal, 65536) if select.select([terminal], [], [], 0)[0] else b""
    return seen.decode("utf-8", "replace")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("many", [12, pytest.param(200, marks=pytest.mark.long)])
def test_the_terminal_is_as_it_was_and_nothing_is_left(context: ToolContext, workspace: Path, many: int) -> None:
    terminal, held = os.openpty()
    before = termios.tcgetattr(terminal)
    if not (child := os.fork()):
        os.login_tty(held)
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, str(many), str(workspace), context.session_folder])
    try:
        said = seen_from(terminal, child)
        assert termios.tcgetattr(terminal) == before
    finally:
        os.close(held)
        os.close(terminal)
    assert said.strip() == f"ended {many} {many * 500_000} ended with exit code 0"
    lines = [place for place in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x0072" in _read(place)]
    assert not lines


def _read(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:  # it has ended
        return b""
