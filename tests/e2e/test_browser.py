"""In a browser: the program as textual-serve runs it, behind pipes, with Textual's web driver and no terminal."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyte

from tests.cli.conftest import Home
from tests.e2e.conftest import READY

WEB = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "COLUMNS": "80", "ROWS": "24"}


class Served:
    """What textual-serve does for one browser: packets of a kind, a length and a payload, each way."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        assert process.stdout and process.stdin
        self._out, self._in = process.stdout, process.stdin
        while self._out.readline() != b"__GANGLION__\n":
            assert process.poll() is None, process.stderr.read() if process.stderr else ""

    def until(self, text: str) -> None:
        """Draw what comes until this stands on the screen; a program that ends without it fails."""
        while text not in "\n".join(self._screen.display):
            kind, size = self._out.read(1), int.from_bytes(self._out.read(4), "big")
            payload = self._out.read(size)
            assert kind, "the program ended"
            if kind == b"D":
                self._stream.feed(payload)

    def send(self, kind: bytes, payload: bytes) -> None:
        """`D` for keys, `M` for orders."""
        self._in.write(kind + len(payload).to_bytes(4, "big") + payload)
        self._in.flush()


@contextmanager
def served(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-m", "ctxchat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**home.environ, **WEB},
        cwd=home.work,
    ) as process:
        given_up = threading.Timer(60, process.kill)  # reading a pipe has no end of its own
        given_up.start()
        try:
            yield process
        finally:
            given_up.cancel()
            process.kill()


def test_a_question_is_asked_and_a_paste_presses_no_key(harbour: Home) -> None:
    with served(harbour) as process:
        page = Served(process)
        page.until(READY)
        page.until("/28.7k")
        page.send(b"D", b"\x1b[200~Where is \x1b[19~INTERVAL set?\x1b[201~")  # F8 inside would open a panel
        page.until("Where is [19~INTERVAL set?")
        page.send(b"D", b"\r")
        page.until("src/gauge.py:2")
        page.send(b"M", json.dumps({"type": "quit"}).encode())
        assert process.wait(20) == 0, process.stderr and process.stderr.read()


def test_a_chat_whose_server_was_killed_ends(harbour: Home) -> None:
    with served(harbour) as process:
        Served(process).until(READY)
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe
            pipe.close()
        assert process.wait(30) == 0
