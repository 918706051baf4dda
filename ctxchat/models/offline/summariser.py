"""The extractive summary as a Summariser: for sessions without a model, and as the last resort of those with one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from ctxchat.core.events import Usage
from ctxchat.core.messages import Group, Message
from ctxchat.core.tokens import Count, Meter, rough_count
from ctxchat.models.offline.summary import extractive_summary

MOST_TOKENS = 1_200
SHARE = 0.3
"""A summary takes at most this share of what it stands for, so that it always helps."""

LEAST_TOKENS = 60


class OfflineSummariser:
    """core.ports.Summariser by rule: `model` is empty. `count` counts tokens, `most` caps a summary in tokens."""

    def __init__(self, count: Count = rough_count, *, most: int = MOST_TOKENS) -> None:
        self._count = count
        self._most = most

    @property
    def model(self) -> str:
        """No model."""
        return ""

    async def summarise(
        self, groups: Sequence[Group], instructions: str, previous: str, max_tokens: int
    ) -> AsyncIterator[str | Usage]:
        """The summary, section by section; no usage, for nobody was asked. `max_tokens` 0 or less: as many as it likes."""
        text = await asyncio.to_thread(self.summary, groups, instructions, previous, max_tokens)
        blocks = text.split("\n\n")
        for block in blocks[:-1]:
            yield f"{block}\n\n"
            await asyncio.sleep(0)
        yield blocks[-1]

    def summary(self, groups: Sequence[Group], instructions: str = "", previous: str = "", max_tokens: int = 0) -> str:
        """The whole of it at once. Blocking, pure."""
        said = conversation(groups)
        meter = Meter(self._count)
        share = int(SHARE * sum(meter.message(m) for g in groups for m in g.messages)) + self._count(previous)
        room = min(max(LEAST_TOKENS, share), self._most, max_tokens if max_tokens > 0 else self._most)
        return extractive_summary(said, room, previous, count=self._count, focus=instructions)


def conversation(groups: Sequence[Group]) -> tuple[Message, ...]:
    """What people and replies said, with the tools between: no prompts, no notes, no earlier summary."""
    return tuple(m for g in groups if g.kind in {"user", "reply", "round"} for m in g.messages)
