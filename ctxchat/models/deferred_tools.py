"""Claude's own way to tools on demand: what `find_tools` has described goes as references, which its server reads as definitions
that a request brings along and that are loaded late. They stand for what they were found to be, and the head stays as it was.

platform.claude.com/docs: "Tool search tool", custom implementation. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from ctxchat.core.errors import ModelError
from ctxchat.core.expressions import expression
from ctxchat.core.head import ToolSpec
from ctxchat.core.openai import Wire
from ctxchat.core.refused import blamed_tool, blames_tools
from ctxchat.core.tool_share import FIND_TOOL, described_in
from ctxchat.models.dialects import ANTHROPIC
from ctxchat.models.tool_schemas import tools_for

DEFERRED = "defer_loading"
"""The mark of a definition that is not read before a reference to it."""

REFERENCE = "tool_reference"
"""The kind of a part that is one."""

_REFUSED = expression(r"tool.?references?\b|defer_loading|deferred tool", re.I)
"""How a server says that it knows neither."""


def by_reference(arguments: Mapping[str, Any], in_words: Collection[str] = ()) -> dict[str, Any]:
    """A request, in litellm's form, with results of `find_tools` as references. One stays in words that names a tool of the
    head or one `in_words`, or one that was another when it was found before: what was sent is not sent anew."""
    messages: Sequence[Wire] = arguments["messages"]
    head: Sequence[Wire] = arguments.get("tools") or ()
    names = {*in_words, *(tool["function"]["name"] for tool in head)}
    finding: set[str] = set()
    late: dict[str, ToolSpec] = {}
    sent: list[Wire] = []
    for message in messages:
        calls = cast("list[Wire]", message.get("tool_calls") or [])
        finding |= {call["id"] for call in calls if call["function"]["name"] == FIND_TOOL}
        content = message.get("content")
        found = message.get("tool_call_id") in finding and isinstance(content, str) and described_in(content)
        if found and all(tool.name not in names and late.get(tool.name, tool) == tool for tool in found):
            late |= {tool.name: tool for tool in found}
            message = {**message, "content": [{"type": REFERENCE, "tool_name": tool.name} for tool in found]}
        sent.append(message)
    if not late or not head:  # one that is not deferred must be there
        return dict(arguments)
    marked = [{**tool, DEFERRED: True} for tool in tools_for(ANTHROPIC, tuple(late.values()))]
    return {**arguments, "messages": sent, "tools": [*head, *marked]}


def has_references(sent: Mapping[str, Any]) -> bool:
    """Whether a request brings definitions along that are loaded late."""
    return any(tool.get(DEFERRED) for tool in sent.get("tools") or ())


def refused(sent: Mapping[str, Any], problem: ModelError) -> frozenset[str]:
    """The tools for whose definitions or references a server refused a request that `by_reference` made: the one it blames, else
    those of the newest result, which alone it had not seen before. Empty where it failed for another reason."""
    tools: Sequence[Wire] = sent.get("tools") or ()
    late = {tool["function"]["name"] for tool in tools if tool.get(DEFERRED)}
    if problem.kind != "bad_request" or not late:
        return frozenset()
    blamed = blamed_tool(problem, [tool["function"]["name"] for tool in tools])
    if blamed in late:
        return frozenset({blamed})
    if not _REFUSED.search(problem.body or problem.text) and (blamed or not blames_tools(problem)):
        return frozenset()
    newest = next((_referred(message) for message in reversed(sent["messages"]) if _referred(message)), ())
    return frozenset(newest)


def _referred(message: Wire) -> tuple[str, ...]:
    content = message.get("content")
    parts = cast("list[Wire]", content) if isinstance(content, list) else []
    return tuple(part["tool_name"] for part in parts if part.get("type") == REFERENCE)
