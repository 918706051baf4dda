"""Which tools a request can afford: those of servers may take a share of the window and no more. Pure; knows no server."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ctxchat.core.quantities import short
from ctxchat.core.view import ToolSpec

MAX_TOOLS_SHARE = 0.25
"""Of what a prompt may hold, for the tools of all servers together."""

_BETWEEN = "__"
"""Between a server's name and its tool's."""


class Afforded(msgspec.Struct, frozen=True):
    """The tools that are sent, and what a person should know of those that are not; empty where all are."""

    tools: tuple[ToolSpec, ...] = ()
    trouble: str = ""


def afford(tools: Sequence[ToolSpec], weigh: Callable[[ToolSpec], int], limit: int) -> Afforded:
    """The tools that fit a prompt of `limit` tokens, in their order. A server's stay together; the lightest come first. Our own
    always stay."""
    servers: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        server, between, _ = tool.name.partition(_BETWEEN)
        if between:
            servers.setdefault(server, []).append(tool)
    weights = {server: sum(map(weigh, theirs)) for server, theirs in servers.items()}
    left_out: list[str] = []
    room = limit * MAX_TOOLS_SHARE
    for server in sorted(servers, key=weights.__getitem__):
        room -= weights[server]
        if room < 0:
            left_out.append(server)
    if not left_out:
        return Afforded(tuple(tools))
    gone = {tool.name for server in left_out for tool in servers[server]}
    names = ", ".join(f"{name} ({len(servers[name])} tools, {short(weights[name])} tokens)" for name in left_out)
    most = f"more than a quarter of the window with the tools of others, so the model is not told of them: {names}."
    ways = "Name those you need under `tools` of [mcp.…], or switch others off with /mcp."
    return Afforded(
        tuple(tool for tool in tools if tool.name not in gone), f"Tools of servers would take {most} {ways}"
    )
