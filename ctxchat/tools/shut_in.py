"""Prepares one command to run in the sandbox: guards the workspace before it, and moves away what it should not leave when it has
ended."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from ctxchat.core.permissions import Grant
from ctxchat.tools.guarding import Guarding
from ctxchat.tools.sandbox import NOTHING, Sandbox
from ctxchat.tools.unreadable import unreadable_paths


class ShutIn:
    """A command that can be started: its `argv` and `environ`. Once it has ended, `taken` are the paths of what it put where it
    could run later, which lies in the folder `kept` now."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], kept: str) -> None:
        self.argv, self.environ, self.kept = argv, environ, kept
        self.taken: tuple[str, ...] = ()


ReadyCommand = AbstractAsyncContextManager[ShutIn]


@asynccontextmanager
async def shut_in(
    sandbox: Sandbox,
    argv: Sequence[str],
    workspace: str,
    environ: Mapping[str, str],
    *,
    session_folder: str = "",
    allowed: Grant = NOTHING,
    read_only: bool = False,
    unreadable: Sequence[str] = (),
) -> AsyncGenerator[ShutIn, None]:
    """The command as it runs in the sandbox, as far as there is one and `allowed` leaves it there. `unreadable` are patterns of
    paths that it must not read. Its processes must have ended when the block is left, however that is. Raises OSError, and
    ToolError where the patterns cover too many."""
    scratch = await asyncio.to_thread(_scratch, session_folder)
    # Else there is nothing to guard, and a disk to walk.
    guards = bool(sandbox.kind) and not (allowed.outside or read_only) and sandbox.can_write(workspace)
    guarding = await asyncio.to_thread(Guarding, workspace) if guards else None
    paths = await asyncio.to_thread(guarding.paths, allowed.folders) if guarding else ()
    sockets = guarding.sockets if guarding else ()
    shuts = bool(sandbox.kind and unreadable) and not allowed.outside
    covered = await asyncio.to_thread(unreadable_paths, unreadable, workspace) if shuts else ()
    wrapped = await asyncio.to_thread(
        sandbox.wrap,
        argv,
        workspace,
        scratch,
        guarded=paths,
        sockets=sockets,
        unreadable=covered,
        allowed=allowed,
        read_only=read_only,
    )
    if cache := sandbox.cache(workspace):
        await asyncio.to_thread(os.makedirs, cache, 0o700, exist_ok=True)
    kept = str(Path(session_folder or tempfile.gettempdir()) / "taken-away" / secrets.token_hex(4))
    variables = {**environ, **sandbox.variables(workspace, allowed)}
    if (
        sandbox.kind == "bubblewrap" and not allowed.outside
    ):  # the person's own folder for such files cannot be written there
        variables |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp")
    command = ShutIn(wrapped, variables, kept)
    try:
        yield command
    finally:
        if guarding:
            command.taken = await asyncio.shield(asyncio.to_thread(guarding.take_away, kept))


def _scratch(session_folder: str) -> str:
    """The folder that a session's commands see as `/tmp`, so that one finds what another wrote; empty if there is none."""
    if not session_folder:
        return ""
    folder = Path(session_folder) / "tmp"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder)
