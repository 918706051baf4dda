"""A running program: settings in force, the store and its daily copy, the models, and sessions opened over them.

Fulfils `tui.services.Services`.
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
"""Seconds after the start: by then everything has been drawn and loaded."""

SMALL_STORE_BYTES = 16_000_000
"""Bytes of a store that is copied at the end, in some hundredths of a second."""


class DailyBackup:
    """For one start of the program."""

    def __init__(self, database: Database, settings: Storage) -> None:
        self._database, self._settings = database, settings
        self._stop = threading.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """For as long as the block lasts."""
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
        kept, most = self._settings.backups, self._settings.backups_mb * 1_000_000
        with suppress(StorageError, OSError, backups.Stopped):  # tried again at the next start
            if backups.is_due(self._database, kept):
                backups.make_daily(self._database, kept, most, self._stop)


INDEXING_PAUSE_S = 0.05
"""Seconds between two short strokes in which messages that wait are taken into the search index."""

INDEXING_INTERVAL_S = 5.0
"""Seconds after the start, and between two looks whether some wait."""


@asynccontextmanager
async def indexing(database: Database) -> AsyncGenerator[None, None]:
    """For as long as the block lasts the search index is completed beside it, where it was made anew or much was imported."""

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
"""Tokens of what is brought in that are counted at once, in some seconds; more than any window stays a rough estimate."""

SERVERS_TIMEOUT_S = 15.0
"""Seconds that MCP servers have to come up where somebody asks how they are."""


_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of glibc's mallopt
_MMAP_THRESHOLD_BYTES = 128 * 1024  # bytes; what glibc begins with


def hold_no_freed_memory() -> None:
    """From now on each large block is the system's again when it is freed, and smaller ones are used again by any thread. Left
    alone, glibc keeps ever larger ones once one was freed, and what lies between them holds them: each pass over a long session
    would leave holes for good, in a heap of each thread. On other systems nothing is changed."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            libc = ctypes.CDLL(None)
            libc.mallopt(_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
            libc.mallopt(_ARENA_MAX, 1)


_OTHERS_HOOKS = "told of other agents' hooks"


class Program(Shared):
    """Everything one start of ctxchat does, for one workspace. Made by `started`, closed at its end."""

    @classmethod
    @asynccontextmanager
    async def started(cls, flags: Flags, loaded: Loaded | None = None) -> AsyncGenerator[Program, None]:
        """A program for as long as the block lasts; `loaded` are the settings where they have been read already. Raises
        UsageError and StorageError."""
        hold_no_freed_memory()
        if flags.log:
            log_to(flags.log)
        workspace = workspace_of(flags.cwd)
        loaded = loaded or settings_from(flags, workspace)
        program = cls(flags, loaded, workspace, await asyncio.to_thread(Database, paths.data_dir()))
        copying = DailyBackup(program.database, loaded.settings.storage)
        try:
            async with copying.running(), indexing(program.database):
                yield program
        finally:
            await program.close()

    # ── values ──

    def adopt(self, loaded: Loaded) -> None:
        """Edited settings, for sessions opened from now on; those that are open are told by their own `setup`."""
        self.loaded = loaded
        apply_settings(self.masking, self.settings)
        self.servers.start(loaded.settings.mcp)

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know at the start, a sentence each."""
        return self.loaded.notices

    @property
    def sandboxed(self) -> bool:
        """Shell commands run in a sandbox."""
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
        """A new session, or a stored one by a unique beginning of its id. One that is open for writing elsewhere opens
        read-only, as with `only_read`, which takes it from nobody. One in which nothing is written is not kept when it is closed,
        but for a day with `keep_empty`: somebody else has its id. `editor` gives the files of the editor that has it open. Raises
        UsageError and StorageError."""
        self.servers.start(self.settings.mcp)
        missing = () if interactive else await self.servers_awaited()
        opening = Opening(self, interactive, editor=editor)
        session = await opening.open(session_id, only_read=only_read, keep_empty=keep_empty)
        begun = await self._begun_elsewhere(session) if interactive and not editor else ()
        session.notices = (*session.notices, *begun, *missing, *await self._others_hooks())
        return session

    async def _begun_elsewhere(self, session: Session) -> Sequence[str]:
        """That a stored session is of another folder than the one it is opened in, and how to go on with it there."""
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
        """That hooks of another agent run here, too: a sentence, the first time and whenever they are others."""
        hooks = self.loaded.others_hooks
        stamp = hashlib.sha256(repr(hooks).encode()).hexdigest() if hooks else ""
        with suppress(StorageError):  # then it is told once more the next time
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
        """Wait for MCP servers on their way, as long as the settings say; a sentence for each whose tools are not there then."""
        grace = self.settings.tools.mcp_wait
        await self.servers.settled(grace)
        return self.servers.missing(grace)

    async def sessions(self) -> Sequence[SessionRow]:
        """All stored sessions, the one used last first."""
        return await self.database.run(sessions.rows, self.database)

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        """What you and the model said last in a stored session, in its order. Raises StorageError."""
        return await self.database.run(archive.glance, self.database, session_id)

    async def journal_news(self, session_id: str, since: int = 0) -> loading.JournalNews:
        """What came to a stored session's journal behind entry `since`, whoever works on it. Raises StorageError."""
        return await self.database.run(loading.read_news, self.database, session_id, since)

    async def bring_in(self, file: Path, title: str) -> str:
        """A new session with the chat messages of a file; its id. Lists say of it what the gauge says, but for the tools of MCP
        servers, which are not started for that. Raises UsageError and StorageError."""
        session = await self.database.run(import_file, self.database, file, title)
        rough = (await self.database.run(sessions.row, self.database, session)).used
        if rough > MAX_COUNTED_TOKENS:
            return session
        with suppress(CtxchatError):  # a model that cannot be had: it stays a rough estimate
            opened = await Opening(self, interactive=False).open(session, only_read=True)
            try:
                context_usage = await opened.measure()
            finally:
                await opened.close()
            await self.database.run(sessions.store_estimate, self.database, session, context_usage.used)
        return session

    async def delete(self, session_id: str) -> None:
        """The session and all that belongs to it."""
        await self.database.run(sessions.delete, self.database, session_id)

    async def fork(self, session_id: str, message_id: str = "") -> str:
        """A new session with everything up to a message; its id."""
        return await self.database.run(sessions.fork, self.database, session_id, message_id)

    async def hand_off(self, session_id: str, title: str) -> str:
        """A new session that goes on with the work of this one; its id."""
        return await self.database.run(sessions.hand_off, self.database, session_id, title)

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """Messages of all sessions that hold these words, the best first, `marks` around them. Raises StorageError."""
        database = self.database
        return await database.run(lambda: archive.search(database, query, scope=scope, limit=limit, marks=marks))

    async def indexed(self) -> float:
        """The share of all messages that a search finds by now, the newest first: below 1.0 while the index is being made."""
        return await self.database.run(lambda: self.database.indexed)

    async def group(self, session_id: str, message_id: str) -> Group:
        """The group of a message as it was, from any session. Raises UsageError and StorageError."""
        return await self.database.run(archive.group_of, self.database, session_id, message_id)

    # ── around ──

    async def models(self) -> Sequence[FoundModel]:
        """What can be used from here: the offline assistant, configured models, and what was found."""
        built_in = FoundModel(
            OFFLINE_NAME, "ctxchat", True, OFFLINE_WINDOW.tokens, OFFLINE_WINDOW.source, 0.0, 0.0, "quotes your files"
        )
        found, beside = await asyncio.gather(discover(keyring=True), self._served_beside())
        found = (*beside, *(row for row in found if not beside or row.api_base != beside[0].api_base))
        known = {row.name for row in found}
        named = [name for name in self.settings.models if name not in known and not name.startswith("offline/")]
        mine = await asyncio.gather(*(self._configured(name) for name in named))
        rows = await self._with_given((built_in, *mine, *found))
        return await asyncio.to_thread(self._with_learned, rows)

    def _with_learned(self, rows: Sequence[FoundModel]) -> Sequence[FoundModel]:
        """The rows with the windows that refusals have taught, as a session would begin with them."""
        known = StoredModelKnowledge(self.database)
        windows = [corrected(Window(row.window, row.window_source), known.load(row.name).window) for row in rows]
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
        """What else the server has that the command line names."""
        if not self.flags.api_base:
            return ()
        try:
            settings = settings_of(self.settings.model, self.settings, self.overrides("", ""))
            rows = await served_beside(settings)
        except UsageError:
            return ()
        self.served_beside = frozenset(row.name for row in rows)
        return rows

    async def _with_given(self, rows: Sequence[FoundModel]) -> Sequence[FoundModel]:
        """The rows with the model in force among them as the command line has it: one that nobody else names comes first."""
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
        given = msgspec.structs.replace
        return [
            given(row, window=window.tokens, window_source=window.source) if row.name == model.name else row
            for row in rows
        ]

    async def first_look(self) -> FirstLook:
        """What to ask where no model is set, or to say. Asks the usual places on this machine, and nobody else."""
        return await first_look(self.settings.model, self.database, discover)

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        """Sessions of other agents that are not here yet: in a file or folder, or without one in their usual places."""
        from ctxchat.bootstrap import history_import  # no part of a start

        return await history_import.importable(self.database, path)

    async def first_found(self) -> Sequence[Importable]:
        """Those in the usual places, the first time that there are any; nothing from then on."""
        from ctxchat.bootstrap import history_import

        return await history_import.first_found(self.database)

    async def mcp_servers(self, wait: bool = False, only: str = "") -> Sequence[ServerRow]:
        """The MCP servers as they are, or the one named `only`; with `wait` they are started, and told when all are up or have
        failed."""
        if wait:
            self.servers.start({name: one for name, one in self.settings.mcp.items() if only in {"", name}})
            await self.servers.settled(SERVERS_TIMEOUT_S, all=True)
        return [row for row in self.servers.rows if only in {"", row.name}]

    async def log_in(self, name: str, show: ShowLogin) -> ServerRow:
        """Start this MCP server, and no other, with a person there to log in. Raises UsageError for one that takes no login."""
        one = self.settings.mcp.get(name)
        self.servers.start({name: msgspec.structs.replace(one, enabled=False)} if one else {})  # `log_in` starts it
        return await self.servers.log_in(name, show)

    async def log_out(self, name: str) -> bool:
        """Delete what is kept of a login to an MCP server; False where there is nothing. Raises UsageError."""
        if name not in self.settings.mcp:
            raise UsageError(f"There is no MCP server {name!r}.", "`ctxchat mcp list` shows them.")
        return await asyncio.to_thread(self.servers.delete_login, address_of(self.settings.mcp[name]).url)

    async def warm_up(self, model: str = "") -> None:
        """Make ready what this model (without a name, the one in force) is reached through."""
        with suppress(UsageError):  # said where a session opens
            await warm_up(self.model(model))

    async def close(self) -> None:
        """End what was started. A second time does nothing."""
        await self.servers.close()
        await self.transports.close()
        if telemetry := self.__dict__.get("telemetry"):  # never made only to be closed
            await telemetry.close()
        await asyncio.to_thread(self.database.close)
