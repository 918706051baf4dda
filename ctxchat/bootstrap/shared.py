"""What every session of one start shares: flags and settings, the folder, the store, the ways to models, the clock, the
masking of secrets.

Opens no session itself and knows no screen.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ctxchat.bootstrap import LAST_HERE
from ctxchat.bootstrap.flags import Flags, in_force
from ctxchat.bootstrap.model_choice import Overrides, Transports, model_port
from ctxchat.bootstrap.servers import Servers
from ctxchat.bootstrap.workspace import sandbox_of
from ctxchat.config import effective as settings_files
from ctxchat.config.schema import Settings
from ctxchat.config.trust import unchanged
from ctxchat.context.workspace import GitCommand
from ctxchat.core.errors import UsageError
from ctxchat.core.events import Stamped
from ctxchat.core.masked_record import MaskedRecord
from ctxchat.core.ports import ModelPort
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.secrets import Masking
from ctxchat.models import tokenizers
from ctxchat.models.offline import OFFLINE_NAME
from ctxchat.models.process import ModelProcess
from ctxchat.models.provider_lists import ProviderLists
from ctxchat.own_processes import find_program
from ctxchat.storage import sessions
from ctxchat.storage.database import Database, utc_now
from ctxchat.storage.private_files import write_private
from ctxchat.tools.sandbox import Sandbox

if TYPE_CHECKING:
    from ctxchat.bootstrap.telemetry import Telemetry


class SystemClock:
    """The machine's clock."""

    now = staticmethod(utc_now)
    seconds = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)


MASKING_KEY_FILE = "masking.key"
MASKING_KEY_BYTES = 32


def masking_of(data: Path, settings: Settings) -> Masking:
    """With the key that lies in the data folder; one is made where there is none. A folder that takes none costs marks that stay
    the same from one start to the next. Reads and writes a file."""
    path = data / MASKING_KEY_FILE
    key = b""
    with suppress(OSError):
        if not path.exists():
            with suppress(FileExistsError):  # another window was quicker
                write_private(path, os.urandom(MASKING_KEY_BYTES))
        key = path.read_bytes()[:MASKING_KEY_BYTES]
    masking = Masking(key if len(key) == MASKING_KEY_BYTES else os.urandom(MASKING_KEY_BYTES))
    adapt(masking, settings)
    return masking


def masked_record(masking: Masking) -> MaskedRecord:
    """What of a record a model is told, by what the settings say now."""
    return MaskedRecord(masking, lambda: (masking.on, masking.allowed))


def adapt(masking: Masking, settings: Settings) -> None:
    """From now on by these settings."""
    masking.on, masking.allowed = settings.secrets.mask, settings.secrets.allow


class Shared:
    """Values to read, and what is made from them on demand."""

    def __init__(self, flags: Flags, loaded: settings_files.Loaded, workspace: Path, database: Database) -> None:
        self.flags = flags
        self.loaded = loaded
        self.workspace = workspace
        self.database = database
        lists = ProviderLists(database.folder / "models")
        self.transports = Transports(ModelProcess(database.folder / "worker.log"), lists=lists)
        tokenizers.keep_files(database.folder / "tables")
        self.masking = masking_of(database.folder, self.settings)
        self.served_beside: frozenset[str] = frozenset()
        self.followers: dict[str, Callable[[Stamped], None]] = {}
        """Who is told each event of the sub-agents of a session, by its id."""
        self.servers = Servers(workspace, database.folder / "mcp", self._objection)

    @property
    def settings(self) -> Settings:
        """As in force for the agent they name."""
        return in_force(self.loaded.settings, self.flags)[0]

    @cached_property
    def sandbox(self) -> Sandbox:
        """What shell commands run in; tried out the first time it is asked for."""
        return sandbox_of(self.settings, self.workspace)

    @cached_property
    def telemetry(self) -> Telemetry | None:
        """Who reports what happens, where the settings name a collector. Raises UsageError where the extra for it is missing."""
        if not self.settings.telemetry:
            return None
        try:
            from ctxchat.bootstrap.telemetry import Telemetry
        except ImportError as missing:
            raise UsageError(
                f"`telemetry` is set, and its packages are missing ({missing.name}).", 'Install "ctxchat[otel]".'
            ) from missing
        return Telemetry(self.settings.telemetry)

    @cached_property
    def git(self) -> GitCommand | None:
        """What asks git about the workspace; None where it could not be kept from running what a repository names."""
        program = find_program("git", str(self.workspace))

        def command(arguments: Sequence[str]) -> Sequence[str]:
            return self.sandbox.wrap([program, *arguments], str(self.workspace), read_only=True)

        return command if program and self.sandbox.kind else None

    def unchanged(self) -> bool:
        """What the person trusted of this folder is in force, and its files are what they were. Reads them."""
        return self.loaded.trusted and unchanged(self.workspace, self.loaded.project)

    def _objection(self, server: str) -> str:
        """A project's server runs outside of the sandbox: the files it names are looked at each time before it does."""
        if server not in self.loaded.project.held.get("mcp", {}) or self.unchanged():
            return ""
        return "Not started: a file of what you trusted in this folder has changed. /trust shows what."

    def prompts(self) -> Sequence[PromptFile]:
        """The skills and command files that count now, and the skills that the servers serve."""
        return [*self.loaded.prompts, *self.servers.skills]

    @property
    def trusted(self) -> bool:
        """The person trusts this folder's own settings as they are."""
        return self.loaded.trusted

    def overrides(self, name: str, first: str) -> Overrides:
        """What the command line says of a model, where `first` is the one to begin with: another one that the server it names was
        seen to have is asked there, too."""
        given = Overrides(self.flags.api_base, self.flags.api_key_env, self.flags.window)
        if name == first:
            return given
        return Overrides(given.api_base, given.api_key_env) if name in self.served_beside else Overrides()

    def model(self, name: str = "", overrides: Overrides | None = None, settings: Settings | None = None) -> ModelPort:
        """A model by name; without one that of the flags and settings, else the offline assistant. What the flags say of address,
        key and window is about the model of the flags and settings only, unless `overrides` are handed in; `settings` are an
        agent's where it has its own. Raises UsageError."""
        settings = settings or self.settings
        first = settings.model or OFFLINE_NAME
        chosen = name or first
        if overrides is None:
            overrides = self.overrides(chosen, first)
        return model_port(chosen, settings, overrides, self.transports)

    async def find(self, prefix: str) -> str:
        """A session's id from its beginning; LAST_HERE for the one used last in this folder, none for that of any. Raises
        UsageError."""
        if prefix not in {"", LAST_HERE}:
            return await self.database.run(sessions.find_session, self.database, prefix)
        folder = str(self.workspace) if prefix else ""
        found = await self.database.run(sessions.latest, self.database, folder)
        if not found:
            where = f"in {folder} " if folder else ""
            raise UsageError(f"There is no session {where}yet.", 'Begin one with `ctxchat` or `ctxchat run "…"`.')
        return found
