"""The running program: holds the current settings, the store with its daily backup, and the models, and opens sessions.

Implements `tui.services.Services`.
"""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import shlex
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctxchat.agent.model_knowledge import corrected
from ctxchat.agent.session import Session
from ctxchat.bootstrap.flags import Flags, settings_from
from ctxchat.bootstrap.log_file import log_to
from ctxchat.bootstrap.model_choice import Overrides, settings_of, warm_up
from ctxchat.bootstrap.remembered import StoredModelKnowledge, first_look
from ctxchat.bootstrap.servers import address_of
from ctxchat.bootstrap.session_factory import Opening
from ctxchat.bootstrap.shared import Shared, apply_settings
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.config import paths
from ctxchat.config.effective import Loaded
from ctxchat.config.schema.program import Storage
from ctxchat.context.workspace import branch_of
from ctxchat.core.budget import Window
from ctxchat.core.errors import CtxchatError, StorageError, UsageError
from ctxchat.core.messages import Group
from ctxchat.core.ports import EditorFiles
from ctxchat.core.quantities import count
from ctxchat.core.search import Hit, Scope
from ctxchat.models.catalogue import prices
from ctxchat.models.discovery import FirstLook, FoundModel, configured, discover, served_beside
from ctxchat.models.offline import OFFLINE_NAME, OFFLINE_WINDOW
from ctxchat.storage import archive, backups, loading, sessions
from ctxchat.storage.archive import LastSaid
from ctxchat.storage.chat_import import import_file
from ctxchat.storage.database import Database
from ctxchat.storage.sessions import SessionRow
from ctxchat.tools.mcp.server import ServerRow

if TYPE_CHECKING:
    from ctxchat.importing.outcome import Importable
    from ctxchat.tools.mcp.host import ShowLogin

QUIET_AFTER_S = 30.0
"""Seconds after the start until the backup: by then everything has been drawn and loaded."""

SMALL_STORE_BYTES = 16_000_000
"""Bytes up to which a store not yet backed up is copied at the end, within some hundredths of a second."""


