"""What stands around a conversation: memory files word for word, and what the context providers say now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ctxchat.context.gather import LastGood, gather
from ctxchat.context.memory_files import memory
from ctxchat.core.ports import ContextProvider
from ctxchat.core.view import Insert

DEADLINE = 0.5
"""Seconds providers are waited for with each request; a late one gives its last good value."""


class WorkspaceSurroundings:
    """For one session. `memory_file` is the user's own, across folders; `mask` takes secrets out of what is found."""

    def __init__(
        self,
        workspace: Path,
        memory_file: Path,
        providers: Sequence[ContextProvider],
        mask: Callable[[str], str] = str,
    ) -> None:
        self._mask = mask
        self._workspace = workspace
        self._memory_file = memory_file
        self._providers = tuple(providers)
        self._kept = LastGood()

    async def memory(self) -> tuple[Insert, ...]:
        """The memory files that apply here."""
        return await self._masked((await memory(self._workspace, self._memory_file)).inserts)

    async def injected(self) -> tuple[Insert, ...]:
        """What the providers say, in their order."""
        return await self._masked(await gather(self._providers, DEADLINE, self._kept))

    async def _masked(self, inserts: Sequence[Insert]) -> tuple[Insert, ...]:
        texts = await asyncio.to_thread(lambda: [self._mask(insert.text) for insert in inserts])
        return tuple(msgspec.structs.replace(i, text=text) for i, text in zip(inserts, texts, strict=True))

    @property
    def troubles(self) -> Mapping[str, str]:
        """Which providers were late or failed when last asked, and what came of it."""
        return self._kept.troubles

    async def close(self) -> None:
        """End providers that are still at work."""
        await self._kept.close()
