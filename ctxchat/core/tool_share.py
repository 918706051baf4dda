"""Which tools a request can afford: those of servers may take a share of the window and no more. Pure; knows no server."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ctxchat.core.view import ToolSpec
from ctxchat.core.words import short

SHARE = 0.25
"""Of what a prompt may hold, for the tools of all servers together."""

_BETWEEN = "__"
"""Between a server's name and its tool's."""


class Weighed(msgspec.Struct, frozen=True):
    """A server whose tools are not sent, how many they are, and their raw tokens."""

    server: str
    tools: int
    tokens: int


class Afforded(msgspec.Struct, frozen=True):
    """The tools that are sent, and the servers whose tools are not."""

    tools: tuple[ToolSpec, ...] = ()
    left_out: tuple[Weighed, ...] = ()

    @property
    def trouble(self) -> str:
        """What a person should know of it, and what to do; empty where all are sent."""
        if not self.left_out:
            return ""
        names = ", ".join(f"{w.server} ({w.tools} tools, {short(w.tokens)} tokens)" for w in self.left_out)
        most = f"more than a quarter of the window with the tools of others, so the model is not told of them: {names}."
        return f"Tools of servers would take {most} Name those you need under `tools` of [mcp.…], or switch others off with /mcp."


def afford(tools: Sequence[ToolSpec], weigh: Callable[[ToolSpec], int], limit: int) -> Afforded:
    """The tools that fit a prompt of `limit` tokens, in their order. A server's stay together; the lightest come first. Our own
    always stay."""
    servers: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        server, between, _ = tool.name.partition(_BETWEEN)
        if between:
            servers.setdefault(server, []).append(tool)
    weights = {server: sum(map(weigh, theirs)) for server, theirs in servers.items()}
    room, left_out = limit * SHARE, list[Weighed]()
    for server in sorted(servers, key=weights.__getitem__):
        room -= weights[server]
        if room < 0:
            left_out.append(Weighed(server, len(servers[server]), weights[server]))
    gone = {tool.name for weighed in left_out for tool in servers[weighed.server]}
    return Afforded(tuple(tool for tool in tools if tool.name not in gone), tuple(left_out))
