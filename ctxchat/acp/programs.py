"""Keeps one program for each pair of a folder and a set of MCP servers that an editor opens sessions with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctxchat.acp.settings import EditorServer, servers
from ctxchat.bootstrap.flags import Flags, settings_from
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.config.effective import Loaded
from ctxchat.core.errors import UsageError

if TYPE_CHECKING:
    from ctxchat.bootstrap.program import Program

Key = tuple[Path, bytes]


class Programs:
    """The programs of one connection. `flags` are the command line's options, which hold for all of them."""

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._running: dict[Key, Program] = {}
        self._load: dict[Program, Callable[[], Loaded]] = {}
        self._starting = asyncio.Lock()
        self._end = AsyncExitStack()

    async def program_for(self, cwd: str, given: Sequence[EditorServer] = ()) -> Program:
        """The program for this folder and these servers, with the present settings. Raises UsageError and StorageError."""
        if not Path(cwd).is_absolute():
            raise UsageError(f"cwd: {cwd or 'empty'} is no absolute path.")
        flags = msgspec.structs.replace(self._flags, cwd=cwd)
        workspace = workspace_of(cwd)

        def load() -> Loaded:
            loaded = settings_from(flags, workspace)
            mcp = {**loaded.settings.mcp, **servers(given, loaded.settings.mcp)}
            return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, mcp=mcp))

        loaded = await asyncio.to_thread(load)
        key = workspace, msgspec.json.encode(servers(given, {}))
        async with self._starting:
            if running := self._running.get(key):
                await self.renew(running)
                return running
            kind = await asyncio.to_thread(_program)
            program = self._running[key] = await self._end.enter_async_context(kind.started(flags, loaded))
            self._load[program] = load
            return program

    async def renew(self, program: Program) -> bool:
        """Adopt settings edited since the last time; True where there were any. Open sessions adopt them by `Setup.adapt`."""
        loaded = await asyncio.to_thread(self._load[program])
        edited = loaded != program.loaded
        if edited:
            program.adopt(loaded)
        return edited

    async def warm_up(self) -> None:
        """Import the modules that a session needs, in a thread."""
        await asyncio.to_thread(_program)

    async def close(self) -> None:
        """End all programs."""
        await self._end.aclose()


def _program() -> type[Program]:
    from ctxchat.bootstrap.program import Program

    return Program
