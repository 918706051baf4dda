"""The tool `find_tools`: what tools take that a conversation's head only names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from ctxchat.core.head import ToolSpec
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.core.tool_search import best_tools
from ctxchat.core.tool_share import FIND_TOOL, description
from ctxchat.tools.text import clip_line
from ctxchat.tools.tool import Arguments, Pieces, Tool

MAX_FOUND = 5
"""Tools that are described at once."""


class FindArguments(Arguments, frozen=True):
    wanted: Annotated[str, msgspec.Meta(description="What you want to do, in plain words, or the names of tools")]


class FindTools(Tool[FindArguments]):
    """`specs` gives the tools of servers there are now."""

    name = FIND_TOOL
    about = f"Describes tools that this conversation only names: the {MAX_FOUND} that fit best what you want to do."
    arguments = FindArguments
    reads_only = True

    def __init__(self, specs: Callable[[], Sequence[ToolSpec]]) -> None:
        super().__init__()
        self._specs = specs

    def access_needed(self, arguments: FindArguments, context: ToolContext) -> AccessRequest:
        return AccessRequest("none", summary=f"find tools: {clip_line(' '.join(arguments.wanted.split()), 200)}")

    async def execute(self, arguments: FindArguments, context: ToolContext) -> Pieces:
        specs = self._specs()
        words = set(arguments.wanted.replace(",", " ").split())
        named = [spec for spec in specs if spec.name in words]
        found = named or best_tools(arguments.wanted, specs, MAX_FOUND)
        if not found:
            yield ToolOutput(f"None of {len(specs)} tools fits. Say it in other words, or name one.")
            return
        yield ToolOutput(description(found))
