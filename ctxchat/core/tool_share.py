"""Which tools are described in a request: all of ours, and those of MCP servers up to a share of the window. The others are named
only, and found and called on demand. Pure; knows no server."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from ctxchat.core.head import ToolSpec

ON_DEMAND = "tools on demand"
"""The source of the names of tools whose descriptions are not sent."""

FIND_TOOL = "find_tools"
"""The tool that looks for them."""

CALL_TOOL = "call_tool"
"""The tool by which tools are called that are not in the head."""

MAX_TOOLS_SHARE, MAX_TOOLS_TOKENS = 0.1, 10_000
"""Of what a prompt may hold, and in tokens, for the descriptions of all servers' tools together."""

SMALL_SERVERS_TOKENS = 1_000
"""For those of the smallest servers, which are sent even where all together take more than that."""

MAX_NAMES_TOKENS = 1_500
"""For the names of the others."""

MAX_LINE_CHARS = 80
"""Characters of a description that stand beside a name."""

BETWEEN = "__"
"""Between a server's name and its tool's."""

_OPENING = (
    f"Further tools, not described here: find out what they take with {FIND_TOOL}, run them with {CALL_TOOL}, or by their own "
    "names where these are among your tools then."
)

_FOUND = f"[call them with {CALL_TOOL}(name, arguments)]"
"""The first line of what is told of tools that were found."""


class Afforded(msgspec.Struct, frozen=True):
    """The tools that are sent with their descriptions, and what the head says of the others, empty where there are none."""

    tools: tuple[ToolSpec, ...] = ()
    on_demand: str = ""


def afford(
    tools: Sequence[ToolSpec],
    weigh: Callable[[ToolSpec], int],
    count: Callable[[str], int],
    limit: int,
    told: Collection[str] = (),
) -> Afforded:
    """Share out a prompt of `limit` tokens, in the order of the tools. Our own are sent, and so are those that the model was
    `told` of: what was sent stays. Of servers all are, where they fit; else the smallest servers."""
    servers: dict[str, list[ToolSpec]] = {}
    room = float(min(limit * MAX_TOOLS_SHARE, MAX_TOOLS_TOKENS))
    for tool in tools:
        server, between, _ = tool.name.partition(BETWEEN)
        if between and tool.name in told:
            room -= weigh(tool)
        elif between:
            servers.setdefault(server, []).append(tool)
    weights = {server: sum(map(weigh, theirs)) for server, theirs in servers.items()}
    if sum(weights.values()) > room:
        room = min(room, SMALL_SERVERS_TOKENS)
    named: dict[str, list[ToolSpec]] = {}
    for server in sorted(servers, key=weights.__getitem__):
        room -= weights[server]
        if room < 0:
            named[server] = servers[server]
    gone = {tool.name for theirs in named.values() for tool in theirs}
    most = min(limit * MAX_TOOLS_SHARE, MAX_NAMES_TOKENS)
    text = next((text for text in _listings(named) if count(text) <= most), "") if named else ""
    return Afforded(tuple(tool for tool in tools if tool.name not in gone), text)


def _listings(servers: Mapping[str, Sequence[ToolSpec]]) -> Iterator[str]:
    """What can be said of these tools, from the longest to the shortest."""
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
    """What a tool does, in some words of its description."""
    text = " ".join(description.split())
    sentence = re.split(r"\. (?=[^a-z])", text, maxsplit=1)[0]  # not behind "e.g."
    return sentence if len(sentence) <= MAX_LINE_CHARS else f"{sentence[: MAX_LINE_CHARS - 1]}…"


def description(found: Sequence[ToolSpec]) -> str:
    """What a model is told of tools that were found: one a line, whole."""
    return "\n".join([_FOUND, *(tool.schema for tool in found)])


def described_in(text: str) -> tuple[ToolSpec, ...]:
    """The tools of such a text; none where it holds anything else besides."""
    first, _, rest = text.partition("\n")
    if first != _FOUND:
        return ()
    try:
        return tuple(msgspec.json.decode(line, type=ToolSpec) for line in rest.split("\n"))
    except (msgspec.DecodeError, RecursionError):
        return ()