class DailyBackup:
    """Makes the daily backup of the store during one run of the program."""

    def __init__(self, database: Database, settings: Storage) -> None:
        self._database, self._settings = database, settings
        self._stop = threading.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Back up in the background while the block runs, or at its end where that comes too early."""
        task = asyncio.create_task(self._later(), name="backup")
        try:
            yield
        finally:
            self._stop.set()
            early = not task.done()
            task.cancel()
            await asyncio.wait({task})
            if early and self._database.path.stat().st_size < SMALL_STORE_BYTES:
                self._stop = threading.Event()
                await asyncio.to_thread(self._back_up)

    async def _later(self) -> None:
        await asyncio.sleep(QUIET_AFTER_S)
        await asyncio.to_thread(self._back_up)

    def _back_up(self) -> None:
        kept, max_bytes = self._settings.backups, self._settings.backups_mb * 1_000_000
        with suppress(StorageError, OSError, backups.Stopped):  # tried again at the next start
            if backups.is_due(self._database, kept):
                backups.make_daily(self._database, kept, max_bytes, self._stop)


INDEXING_PAUSE_S = 0.05
"""Seconds between two short steps of indexing, while messages wait to be added to the search index."""

INDEXING_INTERVAL_S = 5.0
"""Seconds from the start to the first check whether messages wait to be indexed, and between two checks."""


@asynccontextmanager
async def indexing(database: Database) -> AsyncGenerator[None, None]:
    """Complete the search index in the background while the block runs: it may have been rebuilt, or much was imported."""

    async def complete() -> None:
        pause = INDEXING_INTERVAL_S
        while True:
            await asyncio.sleep(pause)
            pause = INDEXING_PAUSE_S if await database.run(database.index_pending) else INDEXING_INTERVAL_S

    task = asyncio.create_task(complete(), name="search index")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


MAX_COUNTED_TOKENS = 10_000_000
"""Tokens of an imported session that are counted right away, in some seconds; for longer ones, which exceed any window, the
rough estimate stays."""

SERVERS_TIMEOUT_S = 15.0
"""Seconds that MCP servers have to start before their state is listed."""


_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # parameters of glibc's mallopt
_MMAP_THRESHOLD_BYTES = 128 * 1024  # glibc's initial value


def hold_no_freed_memory() -> None:
    """Make glibc return large blocks to the system when they are freed, and share one heap among all threads.

    By default glibc raises its threshold for such blocks once one was freed and keeps later ones in its heaps, one for each
    thread: every pass over a long session would leave permanent holes there. Does nothing on other systems.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            libc = ctypes.CDLL(None)
            libc.mallopt(_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
            libc.mallopt(_ARENA_MAX, 1)


_OTHERS_HOOKS = "told of other agents' hooks"
"""The key under which the store remembers which hooks of other agents the person was told of."""


class Program(Shared):
    """One run of ctxchat in one workspace. Created by `started`, and closed at its end."""

    @classmethod
    @asynccontextmanager
    async def started(cls, flags: Flags, loaded: Loaded | None = None) -> AsyncGenerator[Program, None]:
        """A program that runs until the block ends. `loaded` are the settings, if they have been read already. Raises UsageError
        and StorageError."""
        hold_no_freed_memory()
        if flags.log:
            log_to(flags.log)
        workspace = workspace_of(flags.cwd)
        loaded = loaded or settings_from(flags, workspace)
        program = cls(flags, loaded, workspace, await asyncio.to_thread(Database, paths.data_dir()))
        backup = DailyBackup(program.database, loaded.settings.storage)
        try:
            async with backup.running(), indexing(program.database):
                yield program
        finally:
            await program.close()

    # ── values ──

    def adopt(self, loaded: Loaded) -> None:
        """Use edited settings for sessions opened from now on; sessions already open get them by their own `setup`."""
        self.loaded = loaded
        apply_settings(self.masking, self.settings)
        self.servers.start(loaded.settings.mcp)

    @property
    def notices(self) -> Sequence[str]:
        """Sentences to show to the person at the start."""
        return self.loaded.notices

    @property
    def sandboxed(self) -> bool:
        """Whether shell commands run in a sandbox."""
        return bool(self.sandbox.kind)

    async def branch(self) -> str:
        """The git branch of the folder; empty where there is none."""
        return await asyncio.to_thread(branch_of, self.workspace)

    # ── sessions ──

    async def open(
        self,
        session_id: str = "",
        *,
        interactive: bool = True,
        only_read: bool = False,
        keep_empty: bool = False,
        editor: Callable[[str], EditorFiles] | None = None,
    ) -> Session:
        """A new session, or a stored one by its id or a unique prefix of it. A session that is open for writing elsewhere is
        opened read-only, as with `only_read`, which takes no write lock. A session in which nothing was written is deleted when
        it is closed; with `keep_empty` only after a day, since another program knows its id. `interactive`: there is a person who
        can be asked. `editor` returns the open files of the editor connected to the session. Raises UsageError and
        StorageError."""
        self.servers.start(self.settings.mcp)
        missing = () if interactive else await self.servers_awaited()
        opening = Opening(self, interactive, editor=editor)
        session = await opening.open(session_id, only_read=only_read, keep_empty=keep_empty)
        other_folder = await self._begun_elsewhere(session) if interactive and not editor else ()
        session.notices = (*session.notices, *other_folder, *missing, *await self._others_hooks())
        return session

    async def _begun_elsewhere(self, session: Session) -> Sequence[str]:
        """A notice where a stored session was begun in another folder, with the command to continue it there."""
        if not session.state.ledger.groups:
            return ()
        folder = (await self.database.run(sessions.row, self.database, session.id)).folder
        if not folder or folder == str(self.workspace):
            return ()
        there = f"cd {shlex.quote(folder)} && ctxchat --session {session.id}"
        return (
            f"This session was begun in {folder}. Files, memory and rules are those of this folder. There: {there}",
        )

    async def _others_hooks(self) -> Sequence[str]:
        """A notice that hooks of another agent run here, too: shown once, and again whenever they change."""
        hooks = self.loaded.others_hooks
        stamp = hashlib.sha256(repr(hooks).encode()).hexdigest() if hooks else ""
        with suppress(StorageError):  # then the notice is shown again next time
            if stamp == (await self.database.run(self.database.remembered, _OTHERS_HOOKS) or ""):
                return ()
            await self.database.run(self.database.remember, _OTHERS_HOOKS, stamp)
        files = ", ".join(dict.fromkeys(file for file, _ in hooks))
        told = f"{count(len(hooks), 'hook')} of {files} run here, too, in the sandbox unless they say otherwise. "
        return (
            (f'{told}`customizations = "own"` in the settings leaves out what was made for other agents.',)
            if hooks
            else ()
        )

    async def servers_awaited(self) -> Sequence[str]:
        """Wait for starting MCP servers, as long as the settings say; a notice for each whose tools are still missing then."""
        grace = self.settings.tools.mcp_wait
        await self.servers.settled(grace)
        return self.servers.missing(grace)

    async def sessions(self) -> Sequence[SessionRow]:
        """All stored sessions, the most recently used first."""
        return await self.database.run(sessions.rows, self.database)

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        """The last messages of the person and the model in a stored session, oldest first. Raises StorageError."""
        return await self.database.run(archive.glance, self.database, session_id)

    async def journal_news(self, session_id: str, since: int = 0) -> loading.JournalNews:
        """The entries of a stored session's journal after number `since`, whichever program wrote them. Raises StorageError."""
        return await self.database.run(loading.read_news, self.database, session_id, since)

    async def bring_in(self, file: Path, title: str) -> str:
        """Import the chat messages of a file as a new session; its id. Its size is counted as the gauge would, but without the
        tools of MCP servers, which are not started for that. Raises UsageError and StorageError."""
        session = await self.database.run(import_file, self.database, file, title)
        rough = (await self.database.run(sessions.row, self.database, session)).used
        if rough > MAX_COUNTED_TOKENS:
            return session
        with suppress(CtxchatError):  # without a usable model the rough estimate stays
            opened = await Opening(self, interactive=False).open(session, only_read=True)
            try:
                context_usage = await opened.measure()
            finally:
                await opened.close()
            await self.database.run(sessions.store_estimate, self.database, session, context_usage.used)
        return session

    async def delete(self, session_id: str) -> None:
        """Delete a session and all that belongs to it."""
        await self.database.run(sessions.delete, self.database, session_id)

    async def fork(self, session_id: str, message_id: str = "") -> str:
        """Copy a session up to a message (empty: all of it) into a new one; its id."""
        return await self.database.run(sessions.fork, self.database, session_id, message_id)

    async def hand_off(self, session_id: str, title: str) -> str:
        """Begin a new session that continues the work of this one; its id."""
        return await self.database.run(sessions.hand_off, self.database, session_id, title)

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """Messages of all sessions that match these words, best first, each match between `marks`. Raises StorageError."""
        database = self.database
        return await database.run(lambda: archive.search(database, query, scope=scope, limit=limit, marks=marks))

    async def indexed(self) -> float:
        """The share of all messages in the search index, which is built from the newest on: below 1.0 while it is incomplete."""
        return await self.database.run(lambda: self.database.indexed)

    async def group(self, session_id: str, message_id: str) -> Group:
        """The group a message belongs to, as it was recorded, from any session. Raises UsageError and StorageError."""
        return await self.database.run(archive.group_of, self.database, session_id, message_id)

    # ── around ──

    async def models(self) -> Sequence[FoundModel]:
        """The usable models: the offline assistant, configured models, and those discovered."""
        built_in = FoundModel(
            OFFLINE_NAME, "ctxchat", True, OFFLINE_WINDOW.tokens, OFFLINE_WINDOW.source, 0.0, 0.0, "quotes your files"
        )
        found, beside = await asyncio.gather(discover(keyring=True), self._served_beside())
        found = (*beside, *(row for row in found if not beside or row.api_base != beside[0].api_base))
        found_names = {row.name for row in found}
        named = [name for name in self.settings.models if name not in found_names and not name.startswith("offline/")]
        mine = await asyncio.gather(*(self._configured(name) for name in named))
        rows = await self._with_current((built_in, *mine, *found))
        return await asyncio.to_thread(self._with_learned, rows)

    def _with_learned(self, rows: Sequence[FoundModel]) -> Sequence[FoundModel]:
        """The rows with context windows corrected by what refused requests have taught, as a session would use them."""
        knowledge = StoredModelKnowledge(self.database)
        windows = [corrected(Window(row.window, row.window_source), knowledge.load(row.name).window) for row in rows]
        return [
            msgspec.structs.replace(row, window=window.tokens, window_source=window.source)
            for row, window in zip(rows, windows, strict=True)
        ]

    async def _configured(self, name: str) -> FoundModel:
        try:
            return await configured(settings_of(name, self.settings, Overrides()))
        except UsageError as problem:
            return FoundModel(name, name.partition("/")[0], False, 0, "configured", note=str(problem))

    async def _served_beside(self) -> Sequence[FoundModel]:
        """The models of the server that the command line names."""
        if not self.flags.api_base:
            return ()
        try:
            settings = settings_of(self.settings.model, self.settings, self.overrides("", ""))
            rows = await served_beside(settings)
        except UsageError:
            return ()
        self.served_beside = frozenset(row.name for row in rows)
        return rows

    async def _with_current(self, rows: Sequence[FoundModel]) -> Sequence[FoundModel]:
        """The rows with the current model as the command line sets it; where no row has its name, it is added first."""
        try:
            model = self.model()
        except UsageError:
            return rows
        window = await model.window()
        if all(row.name != model.name for row in rows):
            known = await asyncio.to_thread(prices, model.name)
            rates = known.rates if known else None
            name, source = model.name, window.source
            provider = name.partition("/")[0]
            return (
                FoundModel(
                    name,
                    provider,
                    True,
                    window.tokens,
                    source,
                    rates and rates.input,
                    rates and rates.output,
                    "in force",
                ),
                *rows,
            )
        replace = msgspec.structs.replace
        return [
            replace(row, window=window.tokens, window_source=window.source) if row.name == model.name else row
            for row in rows
        ]

    async def first_look(self) -> FirstLook:
        """What to ask or tell the person where no model is set. Queries the usual ports on this machine only."""
        return await first_look(self.settings.model, self.database, discover)

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        """Sessions of other agents that are not imported yet: in a file or folder, or without a path in their usual folders."""
        from ctxchat.bootstrap import history_import  # not needed to start

        return await history_import.importable(self.database, path)

    async def first_found(self) -> Sequence[Importable]:
        """Importable sessions in the usual folders, the first time that there are any; nothing from then on."""
        from ctxchat.bootstrap import history_import

        return await history_import.first_found(self.database)

    async def mcp_servers(self, wait: bool = False, only: str = "") -> Sequence[ServerRow]:
        """The state of the MCP servers, or of the one named `only`. With `wait` they are started first, and the state is returned
        when all have started or failed, or after `SERVERS_TIMEOUT_S`."""
        if wait:
            self.servers.start({name: server for name, server in self.settings.mcp.items() if only in {"", name}})
            await self.servers.settled(SERVERS_TIMEOUT_S, all=True)
        return [row for row in self.servers.rows if only in {"", row.name}]

    async def log_in(self, name: str, show: ShowLogin) -> ServerRow:
        """Start only this MCP server, so that the person can log in by what `show` displays. Raises UsageError where it takes no
        login."""
        server = self.settings.mcp.get(name)
        self.servers.start(
            {name: msgspec.structs.replace(server, enabled=False)} if server else {}
        )  # `log_in` starts it
        return await self.servers.log_in(name, show)

    async def log_out(self, name: str) -> bool:
        """Delete the stored login to an MCP server; False where there is none. Raises UsageError for an unknown server."""
        if name not in self.settings.mcp:
            raise UsageError(f"There is no MCP server {name!r}.", "`ctxchat mcp list` shows them.")
        return await asyncio.to_thread(self.servers.delete_login, address_of(self.settings.mcp[name]).url)

    async def warm_up(self, model: str = "") -> None:
        """Start the transport of this model (empty: the current one) ahead of the first request."""
        with suppress(UsageError):  # reported when a session is opened
            await warm_up(self.model(model))

    async def close(self) -> None:
        """Close servers, transports, telemetry and the store. Safe to call twice."""
        await self.servers.close()
        await self.transports.close()
        if telemetry := self.__dict__.get("telemetry"):  # not created just to be closed
            await telemetry.close()
        await asyncio.to_thread(self.database.close)
