"""Child processes that always end: with the caller, with its time-out, and with all their children. Knows no tool."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

GRACE = 1.0
"""Seconds between asking a group of processes to end and ending it."""

_SECRET = re.compile(
    r"(?:^|_)(?:api_?key|access_?key|private_?key|key|token|passw(?:or)?d|passphrase|pat|credentials?|auth_?sock)(?:_|\d|$)|secret",
    re.IGNORECASE,
)


def environment(given: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """An environment for foreign commands: without keys, and such that nothing waits for a person or draws for one."""
    plain = {name: value for name, value in given.items() if name in keep or not _SECRET.search(name)}
    quiet = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
    return plain | quiet


@asynccontextmanager
async def child(argv: Sequence[str], **options: Any) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A process in a group of its own. However the block is left, nothing of the group is alive afterwards.

    Its input is empty unless `stdin` says otherwise: else it would take the keys from the person at the terminal.
    """
    options = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE} | options
    process = await asyncio.create_subprocess_exec(*argv, start_new_session=True, **options)
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """SIGTERM and a while to obey where it still runs, then SIGKILL for what is left; also when this is cancelled in turn."""
    try:
        if process.returncode is None and _signal(process.pid, signal.SIGTERM):
            await _ended(process, GRACE)
            await asyncio.sleep(0.05)  # its children heard it too
    finally:
        _signal(process.pid, signal.SIGKILL)
    await _ended(process, 5.0)
    # A pipe that an escaped grandchild still holds open would keep the transport, and its descriptor, for ever.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> None:
    for _ in range(int(seconds / 0.01)):
        if process.returncode is not None:
            return
        await asyncio.sleep(0.01)


def _signal(group: int, number: int) -> bool:
    """True when there was still somebody to hear it (or a dead one nobody buried)."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
