"""The direct transport: a reply from a server of OpenAI's forms or Anthropic's over HTTP, bytes in, pieces out, in this process.

Never imports litellm and never retries. What is odd about the lines of a stream `streams` puts right for both transports, and
`failures` says what went wrong.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from ctxchat import __version__
from ctxchat.certificates import client_options
from ctxchat.core.errors import UsageError
from ctxchat.core.events import Usage
from ctxchat.core.messages import Received
from ctxchat.core.network import proxy_for
from ctxchat.core.ports import ModelPiece, ReplyNotes
from ctxchat.core.usage import dollars, tokens
from ctxchat.models import anthropic, failures, openai_servers, responses
from ctxchat.models.anthropic import AnthropicServer
from ctxchat.models.loose_calls import offered_in
from ctxchat.models.openai_servers import Server
from ctxchat.models.reply import ReplyBuilder, joined, usage_from
from ctxchat.models.responses import ResponsesServer
from ctxchat.models.settings import ModelSettings
from ctxchat.models.streams import mended, read_line, told_error

if TYPE_CHECKING:
    import httpx

MAX_LINE_BYTES = 64 << 20
"""Bytes of a line, or of a whole answer, that are read at most."""

MAX_REFUSAL_BYTES = 1 << 20
"""Bytes of a refusal that are read."""

KEEPALIVE_S = 60.0
"""Seconds a connection is kept for the next request."""

STREAM_CLOSE_TIMEOUT_S = 0.1
"""Seconds a stream has to close by itself behind its end mark, so that its connection can be kept."""

_ENDS = ((b"data:", b"[DONE]"), (b"event:", b"message_stop"))
"""How the line reads that ends a stream, and its field."""

_NOTHING_THERE = re.compile(r"\A40[45]\b|unexpected endpoint", re.I)
"""How a server says that there is nothing at an address: by its status, or (LM Studio's) in words."""

_XAI_TICKS_A_USD = 1e10
"""xAI tells costs in these parts of a dollar (docs.x.ai/developers/cost-tracking)."""


class ServerRefused(Exception):
    """A server answered something else than a reply: `body` is what it said, as JSON where it is that. `status_code` 0: inside
    a stream."""

    def __init__(self, words: str, status: int, body: object, response: httpx.Response | None = None) -> None:
        super().__init__(words)
        self.status_code = status
        self.body = body
        self.response = response


AnyServer = Server | AnthropicServer | ResponsesServer
"""One that is asked without litellm, in its own form."""

Chunk = dict[str, Any]
"""A piece of a stream."""


class ReplyParser(Protocol):
    """What a form makes of the stream of one reply."""

    @property
    def received(self) -> Received | None:
        """The reply as it came, when it is over; None where its chunks say all."""
        ...

    @property
    def notes(self) -> ReplyNotes:
        """What was told beside the reply."""
        ...

    def piece(self, event: Chunk) -> Chunk:
        """One of OpenAI's pieces of one of the form's; empty for what says nothing to us."""
        ...


def server_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> AnyServer | None:
    """The server to speak to without litellm, with its address; None where something is set, or the model is one, that litellm
    has rules for."""
    forms = (anthropic, responses, openai_servers)
    return next((server for form in forms if (server := form.server_of(settings, environment))), None)


class Connections:
    """HTTP connections to servers, kept between requests. One for all models of a start."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, bool], httpx.AsyncClient] = {}

    async def client(self, url: str) -> httpx.AsyncClient:
        """The one for an address. Made off the loop: the library's import and reading certificates take a while. Raises
        UsageError where a proxy or certificates are named that are none."""
        kind = proxy_for(url, os.environ), url.lower().startswith("https:")
        if kind not in self._clients:
            made = await asyncio.to_thread(_client, url)
            self._clients.setdefault(kind, made)
        return self._clients[kind]

    async def close(self) -> None:
        """Close all of them."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()


class DirectTransport:
    """The transport to one model, `settings.model` at `server`."""

    def __init__(self, settings: ModelSettings, server: AnyServer, connections: Connections) -> None:
        self._settings = settings
        self._server = server
        self._connections = connections
        self._thinks_first = False
        """The last reply began with thoughts that only their end marked."""

    async def start(self) -> None:
        """Make ready for a first call; nothing is sent."""
        with suppress(UsageError):  # a call says what is wrong
            await self._connections.client(self._server.base)

    async def stream(self, arguments: dict[str, Any], timeout: float) -> AsyncGenerator[ModelPiece, None]:
        """One reply: pieces, then one ReplyEnd. Raises ModelError. Closing it closes the connection."""
        reply = ReplyBuilder(self._settings.name, offered_in(arguments), thinks_first=self._thinks_first)
        trouble: Exception | None = None
        told: dict[str, Any] = {}
        ended = False
        reading = self._server.reading(self._settings.name)
        try:
            async with aclosing(self._readings(arguments, timeout, reading)) as readings:
                async for chunks in readings:
                    for piece in joined(piece for chunk in chunks for piece in reply.feed(chunk)):
                        yield piece
                    for chunk in chunks:
                        ended, told = reply.finished or bool(chunk.get("usage")), chunk.get("usage") or told
        except Exception as error:
            trouble = error
        for piece in reply.flush():
            yield piece
        if trouble:
            raise failures.failure(trouble, began=not reply.empty) from trouble
        if failed := failures.of_end(reply, ended=ended):
            raise failed
        self._thinks_first = reply.thinks_first
        usage, priced = _usage(told)
        yield reply.end(usage, reading.received, reading.notes, priced=priced)

    async def _readings(
        self, arguments: dict[str, Any], timeout: float, reading: ReplyParser
    ) -> AsyncGenerator[list[Chunk], None]:
        """The pieces of the stream, those of one reading from the network together. A server of OpenAI's form whose address is a
        bare host is asked at `/v1` where it has nothing at its root, from then on."""
        versioned = self._server.versioned if isinstance(self._server, Server) else None
        try:
            async with aclosing(self._stream_request(self._server, arguments, timeout, reading)) as readings:
                async for chunks in readings:
                    yield chunks
            return
        except ServerRefused as refused:
            if versioned is None or not _NOTHING_THERE.search(f"{refused.status_code} {refused.body}"):
                raise
        async with aclosing(self._stream_request(versioned, arguments, timeout, reading)) as readings:
            async for chunks in readings:
                self._server = versioned
                yield chunks

    async def _stream_request(
        self, server: AnyServer, arguments: dict[str, Any], timeout: float, reading: ReplyParser
    ) -> AsyncGenerator[list[Chunk], None]:
        asked = await asyncio.to_thread(server.request, self._settings.model, arguments)
        client = await self._connections.client(asked.url)

        import httpx

        patience = httpx.Timeout(timeout, connect=min(15.0, timeout), pool=None)
        try:
            async with client.stream(
                "POST", asked.url, content=asked.body, headers=asked.headers, timeout=patience
            ) as response:
                if response.status_code != 200:
                    raise await _refusal(response)
                async with aclosing(_chunks(response, reading)) as readings:
                    async for chunks in readings:
                        yield chunks
        except httpx.TimeoutException as late:
            raise TimeoutError(f"Nothing came for {timeout:g} seconds.") from late


def _client(url: str) -> httpx.AsyncClient:
    """For an address of one kind: by a proxy or by none, looked at its certificates or not."""
    sys.modules.setdefault("httpx._main", cast("ModuleType", None))  # its command line: a third of its import
    import httpx

    return httpx.AsyncClient(
        **client_options(httpx, url, proxy_for(url, os.environ)),
        headers={"user-agent": f"ctxchat/{__version__}"},
        limits=httpx.Limits(keepalive_expiry=KEEPALIVE_S),
    )


async def _refusal(response: httpx.Response) -> ServerRefused:
    """What a server said instead of a reply."""
    if response.is_redirect:
        there = response.headers.get("location", "")
        return ServerRefused(
            f"The server sends us to {there}; set that as api_base if it is right.", 404, None, response
        )
    said = b""
    async for data in response.aiter_bytes():
        said += data
        if len(said) > MAX_REFUSAL_BYTES:
            break
    text = said.decode("utf-8", "replace")
    words = f"The server answered {response.status_code} {response.reason_phrase}."
    try:
        return ServerRefused(words, response.status_code, msgspec.json.decode(said), response)
    except (msgspec.DecodeError, RecursionError):
        return ServerRefused(words, response.status_code, text.strip(), response)


async def _chunks(response: httpx.Response, reading: ReplyParser) -> AsyncGenerator[list[Chunk], None]:
    """The pieces of a stream, those of one reading together. Raises ServerRefused for an error among them, ValueError for what
    cannot be read, when what came before it has been taken."""
    held = bytearray()
    whole = "json" in response.headers.get("content-type", "") and "content-length" in response.headers
    readings = response.aiter_bytes()
    async for data in readings:
        held += data
        if len(held) > MAX_LINE_BYTES:
            raise ValueError("The server sent a piece that cannot be read.")
        if whole or b"\n" not in data:
            continue
        *lines, held = held.split(b"\n")
        end = next((place for place, line in enumerate(lines) if _ends(line)), len(lines))
        chunks, trouble = _read_chunks(lines[:end], reading)
        yield chunks
        if trouble:
            raise trouble
        if end < len(lines):
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_CLOSE_TIMEOUT_S):
                    async for _ in readings:
                        pass
            return
    chunks, trouble = _read_chunks([held], reading)
    yield chunks
    if trouble:
        raise trouble


