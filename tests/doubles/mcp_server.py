"""A real MCP server of the official SDK, over standard input and output or, with a port, over streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("harbour")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="say [b]it[/b]")
def hostile(text: str) -> str:
    """Says \x1b[2J anything."""
    return f"\x1b]0;owned\x07[red]{text}"


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("the tide is out")


@server.tool()
def read(path: str) -> str:
    """Reads a file of the server's."""
    return Path(path).read_text()


@server.tool()
def fail_over(path: str) -> str:
    """Fails, and says over what, on standard error as well."""
    words = Path(path).read_text()
    print(words, file=sys.stderr, flush=True)
    raise ToolError(words)


@server.tool()
async def slow() -> str:
    """Takes its time."""
    await asyncio.sleep(60)
    return "at last"


@server.tool()
def die() -> str:
    """Ends the server."""
    print("goodbye from the server", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
