"""Which tools a server refuses, where its refusal names none: small requests with some of them, halved until one is left."""

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
"""Requests of one search: enough for two tools among a hundred."""

MAX_PROBE_TOKENS = 16
"""Tokens of a reply: the fewest that every provider takes."""


class RefusedTools:
    """A search, by at most `MAX_PROBES` requests to the model of the conversation. Nothing of them stays in it."""

    def __init__(self, conversation: Conversation, retries: int) -> None:
        self._conversation = conversation
        self._retries = retries
        self._left = MAX_PROBES
        self._cost_usd = 0.0

    async def find(self, tools: Sequence[ToolSpec]) -> tuple[str, ...]:
        """The names of those that are refused; none where a request is not refused for its tools. What the search costs
        is booked."""
        try:
            if await self._refuses(()) is not False or not await self._refuses(tools):
                return ()
            return tuple(tool.name for tool in await self._among(tools))
        finally:
            if self._cost_usd:
                self._conversation.apply_now_write_later(Spent(self._conversation.model.name, self._cost_usd))

    async def _among(self, tools: Sequence[ToolSpec]) -> Sequence[ToolSpec]:
        """Those of a refused list that are refused by themselves; all of it where it is only refused together, or the search is
        over."""
        half = len(tools) // 2
        if not half or not self._left:
            return tools
        found: list[ToolSpec] = []
        for part in (tools[:half], tools[half:]):
            if await self._refuses(part) is not False:
                found += await self._among(part)
        return found or tools

    async def _refuses(self, tools: Sequence[ToolSpec]) -> bool | None:
        """Whether the server refuses a request with these for how they are described; None where that is not to be had."""
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
                self._left = 0  # nobody answers: what is open stays suspect
                return None
        return False
