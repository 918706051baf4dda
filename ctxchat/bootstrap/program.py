"""A running program: settings in force, the store, the models, and sessions opened over them. Fulfils `tui.services.Services`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from ctxchat.agent.session import Session
from ctxchat.bootstrap.agents import in_force
from ctxchat.bootstrap.flags import Flags, settings_from
from ctxchat.bootstrap.opening import Opening
from ctxchat.bootstrap.shared import Shared
from ctxchat.bootstrap.start import notices_of, workspace_of
from ctxchat.config import paths
from ctxchat.core.messages import Group
from ctxchat.core.search import Hit, Scope
from ctxchat.models.discovery import FoundModel, discover
from ctxchat.models.offline import OFFLINE_NAME, OFFLINE_WINDOW
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.sessions import SessionRow


class Program(Shared):
    """Everything one start of ctxchat does, for one workspace. Made by `started`, closed at its end."""

    @classmethod
    @asynccontextmanager
    async def started(cls, flags: Flags) -> AsyncGenerator[Program, None]:
        """A program for as long as the block lasts. Raises UsageError and StorageError."""
        workspace = workspace_of(flags.cwd)
        loaded = settings_from(flags, workspace)
        program = cls(flags, loaded, workspace, await asyncio.to_thread(Database, paths.data_dir()))
        try:
            yield program
        finally:
            await program.close()

    # ── values ──

    def use_agent(self, name: str) -> None:
        """Sessions opened from now on are this agent's; without a name, the one the settings name. Raises UsageError."""
        in_force(self.loaded.settings, self.flags, name)
        self.agent = name

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know at the start, a sentence each."""
        return notices_of(self.loaded)

    @property
    def sandboxed(self) -> bool:
        """Shell commands run in a sandbox."""
        return bool(self.sandbox.kind)

    # ── sessions ──

    async def open(self, session_id: str = "", *, interactive: bool = True) -> Session:
        """A new session, or a stored one by a unique beginning of its id. One that is open for writing elsewhere opens
        read-only. Raises UsageError and StorageError."""
        return await Opening(self, interactive).open(session_id)

    async def sessions(self) -> Sequence[SessionRow]:
        """All stored sessions, the one used last first."""
        return await self.database.run(sessions.rows, self.database)

    async def delete(self, session_id: str) -> None:
        """The session and all that belongs to it."""
        await self.database.run(sessions.delete, self.database, session_id)

    async def fork(self, session_id: str, message_id: str = "") -> str:
        """A new session with everything up to a message; its id."""
        return await self.database.run(sessions.fork, self.database, session_id, message_id)

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """Messages of all sessions that hold these words, the best first, `marks` around them. Raises StorageError."""
        database = self.database
        return await database.run(lambda: archive.search(database, query, scope=scope, limit=limit, marks=marks))

    async def group(self, session_id: str, message_id: str) -> Group:
        """The group of a message as it was, from any session. Raises UsageError and StorageError."""
        return await self.database.run(archive.group_of, self.database, session_id, message_id)

    # ── around ──

    async def models(self) -> Sequence[FoundModel]:
        """What can be used from here: the offline assistant, configured models, and what was found."""
        built_in = FoundModel(
            OFFLINE_NAME, "ctxchat", True, OFFLINE_WINDOW.tokens, OFFLINE_WINDOW.source, 0.0, 0.0, "quotes your files"
        )
        found = await discover()
        known = {row.name for row in found}
        configured = [
            FoundModel(name, name.partition("/")[0], True, each.window, "configured", note="in your settings")
            for name, each in self.settings.models.items()
            if name not in known
        ]
        return (built_in, *configured, *found)

    async def warm_up(self) -> None:
        """Start the model process, where the model in force needs it."""
        if not (self.settings.model or OFFLINE_NAME).startswith("offline/"):
            await self.worker.start()

    async def close(self) -> None:
        """End what was started. A second time does nothing."""
        await self.worker.close()
        await asyncio.to_thread(self.database.close)
