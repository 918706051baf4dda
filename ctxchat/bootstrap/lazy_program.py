"""The program as the interface is handed it: at once. All that is slow to import or to open is left until it is first asked
for, which is after the first frame. Fulfils `tui.services.Services`.
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
"""Seconds after which the import lets the interface have a go; with the usual 0.005 each key waits several times as long."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def later(
    verb: Callable[[Program], Callable[_P, Awaitable[_T]]],
) -> Callable[Concatenate[LazyProgram, _P], CoroutineType[Any, Any, _T]]:
    """A method that waits for the program, then calls this method of it."""

    async def call(lazy: LazyProgram, *args: _P.args, **named: _P.kwargs) -> _T:
        return await verb(await lazy.program())(*args, **named)

    return call


class LazyProgram:
    """A `Program` to be. Raises UsageError for a folder or settings file that is not there.

    From here until the program is imported the garbage collector rests: an import makes objects that stay.
    """

    def __init__(self, flags: Flags) -> None:
        gc.disable()
        self._flags = flags
        self.workspace = workspace_of(flags.cwd)
        self.loaded = self.load_settings()
        self.settings = in_force(self.loaded.settings, flags)[0]
        # Tried out beside the imports that follow; it is a process that is started and waited for.
        self._sandbox = ThreadPoolExecutor(1).submit(sandbox_of, self.settings, self.workspace)
        self._starting = asyncio.Lock()
        self._over = False
        self._running: Program | None = None
        self._following: Following | None = None
        self._end = AsyncExitStack()

    def load_settings(self) -> Loaded:
        """The settings as they are on disk now, with the flags on top. Raises UsageError."""
        return settings_from(self._flags, self.workspace)

    @property
    def settings_file(self) -> Path:
        """The file that edits of a person go to."""
        return self.loaded.files[0]

    def adopt(self, loaded: Loaded) -> None:
        """Edited settings, for sessions opened from now on."""
        self.loaded = loaded
        if self._running:
            self._running.adopt(loaded)

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know at the start, a sentence each."""
        return self.loaded.notices

    @property
    def sandboxed(self) -> bool:
        """Shell commands run in a sandbox."""
        return bool(self._sandbox.result().kind)

    @property
    def masking(self) -> Masking:
        """What secrets are masked with, and what was masked since the start. For who has a session open: there is none before."""
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
        """Import sessions of other agents, in a process of its own. Raises CtxchatError."""
        from ctxchat.bootstrap.history_import import run_import

        async with aclosing(run_import(path)) as news:
            async for each in news:
                yield each

    async def following(self) -> AsyncGenerator[ImportNews, None]:
        """Import what is new or has grown, in a process of its own. Raises CtxchatError."""
        from ctxchat.bootstrap.history_import import Following

        if self._following is None:
            self._following = Following((await self.program()).database)
        async with aclosing(self._following.bring_new()) as news:
            async for each in news:
                yield each

    async def may_offer_following(self) -> bool:
        """Nobody was asked yet whether to do so from now on."""
        from ctxchat.bootstrap import history_import

        return await history_import.may_offer_following((await self.program()).database)

    async def following_answered(self) -> None:
        """Somebody was, and is not asked again. Raises StorageError."""
        from ctxchat.bootstrap import history_import

        await history_import.following_answered((await self.program()).database)

    async def switch_server(self, name: str) -> ServerRow:
        """On where it is off or has failed, else off; how it is then. Raises UsageError for one nobody has set up."""
        return await (await self.program()).servers.switch(name)

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        """Start it anew with a person there to log in where it wants that; how it is then. Raises UsageError for one that takes
        no login."""
        return await (await self.program()).servers.log_in(name, show)

    async def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        """What each MCP server of the settings lists; nothing for one that is not up."""
        return (await self.program()).servers.resources

    async def read_resource(self, server: str, uri: str) -> ToolReply:
        """A resource by its address. Raises UsageError for a server nobody has set up, and ToolError."""
        return await (await self.program()).servers.read_resource(server, uri)

    async def close(self) -> None:
        """End what was started, for good: who asks for something later is refused. A second time does nothing."""
        self._over = True
        async with self._starting:  # what is on its way is there first, or was given up
            self._running = None
            await self._end.aclose()

    async def program(self) -> Program:
        """The program, as soon as it is imported and its store is open. Raises UsageError once it was closed."""
        async with self._starting:
            if self._over:
                raise UsageError("ctxchat is being left.")
            if self._running is None:
                kind = await asyncio.to_thread(_program_class)
                self._running = await self._end.enter_async_context(kind.started(self._flags, self.loaded))
            return self._running


def _program_class() -> type[Program]:
    """Its import takes as long as all that was imported before; it is done in a thread, beside the first keys."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(IMPORT_SWITCH_INTERVAL_S)
    try:
        from ctxchat.bootstrap.program import Program
    finally:
        sys.setswitchinterval(before)
        gc.freeze()  # what was imported stays to the end: the collector need not walk it again and again
        gc.enable()
    return Program
