"""Child processes that never outlive their caller: they end with it, or at its time-out, together with all their children. Also
builds their environment. Knows no tool."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from ctxchat.core.secrets import secrets_in
from ctxchat.own_processes import script_command

END_GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL for a group of processes."""

MARK = "CTXCHAT_CALL"
"""Environment variable whose value marks all processes that descend from one call."""

_SECRET = re.compile(
    r"""(?xi)
      secret | passw(?:or)?d | passphrase | credential | sshpass | conn(?:ection)?_?str(?:ing)?(?:_|$)
    | (?:api|ai|auth|access|private|master|signing|encryption) _?key      # OPENAIKEY, but neither MONKEY nor KEYBOARD
    | token(?:_|\d|$)                                                     # but not TOKENIZERS
    | (?:^|_) (?: key | auth | pass | pw | pat | creds? | dsn | cookies? | webhook ) (?:_|\d|$)  # SSH_AUTH_SOCK, not XAUTHORITY
    | _pwd(?:_|\d|$)                                                      # but neither PWD nor OLDPWD
    | (?:^|_) jwt
    """
)
"""Names of variables that hold keys. SSH_AUTH_SOCK is among them: a process that reaches ssh-agent's socket can sign with all its
keys."""

_ADDRESS_WITH_PASSWORD = re.compile(r"://[^\s/@:]*:[^\s/@]+@")
"""An address with a password in it: its variable is left out, whatever its name."""


def environment(given: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """An environment for commands: without keys, and with settings by which no program waits for a person or draws for a
    terminal.

    `keep` names variables that are passed on unchanged, although they look like keys or are a person's terminal settings.
    """
    plain = {name: value for name, value in given.items() if name in keep or not _left_out(name, value)}
    return plain | {name: value for name, value in _UNATTENDED.items() if name not in keep or name not in given}


_UNATTENDED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "CARGO_TERM_COLOR": "never",
    # An editor that leaves the file as it is: a commit without a message says so, an amended one keeps its own.
    **dict.fromkeys(
        [
            "EDITOR",
            "VISUAL",
            "GIT_EDITOR",
            "GIT_SEQUENCE_EDITOR",
            "SUDO_EDITOR",
            "HGEDITOR",
            "SVN_EDITOR",
            "JJ_EDITOR",
            "KUBE_EDITOR",
            "FCEDIT",
        ],
        "true",
    ),
    **dict.fromkeys(
        ["PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER", "SYSTEMD_PAGER", "PSQL_PAGER", "BAT_PAGER", "DELTA_PAGER"], "cat"
    ),
    "AWS_PAGER": "",
    "LESS": "-FRX",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}

_TERMINAL_SETTINGS = re.compile(
    r"(\w+_)?FORCE_(COLOR|HYPERLINK)|CLICOLOR_FORCE|\w+_FORCE_COLOU?RS?|PY_COLORS|COLORTERM|GREP_(OPTIONS|COLORS?)"
    r"|CDPATH|GLOBIGNORE|SHELLOPTS|BASHOPTS|COLUMNS|LINES|GPG_TTY|SSH_ASKPASS|GIT_ASKPASS|SUDO_ASKPASS"
)
"""Names of variables that a person set for their own terminal: colours, where `cd` goes, its width, programs that ask for
passwords."""


def _left_out(name: str, value: str) -> bool:
    return bool(_TERMINAL_SETTINGS.fullmatch(name)) or _holds_a_key(name, value)


def _holds_a_key(name: str, value: str) -> bool:
    return bool(_SECRET.search(name) or _ADDRESS_WITH_PASSWORD.search(value) or _is_secret(value))


@lru_cache(1000)
def _is_secret(value: str) -> bool:
    """Whether a value looks like a secret, whatever its variable is called. The first call loads the detector."""
    return len(value) >= _MIN_SECRET_CHARS and bool(secrets_in(value))


_MIN_SECRET_CHARS = 16


