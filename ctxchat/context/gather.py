"""Gathers what goes with a conversation into a request: memory files word for word, and the texts of the context providers, all
concurrently and with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ctxchat.context.memory_files import folders_below, load_memory
from ctxchat.core.head import ContextBlock, Surroundings
from ctxchat.core.ports import ContextProvider

PROVIDER_TIMEOUT_S = 0.5
"""Seconds to wait for providers; for a late one its last value is used."""

MEMORY_TIMEOUT_S = 5.0
"""Seconds to wait for memory files, which may be on a file system that hangs."""


MAX_FOLDERS = 200
"""Folders below the workspace whose memory files are read."""


class WorkspaceSources:
    """The memory files and context providers of one session. `memory_file` is the user's own, for all folders, and `also` are
    those of other agents; `mask` removes secrets from the texts."""

    def __init__(
        self,
        workspace: Path,
        memory_file: Path,
        providers: Sequence[ContextProvider],
        mask: Callable[[str], str] = str,
        *,
        also: Sequence[Path] = (),
    ) -> None:
        self._mask = mask
        self._also = tuple(also)
        self._below: dict[Path, None] = {}  # folders below the workspace in which work was done
        self._workspace = workspace
        self._memory_file = memory_file
        self._providers = Providers([p for p in providers if not _always_asked(p)])
        self._always_asked = Providers([p for p in providers if _always_asked(p)])
        self._faulty: Mapping[str, str] = {}  # problems of memory files, at the last reading
        self._remembered: tuple[ContextBlock, ...] = ()

    async def gather(self) -> Surroundings:
        """The memory files that apply, and the texts of the providers, in their order."""
        memory, context = await asyncio.gather(self.read_memory(), self._providers.asked())
        return Surroundings(memory, await self._masked(context), frozenset(self.troubles))

    def go_to(self, paths: Sequence[str]) -> bool:
        """Note that work is done at these paths: from now on the memory files of their folders apply. True where a folder is
        new."""
        new = [folder for folder in folders_below(self._workspace, paths) if folder not in self._below]
        self._below.update(dict.fromkeys(new[: MAX_FOLDERS - len(self._below)]))
        return bool(new)

    async def read_memory(self) -> tuple[ContextBlock, ...]:
        """The texts of the memory files that apply; those of the last reading, where this one takes too long."""
        load = partial(load_memory, self._workspace, self._memory_file, also=self._also, below=tuple(self._below))
        reading = asyncio.to_thread(load)
        try:
            memory = await asyncio.wait_for(reading, MEMORY_TIMEOUT_S)
        except TimeoutError:
            self._faulty = {
                "memory files": f"could not be read within {MEMORY_TIMEOUT_S:g} s; what they said last is used"
            }
            return self._remembered
        self._faulty = memory.problems
        self._remembered = await self._masked(memory.blocks)
        return self._remembered

    async def every_request(self) -> tuple[ContextBlock, ...]:
        """The texts of the providers that are called for every request."""
        return await self._masked(await self._always_asked.asked())

    async def _masked(self, blocks: Sequence[ContextBlock]) -> tuple[ContextBlock, ...]:
        if not blocks:
            return ()
        texts = await asyncio.to_thread(lambda: [self._mask(block.text) for block in blocks])
        return tuple(msgspec.structs.replace(b, text=text) for b, text in zip(blocks, texts, strict=True))

    @property
    def troubles(self) -> Mapping[str, str]:
        """The problems of memory files, and of providers that were late or failed at the last call, by source."""
        return {**self._faulty, **self._providers.troubles, **self._always_asked.troubles}

    async def close(self) -> None:
        """Cancel providers that are still running."""
        await self._providers.close()
        await self._always_asked.close()


def _always_asked(provider: ContextProvider) -> bool:
    """Whether a provider is to be called for every request. Its text is part of that request only."""
    return bool(getattr(provider, "every_request", False))


class Providers:
    """The context providers of one session, with the last text of each, which is used where a provider is late. Two with the same
    `source_id` count as one.

    `troubles` says which providers were late or failed at the last call, and why. A late provider goes on running, and its text
    counts for the next request.
    """

    def __init__(self, providers: Sequence[ContextProvider]) -> None:
        self._providers = tuple(providers)
        self.troubles: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[str]] = {}

    async def asked(self, deadline: float = PROVIDER_TIMEOUT_S) -> tuple[ContextBlock, ...]:
        """Call all providers and return their texts in their order, after at most `deadline` seconds, without empty ones.

        Errors of providers are not raised. When the caller is cancelled, providers go on until `close`.
        """
        tasks = {p.source_id: self._start(p) for p in self._providers}
        self.troubles = {}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=deadline)
        for source_id, task in tasks.items():
            self._keep_result(source_id, task, deadline)
        return tuple(ContextBlock(s, self._said[s]) for s in tasks if self._said.get(s, "").strip())

    async def close(self) -> None:
        """Cancel providers that are still running."""
        tasks = list(self._running.values())
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, provider: ContextProvider) -> asyncio.Task[str]:
        """The running task of a provider: the one that was late before, else a new one. The text of a late one that has ended is
        kept."""
        task = self._running.get(provider.source_id)
        if task is not None and task.done():
            self._keep_result(provider.source_id, task, 0.0)
            task = None
        if task is None:
            task = self._running[provider.source_id] = asyncio.ensure_future(provider.provide())
        return task

    def _keep_result(self, source_id: str, task: asyncio.Task[str], deadline: float) -> None:
        """Store the result of a task: its text, its failure, or that it is late. Concurrent requests may each do so for one
        task."""
        if not task.done():
            self.troubles[source_id] = f"took more than {deadline:g} s; what it said last is used"
            return
        if self._running.get(source_id) is task:
            del self._running[source_id]
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error:
            self.troubles[source_id] = f"failed ({error or 'cancelled'}); what it said last is used"
        else:
            self._said[source_id] = task.result()
