"""Decides which tools are described in a request: all of our own, and those of MCP servers as long as they take no more than a
share of the window. Of the others the model is told the names; it finds their descriptions with `find_tools` and calls them with
`call_tool`.

The head is what precedes the conversation in each request, the tools included. Pure; knows no server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from ctxchat.core.head import ToolSpec

ON_DEMAND = "tools on demand"
"""The name of the context source that lists the tools whose descriptions are not sent."""

FIND_TOOL = "find_tools"
"""The tool by which the model finds the descriptions of tools."""

CALL_TOOL = "call_tool"
"""The tool by which the model calls tools that are not in the head."""

MAX_TOOLS_SHARE, MAX_TOOLS_TOKENS = 0.1, 10_000
"""The most that the descriptions of all servers' tools may take: a share of the limit of a prompt, and tokens; the lower
counts."""

SMALL_SERVERS_TOKENS = 1_000
"""Where they take more than that, or come late: the tokens for the smallest servers' tools, which are sent all the same."""

MAX_NAMES_TOKENS = 1_500
"""The most tokens for the list of the other tools."""

MAX_LINE_CHARS = 80
"""Characters of a description beside a name in that list."""

BETWEEN = "__"
"""Separates the server's name from the tool's in the name of a server's tool."""

_OPENING = (
    f"Further tools, not described here: find out what they take with {FIND_TOOL}, run them with {CALL_TOOL}, or by their own "
    "names where these are among your tools then."
)

_FOUND = f"[call them with {CALL_TOOL}(name, arguments)]"
"""The first line of a result of `find_tools`."""


class Afforded(msgspec.Struct, frozen=True):
    """The `tools` that are sent with their descriptions, and the list of the others for the head (`on_demand`; empty for
    none)."""

    tools: tuple[ToolSpec, ...] = ()
    on_demand: str = ""


def afford(
    tools: Sequence[ToolSpec],
    weigh: Callable[[ToolSpec], int],
    count: Callable[[str], int],
    limit: int,
    told: Collection[str] = (),
) -> Afforded:
    """Which tools to describe in a prompt of at most `limit` tokens, in their order.

    Our own are always described, and so are those that the model was `told` of before (by name; none before a head was sent),
    since a head that was sent is not changed. Of the servers' tools all are, where they fit; else those of the smallest servers,
    and likewise of servers that come after the head was sent. `weigh` gives the tokens of a tool, `count` those of a text.
    """
    servers: dict[str, list[ToolSpec]] = {}
    room = float(min(limit * MAX_TOOLS_SHARE, MAX_TOOLS_TOKENS))
    for tool in tools:
        server, between, _ = tool.name.partition(BETWEEN)
        if between and tool.name in told:
            room -= weigh(tool)
        elif between:
            servers.setdefault(server, []).append(tool)
    weights = {server: sum(map(weigh, theirs)) for server, theirs in servers.items()}
    if told or sum(weights.values()) > room:
        room = min(room, SMALL_SERVERS_TOKENS)
    named: dict[str, list[ToolSpec]] = {}
    for server in sorted(servers, key=weights.__getitem__):
        room -= weights[server]
        if room < 0:
            named[server] = servers[server]
    named_only = {tool.name for theirs in named.values() for tool in theirs}
    most = min(limit * MAX_TOOLS_SHARE, MAX_NAMES_TOKENS)
    text = next((text for text in _listings(named) if count(text) <= most), "") if named else ""
    return Afforded(tuple(tool for tool in tools if tool.name not in named_only), text)


def _listings(servers: Mapping[str, Sequence[ToolSpec]]) -> Iterator[str]:
    """Lists of these servers' tools, from the most detailed (a line with a description each) to the shortest (their number)."""
    names = {server: [tool.name.partition(BETWEEN)[2] for tool in servers[server]] for server in sorted(servers)}
    tools = sorted((tool for theirs in servers.values() for tool in theirs), key=lambda tool: tool.name)
    yield "\n".join([_OPENING, *(f"- {tool.name}: {first_line(tool.description)}" for tool in tools)])
    longest = max(map(len, names.values()))
    for shown in (longest, *(most for most in (24, 16, 10, 6, 3) if most < longest)):
        lines = [
            f"- {server}{BETWEEN}: {', '.join(each[:shown])}{f', {len(each) - shown} more' if each[shown:] else ''}"
            for server, each in names.items()
        ]
        yield "\n".join([_OPENING, *lines])
    yield f"{_OPENING}\nServers: {', '.join(f'{server} ({len(each)})' for server, each in names.items())}"
    yield f"{_OPENING}\nThere are {len(tools)}, of {len(servers)} servers."


def first_line(description: str) -> str:
    """The first sentence of a tool's description, cut to `MAX_LINE_CHARS`."""
    text = " ".join(description.split())
    sentence = re.split(r"\. (?=[^a-z])", text, maxsplit=1)[0]  # not behind "e.g."
    return sentence if len(sentence) <= MAX_LINE_CHARS else f"{sentence[: MAX_LINE_CHARS - 1]}…"


def description(found: Sequence[ToolSpec]) -> str:
    """The result of `find_tools` for these tools: a line to begin with, and then the schema of each on a line."""
    return "\n".join([_FOUND, *(tool.schema for tool in found)])


def described_in(text: str) -> tuple[ToolSpec, ...]:
    """The tools in a text that `description` wrote; none for any other text."""
    first, _, rest = text.partition("\n")
    if first != _FOUND:
        return ()
    try:
        return tuple(msgspec.json.decode(line, type=ToolSpec) for line in rest.split("\n"))
    except (msgspec.DecodeError, RecursionError):
        return ()