@asynccontextmanager
async def child(
    argv: Sequence[str], *, foreign: bool = False, **options: Any
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A process in a group of its own. However the block is left, no process of the group is alive afterwards. `foreign` is for a
    program outside the sandbox: where the system can find them (on Linux), its descendants that left the group are killed as
    well.

    Its input is empty unless `stdin` says otherwise: it would take what a person types at the terminal. `options` are those of
    `asyncio.create_subprocess_exec`.
    """
    options = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE} | options
    mark = secrets.token_hex(16)
    options["env"] = {**(options.get("env") or os.environ), MARK: mark}
    if foreign and sys.platform == "linux":
        argv = script_command("tools/reaper.py", *argv)
    begun = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, start_new_session=True, **options))
    try:
        # The process may run, and have children, before the call returns: a cancel in between would kill the process only.
        yield await asyncio.shield(begun)
    finally:
        if not begun.done() or not (begun.cancelled() or begun.exception()):
            try:
                await _terminate(await begun)
            finally:
                if foreign:
                    await asyncio.shield(asyncio.to_thread(_end_escaped, f"{MARK}={mark}".encode()))


async def lines(stream: asyncio.StreamReader, deadline: float | None = None) -> AsyncGenerator[bytes, None]:
    """The lines of a stream, of any length (StreamReader's own methods refuse long ones), without their ends; bytes after the
    last line end are dropped. Raises TimeoutError after `deadline`, in seconds of the loop's clock."""
    unfinished = bytearray()
    while True:
        # The deadline is around this wait only: around the yield it would cancel the caller's code.
        async with asyncio.timeout_at(deadline):
            piece = await stream.read(1 << 16)
        if not piece:
            return
        *ended, last = piece.split(b"\n")
        for line in ended:
            yield bytes(unfinished + line)
            unfinished.clear()
        unfinished += last


async def _terminate(process: asyncio.subprocess.Process) -> None:
    """Send SIGTERM to the group of a process that still runs, wait up to `END_GRACE_S`, then send SIGKILL to the rest of the
    group; the latter also when this is cancelled."""
    try:
        if process.returncode is None and _signal(process.pid, signal.SIGTERM):
            await _wait_for_end(process, END_GRACE_S)
            await asyncio.sleep(0.05)  # its children heard it too
    finally:
        _signal(process.pid, signal.SIGKILL)
        try:
            await _wait_for_end(process, 5.0)
        finally:
            # A pipe that an escaped grandchild still holds open would keep the transport, and its descriptor, for ever.
            transport = getattr(process, "_transport", None)
            if transport is not None:
                transport.close()


def _end_escaped(mark: bytes) -> None:
    """Kill the processes that have `mark` in their environment: daemons, which have left the parent, group and session."""
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in place.read_bytes().split(b"\0"):
                os.kill(int(place.parent.name), signal.SIGKILL)
        except OSError:  # it has ended, or belongs to another user
            continue


async def _wait_for_end(process: asyncio.subprocess.Process, seconds: float) -> None:
    for _ in range(int(seconds / 0.01)):
        if process.returncode is not None:
            return
        await asyncio.sleep(0.01)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group; whether it still had a process (an exited one that nobody waited for counts)."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def listening_apart(pid: int) -> set[int]:
    """The TCP ports on which a process and its descendants listen in a network namespace that is not ours. Empty where the system
    does not tell (Linux does)."""
    ports: set[int] = set()
    with suppress(OSError):
        ours, apart = _network_of("self"), dict[str, str]()
        for process in _with_descendants(str(pid)):
            with suppress(OSError):  # it has ended meanwhile
                if (theirs := _network_of(process)) != ours:
                    apart.setdefault(theirs, process)
        for process in apart.values():
            for table in ("tcp", "tcp6"):
                with suppress(OSError):
                    ports |= {int(row.split()[1].rpartition(":")[2], 16) for row in _listening(process, table)}
    return ports


def _network_of(process: str) -> str:
    return os.readlink(f"/proc/{process}/ns/net")  # noqa: PTH115  (no path, but a name with a number)


def _listening(process: str, table: str) -> list[str]:
    rows = Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]
    return [row for row in rows if row.split()[3] == "0A"]


def _with_descendants(pid: str) -> Iterator[str]:
    yield pid
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _with_descendants(child)