def _read_chunks(
    lines: Iterable[bytearray], reading: ReplyParser
) -> tuple[list[Chunk], ServerRefused | ValueError | None]:
    """What the lines hold up to the first one that is an error, and that."""
    chunks: list[Chunk] = []
    try:
        for line in lines:
            if chunk := _chunk(line, reading):
                chunks.append(chunk)
    except (ServerRefused, ValueError) as trouble:
        return chunks, trouble
    return chunks, None


def _ends(line: bytearray) -> bool:
    return any(line.strip().removeprefix(field).strip() == end for field, end in _ENDS)


def _chunk(line: bytearray, reading: ReplyParser) -> Chunk | None:
    read = read_line(line.decode("utf-8", "replace"))
    if read is None:
        return None
    read = mended(read)
    if error := told_error(read):
        raise ServerRefused(*error)
    piece = reading.piece(read)
    if error := told_error(piece):
        raise ServerRefused(*error)
    return piece


def _usage(told: Mapping[str, Any]) -> tuple[Usage | None, bool]:
    """What the server counted, and whether it said what that costs."""
    ticks = tokens(told.get("cost_in_usd_ticks"))
    said = ticks / _XAI_TICKS_A_USD if ticks else dollars(told.get("cost"))
    return usage_from(told, counted=True, cost_usd=said or 0.0), said is not None
