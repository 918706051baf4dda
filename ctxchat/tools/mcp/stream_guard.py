"""Makes the messages of an MCP server safe before the SDK reads them: lists of tools keep usable ones only, and a message that is
nested too deep, or never ends, is dropped without ending the connection."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from ctxchat.core.call_arguments import is_too_deep
from ctxchat.core.errors import ToolError
from ctxchat.core.tool_schemas import choice_words, normal
from ctxchat.tools.text import clip_line, size

MAX_SCHEMA_BYTES = 200_000
"""Bytes of one tool's schema: more would fill any window."""


def usable(listed: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The result of `tools/list` with nothing of each tool but what is used, and those that are none by name, with why."""
    tools: list[dict[str, Any]] = []
    left_out: list[str] = []
    for place, entry in enumerate(cast("list[object]", listed["tools"]), 1):
        tool = _tool(entry)
        if isinstance(tool, str):
            left_out.append(f"{_tool_name(entry, place)} ({tool})")
        else:
            tools.append(tool)
    return {**listed, "tools": tools}, left_out


def _tool(entry: object) -> dict[str, Any] | str:
    """The tool, or why it is none. Without a schema for its results: they are shown as they are."""
    match entry:
        case {"name": str(name), **rest} if name.strip():
            schema = rest.get("inputSchema")
        case {"name": _}:
            return "its name is no text"
        case dict():
            return "it has no name"
        case _:
            return "it is no description of a tool"
    if schema is not None and not isinstance(schema, dict):
        return "its schema is none"
    given = cast("dict[str, object]", schema or {})
    if is_too_deep(given):
        return "its schema is nested without an end"
    shaped = normal(given)
    try:
        length = len(msgspec.json.encode(shaped.schema))
    except (ValueError, OverflowError, RecursionError):  # a number no one takes
        return "its schema cannot be passed on"
    if length > MAX_SCHEMA_BYTES:
        return f"its schema is {size(length)} long"
    about = rest.get("description")
    words = (about if isinstance(about, str) else "", choice_words(shaped.choices))
    return {"name": name, "description": "\n".join(filter(None, words)), "inputSchema": shaped.schema}


def _tool_name(entry: object, place: int) -> str:
    name = cast("dict[str, object]", entry).get("name") if isinstance(entry, dict) else None
    return clip_line(name, 60) if isinstance(name, str) and name.strip() else f"number {place}"


MAX_STRAY_LINES = 1_000
"""Lines beside the protocol on standard output, after which a server is left."""

MAX_LINE_CHARS = 32_000_000
"""Characters of a line on standard output: one message, with the longest result."""


@asynccontextmanager
async def sieved(transport: Any, left_out: list[str]) -> AsyncGenerator[tuple[Any, Any], None]:
    """The transport with `Sieve` before its messages."""
    async with transport as (incoming, outgoing):
        yield Sieve(incoming, left_out), outgoing


class Sieve:
    """A stream of messages in which lists of tools hold usable ones only; `left_out` grows by the names of the others."""

    def __init__(self, stream: Any, left_out: list[str]) -> None:
        self._stream, self._left_out = stream, left_out
        self._noise = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def receive(self) -> Any:
        """The next message."""
        return self._passed(await self._stream.receive())

    def __aiter__(self) -> Sieve:
        return self

    async def __anext__(self) -> Any:
        return self._passed(await self._stream.__anext__())

    async def __aenter__(self) -> Sieve:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> Any:
        return await self._stream.__aexit__(*problem)

    def _passed(self, item: Any) -> Any:
        message = getattr(item, "message", None)  # else it is an error
        if message is None:
            self._noise += 1
            if self._noise > MAX_STRAY_LINES:
                raise ToolError("It writes on standard output what is not of the protocol, without an end.")
        result = getattr(message, "result", None)
        if message is not None and isinstance(result, dict) and isinstance(result.get("tools"), list):
            message.result, left_out = usable(result)
            self._left_out += left_out
        return item


_NESTED = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)

MAX_JSON_DEPTH = 150
"""Levels of a message that are read; the SDK's reader gives up on all of one that has more than 200."""


def shallow(text: str) -> str:
    """JSON in which nothing lies deeper than that: a text that says so stands for what did."""
    depth, start, kept = 0, 0, list[str]()
    for found in _NESTED.finditer(text):
        if found[0] in "[{":
            depth += 1
            if depth == MAX_JSON_DEPTH + 1:
                kept += [text[start : found.start()], '"[nested too deep]"']
        elif found[0] in "]}":
            if depth == MAX_JSON_DEPTH + 1:
                start = found.end()
            depth -= 1
    return "".join((*kept, text[start:])) if depth <= MAX_JSON_DEPTH else text


class _Shallow:
    """The SDK's reader of messages, which reads one that is nested too deep as far as it goes."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def validate_json(self, text: str | bytes, **options: Any) -> Any:
        try:
            return self._reader.validate_json(text, **options)
        except ValueError as problem:
            if "recursion limit" not in str(problem):
                raise
        words = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return self._reader.validate_json(shallow(words), **options)


def reading_shallow(reader: Any) -> _Shallow:
    return reader if isinstance(reader, _Shallow) else _Shallow(reader)


_ID = re.compile(r'^\s*\{[^{}\[\]]{0,200}?"id"\s*:\s*(\d{1,18})\b')

MAX_SKIPPED_CHARS = 10 * MAX_LINE_CHARS
"""Characters of one answer that are read over; a server that goes on is left."""

_NOISE = "\n" * (MAX_STRAY_LINES + 2)


def _refusal(beginning: str) -> str:
    """An answer in place of one that is too long, where its beginning says whose it is; else what ends the connection."""
    found = _ID.match(beginning)
    if not found:
        return _NOISE
    why = f"The answer is longer than {size(MAX_LINE_CHARS)}, the most that is read."
    error = {"jsonrpc": "2.0", "id": int(found[1]), "error": {"code": -32603, "message": why}}
    return msgspec.json.encode(error).decode() + "\n"


def with_line_limit(text: Any, most: int = MAX_LINE_CHARS) -> Any:
    """The class that the SDK reads standard output with, which would keep a line until it ends, and copy it with each piece that
    comes: this one hands over whole lines, and a refusal in place of one that is too long."""

    class Ended(text):
        def __post_init__(self, *more: Any) -> None:
            super().__post_init__(*more)
            self._pieces, self._length = list[str](), 0
            self._skipped = 0  # of a line that was too long, and has not ended

        async def receive(self) -> str:
            whole = ""
            while not whole:
                piece = await super().receive()
                if self._skipped:
                    skipped, ended, piece = piece.partition("\n")
                    self._skipped = 0 if ended else self._skipped + len(skipped)
                    if self._skipped > MAX_SKIPPED_CHARS:
                        return _NOISE
                whole, found, rest = piece.rpartition("\n")
                if found:
                    whole, self._pieces, self._length = "".join((*self._pieces, whole, found)), [], 0
                self._pieces.append(rest)
                self._length += len(rest)
                if self._length > most:
                    whole += _refusal("".join(self._pieces)[:1_000])
                    self._skipped, self._pieces, self._length = self._length, [], 0
            return whole

    return Ended
