"""What a browser is sent while a reply comes in: counted on the wire, in bytes a word."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import zlib

import pyte
import pytest
from aiohttp import ClientSession, CookieJar
from yarl import URL

from tests.cli.conftest import Home
from tests.doubles.replies import says
from tests.e2e.conftest import READY
from tests.e2e.serving import model_options, serving

WORDS = [f"{word}{n}" for n in range(25) for word in ("harbour", "gauge", "logger", "pier", "tide", "ship")]
"""A reply that scrolls a page."""

MAX_SENT_BYTES, MAX_DRAWN_BYTES = 50, 400
"""For a word, as it travels and unpacked. Whole widgets drawn with each of its frames make 80 and 1,400."""


class Line:
    """The socket of a page, read byte by byte: `sent` counts what travelled, `drawn` what that was unpacked."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unpack = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._screen = pyte.Screen(120, 35)
        self._terminal = pyte.ByteStream(self._screen)
        self.sent = self.drawn = 0

    @classmethod
    async def open(cls, address: str, origin: str, cookies: str) -> Line:
        url = URL(address)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        asked = (
            f"GET {url.raw_path}?width=120&height=35 HTTP/1.1", f"Host: {url.host}:{url.port}", f"Origin: {origin}",
            f"Cookie: {cookies}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Extensions: permessage-deflate",
        )  # fmt: skip
        writer.write("\r\n".join((*asked, "", "")).encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert answer.startswith("HTTP/1.1 101") and "permessage-deflate" in answer
        return cls(reader, writer)

    async def until(self, text: str) -> None:
        """Draw what comes until this stands on the screen."""
        async with asyncio.timeout(60):
            while text not in "\n".join(self._screen.display):
                first, size = await self._reader.readexactly(2)
                if size >= 126:
                    more = await self._reader.readexactly(2 if size == 126 else 8)
                    size, head = int.from_bytes(more, "big"), 2 + len(more)
                else:
                    head = 2
                payload = await self._reader.readexactly(size)
                self.sent += head + size
                if first & 0x40:  # packed
                    payload = self._unpack.decompress(payload + b"\0\0\xff\xff")
                if first & 0xF == 2:
                    self.drawn += len(payload)
                    self._terminal.feed(payload)

    async def type(self, text: str) -> None:
        payload = f'["stdin", "{text}"]'.encode()
        self._writer.write(bytes((0x81, 0x80 | len(payload), 0, 0, 0, 0)) + payload)
        await self._writer.drain()


@pytest.mark.pty
async def test_a_reply_draws_what_changed_and_it_travels_packed(harbour: Home) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving([says(" ".join([*WORDS, "finis"]), delay=0.03, chunk=7)]) as double:
        command = [sys.executable, "-m", "ctxchat", "serve", "--port", str(port), *model_options(double)]
        pipe = asyncio.subprocess.PIPE
        server = await asyncio.create_subprocess_exec(*command, stdout=pipe, env=harbour.environ, cwd=harbour.work)
        try:
            assert server.stdout
            address = (await asyncio.wait_for(server.stdout.readline(), 60)).decode().strip()
            async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser, browser.get(address) as page:
                (line_url,) = re.findall(r"""websocket-url="([^"]+)""", await page.text())
                cookies = "; ".join(f"{each.key}={each.value}" for each in browser.cookie_jar)
            line = await Line.open(line_url, f"http://127.0.0.1:{port}", cookies)
            await line.until(READY)
            await line.type("hello\\r")
            await line.until(WORDS[0])
            line.sent = line.drawn = 0
            await line.until("finis")
            assert line.sent < MAX_SENT_BYTES * len(WORDS)
            assert line.drawn < MAX_DRAWN_BYTES * len(WORDS)
        finally:
            if server.returncode is None:
                server.terminate()
            await server.wait()
