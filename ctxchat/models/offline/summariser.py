"""The extractive summary as a Summariser: for sessions without a model, and as the last resort of those with one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from ctxchat.core.messages import Message
from ctxchat.core.tokens import Count, rough_count
from ctxchat.core.view import Item, View
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

    async def summarise(self, view: View, instructions: str, previous: str) -> AsyncIterator[str]:
        """The summary, section by section. `previous` stands for the view's own summary where it is given."""
        text = await asyncio.to_thread(self.summary, view, instructions, previous)
        for block in text.split("\n\n"):
            yield block if text.endswith(block) else f"{block}\n\n"
            await asyncio.sleep(0)

    def summary(self, view: View, instructions: str = "", previous: str = "") -> str:
        """The whole of it at once. Blocking, pure."""
        said = conversation(view.items)
        before = previous or "\n".join(i.message.text for i in view.items if i.kind == "summary")
        source = sum(i.tokens for i in view.items if i.section not in {"system", "memory"})
        room = max(LEAST_TOKENS, min(self._most, int(source * SHARE) + self._count(before)))
        return extractive_summary(said, min(room, self._most), before, count=self._count, focus=instructions)


def conversation(items: Sequence[Item]) -> tuple[Message, ...]:
    """What people and replies said, with the tools between: no prompts, no memory, no notes, no earlier summary."""
    return tuple(item.message for item in items if item.kind in {"user", "reply", "round"})
