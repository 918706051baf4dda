"""What all sessions of one program run share: flags, settings, folder, store, model transports, clock and secret masking.

Opens no session, and knows nothing of the interface.
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


def load_masking(data: Path, settings: Settings) -> Masking:
    """The masking of secrets, with the key from the data folder; the key is made where it is missing. Where it cannot be stored,
    the marks in place of secrets differ from one start to the next. Reads and writes a file."""
    path = data / MASKING_KEY_FILE
    key = b""
    with suppress(OSError):
        if not path.exists():
            with suppress(FileExistsError):  # another process made it meanwhile
                write_private(path, os.urandom(MASKING_KEY_BYTES))
        key = path.read_bytes()[:MASKING_KEY_BYTES]
    masking = Masking(key if len(key) == MASKING_KEY_BYTES else os.urandom(MASKING_KEY_BYTES))
    apply_settings(masking, settings)
    return masking


def masked_record(masking: Masking) -> MaskedRecord:
    """The record as a model may see it: secrets masked by the settings in force at that moment."""
    return MaskedRecord(masking, lambda: (masking.on, masking.allowed))


def apply_settings(masking: Masking, settings: Settings) -> None:
    """Mask by these settings from now on."""
    masking.on, masking.allowed = settings.secrets.mask, settings.secrets.allow


class Shared:
    """The shared values, and what is made from them when first asked for."""

    def __init__(self, flags: Flags, loaded: settings_files.Loaded, workspace: Path, database: Database) -> None:
        self.flags = flags
        self.loaded = loaded
        self.workspace = workspace
        self.database = database
        lists = ProviderLists(database.folder / "models")
        self.transports = Transports(ModelProcess(database.folder / "worker.log"), lists=lists)
        tokenizers.keep_files(database.folder / "tables")
        self.masking = load_masking(database.folder, self.settings)
        self.served_beside: frozenset[str] = frozenset()  # other models seen on the server of --api-base
        self.followers: dict[str, Callable[[Stamped], None]] = {}
        """Who is told each event of the sub-agents of a session, by its id."""
        self.servers = Servers(workspace, database.folder / "mcp", self._objection)

    @property
    def settings(self) -> Settings:
        """The settings in force for the agent that they name, with the flags applied."""
        return in_force(self.loaded.settings, self.flags)[0]

    @cached_property
    def sandbox(self) -> Sandbox:
        """The sandbox for shell commands; tested the first time it is asked for."""
        return sandbox_of(self.settings, self.workspace)

    @cached_property
    def telemetry(self) -> Telemetry | None:
        """The telemetry reporter; None where the settings name no collector. Raises UsageError where its packages are missing."""
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
        """How to ask git about the workspace, in the sandbox. None without git or a sandbox: a repository's settings can make git
        run programs."""
        program = find_program("git", str(self.workspace))

        def command(arguments: Sequence[str]) -> Sequence[str]:
            return self.sandbox.wrap([program, *arguments], str(self.workspace), read_only=True)

        return command if program and self.sandbox.kind else None

    def unchanged(self) -> bool:
        """Whether this folder is trusted and its trusted files have not changed since. Reads them."""
        return self.loaded.trusted and unchanged(self.workspace, self.loaded.project)

    def _objection(self, server: str) -> str:
        """Why a server must not start; empty where it may. A project's server runs outside the sandbox, so the files it names are
        checked before each start."""
        if server not in self.loaded.project.held.get("mcp", {}) or self.unchanged():
            return ""
        return "Not started: a file you trusted in this folder has changed. /trust shows what."

    def prompts(self) -> Sequence[PromptFile]:
        """The skills and command files in force, and the skills that MCP servers serve."""
        return [*self.loaded.prompts, *self.servers.skills]

    def overrides(self, name: str, default: str) -> Overrides:
        """Which command-line options apply to a model. All do to the `default` one; address and key also do to others seen on the
        same server."""
        given = Overrides(self.flags.api_base, self.flags.api_key_env, self.flags.window)
        if name == default:
            return given
        return Overrides(given.api_base, given.api_key_env) if name in self.served_beside else Overrides()

    def model(self, name: str = "", overrides: Overrides | None = None, settings: Settings | None = None) -> ModelPort:
        """A model by name; without a name the one of the flags or settings, or the offline assistant. `overrides` replaces what
        the command line says of address, key and window; `settings` are an agent's own. Raises UsageError."""
        settings = settings or self.settings
        default = settings.model or OFFLINE_NAME
        chosen = name or default
        if overrides is None:
            overrides = self.overrides(chosen, default)
        return model_port(chosen, settings, overrides, self.transports)

    async def find(self, prefix: str) -> str:
        """The id of a session by its prefix: LAST_HERE means the last one used in this folder, an empty prefix the last one used
        in any folder. Raises UsageError."""
        if prefix not in {"", LAST_HERE}:
            return await self.database.run(sessions.find_session, self.database, prefix)
        folder = str(self.workspace) if prefix else ""
        found = await self.database.run(sessions.latest, self.database, folder)
        if not found:
            where = f"in {folder} " if folder else ""
            raise UsageError(f"There is no session {where}yet.", 'Begin one with `ctxchat` or `ctxchat run "…"`.')
        return found
