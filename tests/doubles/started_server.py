"""An MCP server for as long as a block lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ctxchat.tools.mcp.host import ShowLogin
from ctxchat.tools.mcp.server import McpServer


@asynccontextmanager
async def started(server: McpServer, show: ShowLogin | None = None) -> AsyncIterator[McpServer]:
    """Up or failed when the block begins, and ended behind it; with `show`, a person logs in."""
    server.start(show)
    try:
        await asyncio.wait_for(server.settled(), 60)
        yield server
    finally:
        await server.stop()
