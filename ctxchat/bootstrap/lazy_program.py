"""A stand-in for the program that the interface gets immediately: whatever is slow to import or open waits until it is first
used, after the first frame. Implements `tui.services.Services`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ctxchat.bootstrap.flags import Flags, in_force, settings_from
from ctxchat.bootstrap.workspace import sandbox_of, workspace_of
from ctxchat.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import CoroutineType

    from ctxchat.bootstrap.history_import import Following
    from ctxchat.bootstrap.program import Program
    from ctxchat.config.effective import Loaded
    from ctxchat.core.secrets import Masking
    from ctxchat.importing.outcome import ImportNews
    from ctxchat.tools.mcp.host import ShowLogin, ToolReply
    from ctxchat.tools.mcp.protocol import OfferedResource
    from ctxchat.tools.mcp.server import ServerRow

IMPORT_SWITCH_INTERVAL_S = 0.0005
"""Python's thread switch interval during the import; with the default of 0.005 each key would wait several times as long."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def later(
    verb: Callable[[Program], Callable[_P, Awaitable[_T]]],
) -> Callable[Concatenate[LazyProgram, _P], CoroutineType[Any, Any, _T]]:
    """A method that waits for the program, then calls the method of the program that `verb` returns."""

    async def call(lazy: LazyProgram, *args: _P.args, **named: _P.kwargs) -> _T:
        return await verb(await lazy.program())(*args, **named)

    return call


class LazyProgram:
    """A `Program` that is imported and started on first use. Raises UsageError for a missing folder or settings file.

    The garbage collector is off from here until the program is imported, since an import creates objects that stay.
    """

    def __init__(self, flags: Flags) -> None:
        gc.disable()
        self._flags = flags
        self.workspace = workspace_of(flags.cwd)
        self.loaded = self.load_settings()
        self.settings = in_force(self.loaded.settings, flags)[0]
        # Runs a process and waits for it, in parallel with the imports that follow.
        self._sandbox = ThreadPoolExecutor(1).submit(sandbox_of, self.settings, self.workspace)
        self._starting = asyncio.Lock()
        self._closed = False
        self._running: Program | None = None
        self._following: Following | None = None
        self._end = AsyncExitStack()

    def load_settings(self) -> Loaded:
        """The settings currently on disk, overridden by the flags. Raises UsageError."""
        return settings_from(self._flags, self.workspace)

    @property
    def settings_file(self) -> Path:
        """The file in which the person's edits are stored."""
        return self.loaded.files[0]

    def adopt(self, loaded: Loaded) -> None:
        """Use edited settings for sessions opened from now on."""
        self.loaded = loaded
        if self._running:
            self._running.adopt(loaded)

    @property
    def notices(self) -> Sequence[str]:
        """Sentences to show to the person at the start."""
        return self.loaded.notices

    @property
    def sandboxed(self) -> bool:
        """Whether shell commands run in a sandbox."""
        return bool(self._sandbox.result().kind)

    @property
    def masking(self) -> Masking:
        """Masks secrets, and counts what was masked since the start. Available only once a session is open."""
        assert self._running
        return self._running.masking

    branch = later(lambda program: program.branch)
    open = later(lambda program: program.open)
    sessions = later(lambda program: program.sessions)
    glance = later(lambda program: program.glance)
    journal_news = later(lambda program: program.journal_news)
    delete = later(lambda program: program.delete)
    fork = later(lambda program: program.fork)
    hand_off = later(lambda program: program.hand_off)
    search = later(lambda program: program.search)
    indexed = later(lambda program: program.indexed)
    group = later(lambda program: program.group)
    models = later(lambda program: program.models)
    first_look = later(lambda program: program.first_look)
    importable = later(lambda program: program.importable)
    first_found = later(lambda program: program.first_found)
    mcp_servers = later(lambda program: program.mcp_servers)
    warm_up = later(lambda program: program.warm_up)

    async def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
        """Import sessions of other agents in a separate process. Raises CtxchatError."""
        from ctxchat.bootstrap.history_import import run_import

        async with aclosing(run_import(path)) as news:
            async for each in news:
                yield each

    async def following(self) -> AsyncGenerator[ImportNews, None]:
        """Import new and longer sessions of other agents in a separate process. Raises CtxchatError."""
        from ctxchat.bootstrap.history_import import Following

        if self._following is None:
            self._following = Following((await self.program()).database)
        async with aclosing(self._following.bring_new()) as news:
            async for each in news:
                yield each

    async def may_offer_following(self) -> bool:
        """Whether the person has not been asked yet to import new sessions of other agents from now on."""
        from ctxchat.bootstrap import history_import

        return await history_import.may_offer_following((await self.program()).database)

    async def following_answered(self) -> None:
        """Remember that the person was asked that, so as not to ask again. Raises StorageError."""
        from ctxchat.bootstrap import history_import

        await history_import.following_answered((await self.program()).database)

    async def switch_server(self, name: str) -> ServerRow:
        """Switch an MCP server on where it is off or has failed, else off; its new state. Raises UsageError for an unknown
        server."""
        return await (await self.program()).servers.switch(name)

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        """Restart an MCP server so that the person can log in by what `show` displays; its new state. Raises UsageError where it
        takes no login."""
        return await (await self.program()).servers.log_in(name, show)

    async def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        """The resources that each configured MCP server lists; none for a server that is not running."""
        return (await self.program()).servers.resources

    async def read_resource(self, server: str, uri: str) -> ToolReply:
        """A resource by its URI. Raises UsageError for an unknown server, and ToolError."""
        return await (await self.program()).servers.read_resource(server, uri)

    async def close(self) -> None:
        """Close the program for good: later calls raise UsageError. Safe to call twice."""
        self._closed = True
        async with self._starting:  # a start under way finishes first, or was cancelled
            self._running = None
            await self._end.aclose()

    async def program(self) -> Program:
        """The program, as soon as it is imported and its store is open. Raises UsageError once it was closed."""
        async with self._starting:
            if self._closed:
                raise UsageError("ctxchat is being left.")
            if self._running is None:
                kind = await asyncio.to_thread(_program_class)
                self._running = await self._end.enter_async_context(kind.started(self._flags, self.loaded))
            return self._running


def _program_class() -> type[Program]:
    """Import `Program`, in a thread, while the person types the first keys: it takes as long as all imports before it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(IMPORT_SWITCH_INTERVAL_S)
    try:
        from ctxchat.bootstrap.program import Program
    finally:
        sys.setswitchinterval(before)
        gc.freeze()  # imported objects stay to the end, so the collector need not visit them
        gc.enable()
    return Program
