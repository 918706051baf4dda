"""What a browser is sent while a reply comes in: counted on the wire, in bytes a word."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.cli.conftest import Home
from tests.doubles.ports import free_port
from tests.doubles.replies import says
from tests.e2e.conftest import READY
from tests.e2e.page import Page
from tests.e2e.serving import model_options, serving

WORDS = [f"{word}{n}" for n in range(25) for word in ("harbour", "gauge", "logger", "pier", "tide", "ship")]
"""A reply that scrolls a page."""

MAX_SENT_BYTES, MAX_DRAWN_BYTES = 50, 400
"""For a word, as it travels and unpacked. Whole widgets drawn with each of its frames make 80 and 1,400."""


@pytest.mark.pty
async def test_a_reply_draws_what_changed_and_it_travels_packed(harbour: Home) -> None:
    with serving([says(" ".join([*WORDS, "finis"]), delay=0.02, chunk=7)]) as double:
        command = [sys.executable, "-m", "ctxchat", "serve", "--port", str(free_port()), *model_options(double)]
        pipe = asyncio.subprocess.PIPE
        server = await asyncio.create_subprocess_exec(*command, stdout=pipe, env=harbour.environ, cwd=harbour.work)
        try:
            assert server.stdout
            address = (await asyncio.wait_for(server.stdout.readline(), 60)).decode().strip()
            page = await Page.open(address)
            await page.until(READY)
            await page.type("hello\\r")
            await page.until(WORDS[0])
            page.sent = page.drawn = 0
            await page.until("finis")
            assert page.sent < MAX_SENT_BYTES * len(WORDS)
            assert page.drawn < MAX_DRAWN_BYTES * len(WORDS)
        finally:
            if server.returncode is None:
                server.terminate()
            await server.wait()
