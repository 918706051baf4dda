"""Tools on demand in Anthropic's form: a result of `find_tools` (which describes tools that are not in the request) is sent as
references, and the definitions they refer to are added to the request, marked as loaded late.

Claude can then call these tools by their own names, and the beginning of the request, which the provider has cached, stays the
same. See platform.claude.com/docs, "Tool search tool", custom implementation. Pure.
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
"""The field that marks a definition of a tool as loaded late: the model reads it only where a reference to it stands."""

REFERENCE = "tool_reference"
"""The type of a message part that is a reference."""

_REFUSED = expression(r"tool.?references?\b|defer_loading|deferred tool", re.I)
"""Matches the errors of servers that do not support references."""


def by_reference(arguments: Mapping[str, Any], in_words: Collection[str] = ()) -> dict[str, Any]:
    """A request, in litellm's form, with the results of `find_tools` as references.

    A result stays text where it names a tool that is in the request anyway, a tool in `in_words` (whose reference a server
    refused), or one whose definition has changed since an earlier result, since what was sent before must not change.
    """
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
    if not late or not head:  # Anthropic requires one tool that is not loaded late
        return dict(arguments)
    marked = [{**tool, DEFERRED: True} for tool in tools_for(ANTHROPIC, tuple(late.values()))]
    return {**arguments, "messages": sent, "tools": [*head, *marked]}


def has_references(sent: Mapping[str, Any]) -> bool:
    """True for a request with definitions that are loaded late."""
    return any(tool.get(DEFERRED) for tool in sent.get("tools") or ())


def refused(sent: Mapping[str, Any], problem: ModelError) -> frozenset[str]:
    """The names of the tools for which a server refused a request made by `by_reference`; empty where it failed for another
    reason.

    That is the tool which the error names, else those of the newest result, since the server accepted the earlier ones before.
    """
    tools: Sequence[Wire] = sent.get("tools") or ()
    late = {tool["function"]["name"] for tool in tools if tool.get(DEFERRED)}
    if problem.kind != "bad_request" or not late:
        return frozenset()
    blamed = blamed_tool(problem, [tool["function"]["name"] for tool in tools])
    if blamed in late:
        return frozenset({blamed})
    if not _REFUSED.search(problem.body or problem.text) and (blamed or not blames_tools(problem)):
        return frozenset()
    *earlier, newest = [(), *filter(None, map(_referred, sent["messages"]))]
    accepted = {name for names in earlier for name in names}
    return frozenset(newest) - accepted or frozenset(newest)


def _referred(message: Wire) -> tuple[str, ...]:
    content = message.get("content")
    parts = cast("list[Wire]", content) if isinstance(content, list) else []
    return tuple(part["tool_name"] for part in parts if part.get("type") == REFERENCE)
