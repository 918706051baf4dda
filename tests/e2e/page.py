"""A page of `ctxchat serve`, without a browser: what its terminal shows, and how much of it travelled."""

from __future__ import annotations

import asyncio
import re
import zlib

import pyte
from aiohttp import ClientSession, CookieJar
from yarl import URL


class Page:
    """The socket of a page, read byte by byte: `sent` counts what travelled, `drawn` what that was unpacked."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unpack = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._screen = pyte.Screen(120, 35)
        self._terminal = pyte.ByteStream(self._screen)
        self.sent = self.drawn = 0

    @classmethod
    async def open(cls, address: str) -> Page:
        """The page at the address that was printed."""
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser, browser.get(address) as page:
            url = URL(re.findall(r"""websocket-url="([^"]+)""", await page.text())[0])
            cookies = "; ".join(f"{each.key}={each.value}" for each in browser.cookie_jar)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        asked = (
            f"GET {url.raw_path}?width=120&height=35 HTTP/1.1",
            f"Host: {url.host}:{url.port}",
            f"Origin: http://{url.host}:{url.port}",
            f"Cookie: {cookies}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Extensions: permessage-deflate",
        )
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
