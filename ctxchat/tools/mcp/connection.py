"""How a server is reached: its process over standard input and output, or its address over HTTP. The one place that knows
the SDK.

The SDK is an extra and takes most of a second to import, so it is loaded in a thread, and only where a server is configured.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.core.errors import ToolError

MOST_TOOLS = 500
"""Of one server: more would fill any window."""

LEAVE = 0.5
"""Seconds a process has to end by itself, and as many to end when it is told to, before it is killed: nobody waits to quit."""


class Address(msgspec.Struct, frozen=True):
    """Where a server is: a `command` with its arguments, or a `url`. `timeout` in seconds, for one call; `env` is added to the
    few variables every server gets; `headers_env` are headers whose value is in a variable of ours."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    headers_env: Mapping[str, str] = {}
    timeout: float = 60.0


class Offered(msgspec.Struct, frozen=True):
    """A tool as its server describes it: foreign text, all of it."""

    name: str
    description: str
    schema: dict[str, Any]


class Reply(msgspec.Struct, frozen=True):
    """What a call gave back, in words."""

    text: str
    failed: bool


class Connection:
    """An open one. Calls may be made side by side."""

    def __init__(self, sdk: Any, client: Any) -> None:
        self._client = client
        self._refusals, self._closed = sdk.MCPError, sdk.types.CONNECTION_CLOSED

    async def tools(self) -> Sequence[Offered]:
        """What the server offers, all pages of it."""
        found: list[Offered] = []
        cursor = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            found += [Offered(t.name, t.description or "", dict(t.input_schema)) for t in page.tools]
            cursor = page.next_cursor
            if not cursor or len(found) >= MOST_TOOLS:
                return found[:MOST_TOOLS]

    async def call(self, tool: str, arguments: dict[str, object], seconds: float) -> Reply:
        """Run a tool. Raises ConnectionError where the server is gone, else what the SDK raises."""
        try:
            result = await self._client.call_tool(tool, arguments, read_timeout_seconds=seconds)
        except self._refusals as problem:
            if problem.error.code == self._closed:
                raise ConnectionResetError("The server has ended.") from problem
            raise
        return Reply("\n".join(filter(None, map(_words, result.content))), bool(result.is_error))


@asynccontextmanager
async def connected(address: Address, workspace: str, log: Path) -> AsyncGenerator[Connection, None]:
    """A connection for as long as the block lasts; what a server's process says beside the protocol goes to the file `log`.

    Raises ToolError where the SDK is missing or a header's variable is not set; else what the SDK raises.
    """
    try:
        sdk = await asyncio.to_thread(import_module, "mcp")
        http = await asyncio.to_thread(import_module, "mcp.client.streamable_http")
    except ImportError as missing:
        raise ToolError(
            "MCP servers need one more package.", "Install it: pip install 'ctxchat[mcp]'. Then start again."
        ) from missing
    logging.getLogger("mcp").setLevel(
        logging.CRITICAL
    )  # else each line beside the protocol is a traceback in the terminal
    async with AsyncExitStack() as stack:
        if address.url:
            client = await stack.enter_async_context(_http_client(_headers(address), address.timeout))
            transport = http.streamable_http_client(address.url, http_client=client)
        else:
            errors = stack.enter_context(await asyncio.to_thread(_opened, log))
            parameters = sdk.StdioServerParameters(
                command=address.command,
                args=list(address.args),
                env=dict(address.env),
                cwd=address.cwd or workspace,
                encoding_error_handler="replace",
            )
            pipes: Any = import_module("mcp.client.stdio")
            pipes.PROCESS_TERMINATION_TIMEOUT = pipes.FORCE_KILL_TIMEOUT = LEAVE
            transport = pipes.stdio_client(parameters, errlog=errors)
        client = await stack.enter_async_context(sdk.Client(transport))
        yield Connection(sdk, client)


def _opened(log: Path) -> Any:
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")


def _http_client(headers: dict[str, str], seconds: float) -> Any:
    library = import_module("httpx2")
    return library.AsyncClient(headers=headers, timeout=library.Timeout(30.0, read=seconds), follow_redirects=True)


def _headers(address: Address) -> dict[str, str]:
    missing = [name for name in address.headers_env.values() if name not in os.environ]
    if missing:
        raise ToolError(f"The variable {missing[0]} is not set.", "It holds a header of this server.")
    return {**address.headers, **{header: os.environ[name] for header, name in address.headers_env.items()}}


def _words(part: Any) -> str:
    """One part of a result as text; what is no text is named."""
    match part.type:
        case "text":
            return str(part.text)
        case "resource" if hasattr(part.resource, "text"):
            return str(part.resource.text)
        case "resource_link":
            return f"[{part.name}: {part.uri}]"
        case kind:
            return f"[{kind}: {getattr(part, 'mime_type', None) or 'not shown'}]"
