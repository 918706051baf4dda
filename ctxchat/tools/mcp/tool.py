"""One tool of an MCP server as a tool of ours. Its name, description, schema and results are foreign: data, never trusted.

What a server says of itself (that a tool only reads) decides nothing: each is asked for like anything that reaches outside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

from ctxchat.core.call_arguments import LONGEST_NAME, plain_name
from ctxchat.core.permissions import Demand
from ctxchat.core.ports import ToolContext, ToolOutput, ToolPiece
from ctxchat.core.view import ToolSpec
from ctxchat.tools.mcp.host import ToolReply
from ctxchat.tools.mcp.protocol import OfferedTool
from ctxchat.tools.text import clip, clip_line

LONGEST_ABOUT = 4000
"""Characters of a description."""


class Caller(Protocol):
    """The server behind a tool."""

    name: str

    async def call(self, tool: str, arguments: dict[str, object]) -> ToolReply:
        """Run it. Raises ToolError."""
        ...


class McpTool:
    """A `core.ports.ToolPort`. `name` is what models call it by."""

    def __init__(self, server: Caller, offered: OfferedTool, name: str) -> None:
        self._server = server
        self._tool = offered.name
        self._spec = ToolSpec(name, clip(offered.description, LONGEST_ABOUT), offered.schema)

    @property
    def server(self) -> str:
        """The name of the server it belongs to."""
        return self._server.name

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema."""
        return self._spec

    @property
    def parallel(self) -> bool:
        """Never: nobody knows what it does."""
        return False

    def demand(self, arguments: dict[str, object], context: ToolContext) -> Demand:
        """To reach outside; a rule for it is for this tool, whatever the arguments."""
        written = msgspec.json.encode(arguments).decode()
        summary = f"{self._server.name}: {clip_line(self._tool, 80)} {clip_line(written, 160)}"
        return Demand("network", self._spec.name, False, summary, preview=written, patterns=(self._spec.name,))

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolPiece]:
        """The result in one piece, whole: what is too long for the window is kept in a file. Raises ToolError."""
        reply = await self._server.call(self._tool, arguments)
        yield ToolOutput(reply.text or "[no output]", "error" if reply.failed else "ok")


def name_of(server: str, tool: str) -> str:
    """`server__tool`, as providers want it."""
    return plain_name(f"{server}__{tool}")


def names_of(server: str, tools: Sequence[str]) -> list[str]:
    """`name_of` for all tools of a server, each name once: a later one that would be the same gets a number."""
    names: list[str] = []
    for tool in tools:
        name, number = name_of(server, tool), 1
        while name in names:
            number += 1
            end = f"_{number}"
            name = name_of(server, tool)[: LONGEST_NAME - len(end)] + end
        names.append(name)
    return names
