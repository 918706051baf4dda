"""A web server on loopback that answers as it is told, word for word: what it was asked is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl

import msgspec

Headers = Mapping[str, str]


class Asked(msgspec.Struct, frozen=True):
    """One request: the form or JSON of its body as `said`."""

    method: str
    path: str
    headers: dict[str, str]
    said: dict[str, object]


class Answer(msgspec.Struct, frozen=True):
    """`body` is JSON, bytes, or pieces that go out until the other end has enough."""

    status: int = 200
    body: object = b""
    headers: Mapping[str, str] = {}


class HostileHttp:
    """`answer` says what comes back; `sent` counts the bytes that were taken of bodies in pieces."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], Answer] = lambda _: Answer(404)
        self.url = ""
        self.sent = 0

    def paths(self, method: str = "") -> list[str]:
        return [asked.path for asked in self.asked if method in {"", asked.method}]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            pairs = (line.split(": ", 1) for line in head[1:] if ": " in line)
            headers = {name.lower(): value for name, value in pairs}
            body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
            said = json.loads(body) if body.startswith("{") else dict(parse_qsl(body))
            asked = Asked(method, path, headers, said)
            self.asked.append(asked)
            await self._send(writer, self.answer(asked))
        writer.close()

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else None
        if isinstance(answer.body, (dict, list)):
            body = json.dumps(answer.body).encode()
        kind = {"content-type": "application/json", "connection": "close", **answer.headers}
        if body is not None:
            kind["content-length"] = str(len(body))
        lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in kind.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1"))
        pieces: Iterable[bytes] = [body] if body is not None else answer.body  # type: ignore[assignment]
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)


@asynccontextmanager
async def hostile_http(host: str = "127.0.0.1") -> AsyncIterator[HostileHttp]:
    """One, at `url`, for as long as the block lasts."""
    double = HostileHttp()
    server = await asyncio.start_server(double.serve, host, 0)
    double.url = f"http://{host}:{server.sockets[0].getsockname()[1]}"
    try:
        yield double
    finally:
        server.close()
