"""The transport to the editor over standard input and output: one JSON-RPC object a line, and nothing else on standard output.

Invalid input is answered or skipped, so that only valid messages reach the protocol library. Knows no method but `initialize`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, BinaryIO, cast

import msgspec

JsonObject = dict[str, Any]

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, FAILED = -32700, -32600, -32601, -32602, -32603
"""The codes of JSON-RPC."""

NOT_FOUND_CODE = -32002
"""The protocol's own error code for something that does not exist, such as a session."""


class Wire:
    """Implements the library's transport. Reads and writes in threads, so that any kind of file works, and an editor that stops
    reading blocks nothing else."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source, self._sink = source, sink
        self.client_capabilities: object = None
        """The editor's raw capabilities: the library would drop those newer than itself."""
        self.loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._out: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        for work in (self._read_lines, self._write_lines):
            threading.Thread(target=work, daemon=True).start()

    async def receive(self) -> JsonObject | None:
        """The next valid message; None at the end of the input."""
        while line := await self._lines.get():
            if not line.strip():
                continue
            message, problem = parse_line(line)
            if message is not None:
                if message.get("method") == "initialize" and isinstance(told := message.get("params"), dict):
                    self.client_capabilities = cast("JsonObject", told).get("clientCapabilities")
                return message
            if problem is not None:
                await self.send(problem)
        return None

    async def send(self, message: JsonObject) -> None:
        """Send one message, after all sent before. Raises ConnectionError where the editor no longer reads."""
        written = self.loop.create_future()
        self._out.put((msgspec.json.encode(worded(message), enc_hook=str) + b"\n", written))
        await written

    async def close(self) -> None:
        """Stop sending."""
        self._out.put(None)

    def _read_lines(self) -> None:
        for line in _input_lines(self._source):
            self._tell(self._lines.put_nowait, line)
        self._tell(self._lines.put_nowait, b"")

    def _write_lines(self) -> None:
        while (item := self._out.get()) is not None:
            line, written = item
            try:
                self._sink.write(line)
                self._sink.flush()
            except OSError as problem:
                gone = ConnectionError(f"The editor does not listen any more: {problem.strerror or problem}.")
                self._tell(_fail, written, gone)
            else:
                self._tell(_mark_written, written)

    def _tell(self, what: Callable[..., None], *values: object) -> None:
        try:
            self.loop.call_soon_threadsafe(what, *values)
        except RuntimeError:  # the loop has ended
            return


def take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output for the editor. From now on prints go to standard error, and other readers of standard
    input find it empty."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return source, sink


def parse_line(line: bytes) -> tuple[JsonObject | None, JsonObject | None]:
    """A line as a message, or the error to answer to an invalid line; one of the two is None."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        return None, refusal(None, PARSE_ERROR, f"This line is no JSON: {problem}")
    if not isinstance(value, dict):
        return None, refusal(None, INVALID_REQUEST, "A message is a JSON object on a line of its own.")
    message = cast("JsonObject", value)
    id = message.get("id")
    if "id" in message and not isinstance(id, str | int | None):
        return None, refusal(None, INVALID_REQUEST, "The id of a message is a text or a whole number.")
    if "method" in message:
        if isinstance(message["method"], str):
            return message, None
        return None, refusal(id, INVALID_REQUEST, "The method of a message is a text.")
    if "id" not in message:
        return None, refusal(None, INVALID_REQUEST, "A message has a method, or the id of what it answers.")
    if "error" in message and not isinstance(message["error"], dict):
        message["error"] = {"code": FAILED, "message": str(message["error"])}
    return message, None


def refusal(id: object, code: int, text: str) -> JsonObject:
    """A JSON-RPC error as the answer to the request `id`."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}


def worded(message: JsonObject) -> JsonObject:
    """The message unchanged, but an error made by the library with its text as one sentence."""
    match message:
        case {"error": {"code": code, "data": {"errors": [{"loc": place, "msg": what}, *_]}}}:
            where = ".".join(map(str, place)) or "params"
            return refusal(message.get("id"), code, f"{where}: {what}.")
        case {"error": {"code": code, "data": {"method": method}}} if code == UNKNOWN_METHOD:
            return refusal(message.get("id"), code, f"ctxchat has no method {method}.")
        case {"error": {"data": None}}:
            return refusal(message.get("id"), message["error"]["code"], message["error"]["message"])
        case _:
            return message


def _input_lines(source: BinaryIO) -> Iterator[bytes]:
    try:
        yield from source
    except OSError:  # treated as the end of the input
        return


def _mark_written(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _fail(written: asyncio.Future[None], problem: Exception) -> None:
    if not written.done():
        written.set_exception(problem)
