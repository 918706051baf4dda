"""`ssh -t … ctxchat serve`, with an SSH server of the test's own: however it ends, nothing is left running."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Home
from tests.doubles.ports import free_port, until_listening
from tests.e2e.conftest import READY
from tests.e2e.page import Page
from tests.e2e.terminal import Terminal
from tests.e2e.test_signals import state

SERVER = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
ROOT_NEEDS = Path("/run/sshd")
"""A folder without which the server does not start as root; an ordinary user needs none."""


def _missing() -> str:
    """Why there is no SSH here."""
    if not (SERVER and shutil.which("ssh") and shutil.which("ssh-keygen")):
        return "needs OpenSSH's server and client"
    if Path(pwd.getpwuid(os.getuid()).pw_shell).name in {"nologin", "false"}:
        return "whoever runs this may not log in"
    if os.getuid() == 0 and not ROOT_NEEDS.exists() and not shutil.which("bwrap"):
        return f"needs {ROOT_NEEDS}, or bubblewrap to pretend"
    return ""


pytestmark = [pytest.mark.pty, pytest.mark.skipif(bool(_missing()), reason=_missing())]


@pytest.fixture
def to_here(harbour: Home) -> Iterator[list[str]]:
    """The command line of an SSH client that comes here, with keys that are thrown away."""
    host, key, port = harbour.root / "host", harbour.root / "key", free_port()
    for each in (host, key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", each], check=True)
    settings = harbour.root / "sshd_config"
    settings.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nAuthorizedKeysFile {key}.pub\nPidFile none\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    command = [str(SERVER), "-D", "-e", "-f", str(settings)]
    if os.getuid() == 0 and not ROOT_NEEDS.exists():
        own = str(harbour.root)
        binds = ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--tmpfs", "/run", "--dir", str(ROOT_NEEDS)]
        command = ["bwrap", "--die-with-parent", *binds, "--bind", own, own, *command]
    with subprocess.Popen(command, stderr=(harbour.root / "sshd_log").open("w")) as server:
        try:
            asyncio.run(until_listening(port))
            options = [
                "IdentitiesOnly=yes",
                "StrictHostKeyChecking=no",
                "UserKnownHostsFile=/dev/null",
                "LogLevel=ERROR",
            ]
            client = ["ssh", "-F", "none", "-t", "-p", str(port), "-i", str(key)]
            yield [*client, *(word for option in options for word in ("-o", option)), f"{getpass.getuser()}@127.0.0.1"]
        finally:
            server.terminate()


def running(home: Home) -> list[int]:
    """The processes that were started for this person, through however many others."""
    mark = f"CTXCHAT_DATA_DIR={home.data}\0".encode()
    return [
        pid
        for pid in map(int, filter(str.isdigit, (each.name for each in Path("/proc").iterdir())))
        if mark in _environ(pid)
    ]


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() if state(pid) != "Z" else b""
    except OSError:
        return b""


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda client: client.press("ctrl+c"), id="ctrl+c"),
        pytest.param(lambda client: client.hang_up(), id="the terminal is closed"),
        pytest.param(lambda client: client.kill(signal.SIGKILL), id="the line breaks"),
    ],
)
async def test_nothing_is_left_where_it_served(
    harbour: Home, to_here: list[str], end: Callable[[Terminal], object]
) -> None:
    about = [f"{name}={value}" for name, value in harbour.environ.items()]
    remote = ["env", *about, sys.executable, "-m", "ctxchat", "serve", "--port", str(free_port()), "--json"]
    with Terminal(
        [*to_here, f"cd {shlex.quote(str(harbour.work))} && exec {shlex.join(remote)}"], os.environ
    ) as client:
        await asyncio.to_thread(client.until, lambda: "}" in client.raw)
        page = await Page.open(json.loads(client.raw[client.raw.index("{") : client.raw.index("}") + 1])["url"])
        await page.until(READY)
        assert len(running(harbour)) >= 2, "the server, and the chat of the tab"
        end(client)
        async with asyncio.timeout(60):
            while running(harbour):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
