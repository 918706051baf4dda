"""Finds the tools whose schemas a server refuses, where its error names none: sends small requests with some of the tools, and
halves the refused set until single tools are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.turn.model_calls import stream_reply
from ctxchat.core.errors import ModelError
from ctxchat.core.head import ToolSpec
from ctxchat.core.journal import Spent
from ctxchat.core.messages import Message
from ctxchat.core.ports import ReplyEnd
from ctxchat.core.refused import blames_tools
from ctxchat.core.view import Item, View

MAX_PROBES = 30
"""Most requests of one search: enough to find two tools among a hundred."""

MAX_PROBE_TOKENS = 16
"""Most tokens of a probe's reply: the smallest limit that every provider accepts."""


class RefusedTools:
    """One search, by at most `MAX_PROBES` requests to the conversation's model, which leave no trace in the conversation."""

    def __init__(self, conversation: Conversation, retries: int) -> None:
        self._conversation = conversation
        self._retries = retries
        self._left = MAX_PROBES
        self._cost_usd = 0.0

    async def find(self, tools: Sequence[ToolSpec]) -> tuple[str, ...]:
        """The names of the refused tools; empty where requests are not refused because of tools. The cost of the search is booked
        to the session."""
        try:
            if await self._refuses(()) is not False or not await self._refuses(tools):
                return ()
            return tuple(tool.name for tool in await self._among(tools))
        finally:
            if self._cost_usd:
                self._conversation.apply_now_write_later(Spent(self._conversation.model.name, self._cost_usd))

    async def _among(self, tools: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
        """The tools of a refused list that are refused alone too; the whole list where they are only refused together, or no
        requests are left."""
        half = len(tools) // 2
        if not half or not self._left:
            return tools
        refused: list[ToolSpec] = []
        for part in (tools[:half], tools[half:]):
            if await self._refuses(part) is not False:
                refused += await self._among(part)
        return refused or tools

    async def _refuses(self, tools: Sequence[ToolSpec]) -> bool | None:
        """Whether the server refuses a request because of the schemas of these tools; None where that could not be found out."""
        if not self._left:
            return None
        self._left -= 1
        conversation, counter = self._conversation, self._conversation.counter
        asked = Item(Message(0, "user", "ok?"), "user", counter.count_text("ok?"), "user")
        weights = tuple(counter.tool(tool.schema) for tool in tools)
        view = View((asked,), tuple(tools), weights, asked.tokens + sum(weights), 0)
        request = msgspec.structs.replace(conversation.call_with(view, MAX_PROBE_TOKENS, {}), session="")
        pieces = stream_reply(
            conversation.model, request, conversation.clock, self._retries, budget=conversation.spending
        )
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, ReplyEnd) and piece.usage:
                        self._cost_usd += piece.usage.cost_usd
        except ModelError as problem:
            if blames_tools(problem):
                return True
            if problem.kind not in {"empty", "interrupted"}:
                self._left = 0  # the server does not answer: tools not yet probed stay suspect
                return None
        return False
