"""The direct transport: streams a reply over HTTP, in this process, from a server that speaks OpenAI's forms or Anthropic's.

Never imports litellm and never retries. `streams` corrects the lines of a stream for both transports, and `failures` classifies
errors.
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
"""Bytes that are read at most of a line, or of a whole answer."""

MAX_REFUSAL_BYTES = 1 << 20
"""Bytes that are read at most of an error response."""

KEEPALIVE_S = 60.0
"""Seconds a connection is kept for the next request."""

STREAM_CLOSE_TIMEOUT_S = 0.1
"""Seconds a stream has to close by itself after its end mark, so that its connection can be kept."""

_ENDS = ((b"data:", b"[DONE]"), (b"event:", b"message_stop"))
"""The lines that end a stream, each as field and value."""

_NOTHING_THERE = re.compile(r"\A40[45]\b|unexpected endpoint", re.I)
"""Matches a refusal that means there is nothing at this address: by its status, or (LM Studio) by its message."""

_XAI_TICKS_A_USD = 1e10
"""Ticks in a US dollar, the unit of xAI's costs (docs.x.ai/developers/cost-tracking)."""


class ServerRefused(Exception):
    """A server answered with an error instead of a reply. `body` is the parsed JSON, or the text where it is not JSON;
    `status_code` is 0 for an error inside a stream."""

    def __init__(self, words: str, status: int, body: object, response: httpx.Response | None = None) -> None:
        super().__init__(words)
        self.status_code = status
        self.body = body
        self.response = response


AnyServer = Server | AnthropicServer | ResponsesServer
"""A server that is called without litellm, in its own form."""

Chunk = dict[str, Any]
"""One parsed JSON object of a stream."""


class ReplyParser(Protocol):
    """Converts the stream of one reply from a server's form to OpenAI's chunks."""

    @property
    def received(self) -> Received | None:
        """The finished reply in the server's own form, to be sent back; None where OpenAI's chunks contain all of it."""
        ...

    @property
    def notes(self) -> ReplyNotes:
        """What the server reported besides the reply."""
        ...

    def piece(self, event: Chunk) -> Chunk:
        """The event as a chunk in OpenAI's form; empty for an event without meaning here."""
        ...


def server_of(settings: ModelSettings, environment: Mapping[str, str] = os.environ) -> AnyServer | None:
    """The server to call without litellm, with its address; None where the model or one of its settings needs litellm's special
    handling."""
    forms = (anthropic, responses, openai_servers)
    return next((server for form in forms if (server := form.server_of(settings, environment))), None)


class Connections:
    """HTTP connections to servers, kept between requests. All models of one program share an instance."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, bool], httpx.AsyncClient] = {}

    async def client(self, url: str) -> httpx.AsyncClient:
        """The HTTP client for a URL. Created in a thread, since importing the library and reading certificates is slow. Raises
        UsageError where the environment names an invalid proxy or certificates that cannot be read."""
        kind = proxy_for(url, os.environ), url.lower().startswith("https:")
        if kind not in self._clients:
            client = await asyncio.to_thread(_client, url)
            self._clients.setdefault(kind, client)
        return self._clients[kind]

    async def close(self) -> None:
        """Close all connections."""
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
        """The last reply began with thinking that had only a closing tag."""

    async def start(self) -> None:
        """Create the HTTP client ahead of the first call; nothing is sent."""
        with suppress(UsageError):  # the first call reports it
            await self._connections.client(self._server.base)

    async def stream(self, arguments: dict[str, Any], timeout: float) -> AsyncGenerator[ModelPiece, None]:
        """One reply: pieces, then one ReplyEnd. `timeout` in seconds without a byte. Raises ModelError. Closing the generator
        closes the connection."""
        reply = ReplyBuilder(self._settings.name, offered_in(arguments), thinks_first=self._thinks_first)
        failed: Exception | None = None
        raw_usage: dict[str, Any] = {}
        ended = False
        reading = self._server.reading(self._settings.name)
        try:
            async with aclosing(self._readings(arguments, timeout, reading)) as readings:
                async for chunks in readings:
                    for piece in joined(piece for chunk in chunks for piece in reply.feed(chunk)):
                        yield piece
                    for chunk in chunks:
                        ended, raw_usage = reply.finished or bool(chunk.get("usage")), chunk.get("usage") or raw_usage
        except Exception as error:
            failed = error
        for piece in reply.flush():
            yield piece
        if failed:
            raise failures.failure(failed, began=not reply.empty) from failed
        if bad_end := failures.of_end(reply, ended=ended):
            raise bad_end
        self._thinks_first = reply.thinks_first
        usage, priced = _usage(raw_usage)
        yield reply.end(usage, reading.received, reading.notes, priced=priced)

    async def _readings(
        self, arguments: dict[str, Any], timeout: float, reading: ReplyParser
    ) -> AsyncGenerator[list[Chunk], None]:
        """The chunks of the stream, those of one read from the network together. A server of OpenAI's form whose address is a
        bare host, with nothing at its root, is called at `/v1` from then on."""
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
        """Send one request and yield the chunks of its reply as they arrive. Raises the server's refusal, or TimeoutError after
        `timeout` seconds without a byte."""
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
    """A client for all URLs that use the same proxy, or none, and the same scheme as this one."""
    sys.modules.setdefault(
        "httpx._main", cast("ModuleType", None)
    )  # its command line, which takes a third of its import time
    import httpx

    return httpx.AsyncClient(
        **client_options(httpx, url, proxy_for(url, os.environ)),
        headers={"user-agent": f"ctxchat/{__version__}"},
        limits=httpx.Limits(keepalive_expiry=KEEPALIVE_S),
    )


async def _refusal(response: httpx.Response) -> ServerRefused:
    """The error for a response whose status is not 200."""
    if response.is_redirect:
        there = response.headers.get("location", "")
        return ServerRefused(
            f"The server sends us to {there}; set that as api_base if it is right.", 404, None, response
        )
    body = b""
    async for data in response.aiter_bytes():
        body += data
        if len(body) > MAX_REFUSAL_BYTES:
            break
    text = body.decode("utf-8", "replace")
    message = f"The server answered {response.status_code} {response.reason_phrase}."
    try:
        return ServerRefused(message, response.status_code, msgspec.json.decode(body), response)
    except (msgspec.DecodeError, RecursionError):
        return ServerRefused(message, response.status_code, text.strip(), response)


async def _chunks(response: httpx.Response, reading: ReplyParser) -> AsyncGenerator[list[Chunk], None]:
    """The chunks of a stream, those of one read from the network together. Raises ServerRefused for an error among the lines and
    ValueError for a line that cannot be parsed, in both cases after the chunks before it were taken."""
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
    """The chunks up to the first line that is an error or cannot be parsed, and that error, if any."""
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
    """A line of a stream as a chunk; None for a line without one. Raises ServerRefused for an error in the stream."""
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


def _usage(raw: Mapping[str, Any]) -> tuple[Usage | None, bool]:
    """The usage the server reported, and whether it reported the cost too."""
    ticks = tokens(raw.get("cost_in_usd_ticks"))
    reported = ticks / _XAI_TICKS_A_USD if ticks else dollars(raw.get("cost"))
    return usage_from(raw, counted=True, cost_usd=reported or 0.0), reported is not None
