"""The process that holds the MCP SDK, which takes a second to load, for many tests."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ctxchat.tools.mcp.host import McpHost
from ctxchat.tools.mcp.protocol import Address
from ctxchat.tools.mcp.server import McpServer, StartOptions
from tests.doubles.started_server import started

RAW = str(Path(__file__).with_name("raw_mcp_server.py"))
"""The server that does not keep to the rules."""


@asynccontextmanager
async def kept_mcp_host(folder: Path) -> AsyncIterator[McpHost]:
    """One that runs for as long as the block lasts: a connection to a server of ours keeps it up. Its environment is that of the
    begin."""
    host = McpHost()
    raw = Address(command=sys.executable, args=(RAW, "twins"))
    server = McpServer("kept", raw, StartOptions(str(folder), folder / "kept.log"), host)
    async with started(server):
        yield host
