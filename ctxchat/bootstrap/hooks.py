"""From settings to hooks, and how their commands are run: in the workspace, in a process group of their own, without keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ctxchat.agent.hooks import Ran
from ctxchat.config.files import Loaded
from ctxchat.config.schema import HookSettings
from ctxchat.config.trust import content
from ctxchat.core.errors import CtxchatError
from ctxchat.core.hooks import Action, CompactContext, Hook, Inject, Notify, RunCommand, When
from ctxchat.core.sanitize import clean
from ctxchat.own_processes import find_program
from ctxchat.tools.processes import child, environment
from ctxchat.tools.text import HeadTail

MOST_OUTPUT = 64_000
"""Bytes kept of what a command prints, head and tail; the rest is counted."""

TICK = 0.02
"""Seconds between two looks whether a command has ended."""

AFTERGLOW = 0.3
"""Seconds of listening on after a command ended while something it left behind holds its pipe."""


def hooks_of(settings: Sequence[HookSettings]) -> tuple[Hook, ...]:
    """The hooks that are switched on. One without a name is called after what it does; a second of one name gets a number."""
    made: list[Hook] = []
    names: list[str] = []
    for each in settings:
        base = each.name or f"{each.action} at {each.event}"
        names.append(base)
        number = names.count(base)
        if not each.enabled:
            continue
        made.append(
            Hook(
                name=base if number == 1 else f"{base} ({number})",
                event=each.event,
                action=_action(each),
                when=msgspec.convert(msgspec.to_builtins(each.when), When),
                cooldown=each.cooldown,
                max_fires=each.max_fires,
                priority=each.priority,
            )
        )
    return tuple(made)


def _action(settings: HookSettings) -> Action:
    match settings.action:
        case "compact_context":
            return CompactContext(settings.strategy, settings.instructions)
        case "run":
            return RunCommand(settings.command, settings.timeout, settings.show_output)
        case "notify":
            return Notify(settings.text)
        case "inject":
            return Inject(settings.text)


class HookCommands:
    """Runs the commands of hooks. `environ` is what they may see, keys taken out; `loaded` gives the settings in force, `mask`
    takes secrets out of what they print."""

    def __init__(
        self,
        workspace: Path,
        environ: Mapping[str, str] = os.environ,
        loaded: Callable[[], Loaded | None] = lambda: None,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._mask = mask
        self._workspace = workspace
        self._environment = environment(environ)
        self._loaded = loaded

    async def __call__(self, command: str, event: bytes, seconds: float) -> Ran:
        """Run until it ends or its time is up; what it left in the background ends with it. Raises OSError without a shell,
        CtxchatError for a project's hook when a file it names is no longer the one that was trusted."""
        await asyncio.to_thread(self._check, command)
        shell = find_program("bash", str(self._workspace)) or "/bin/sh"
        kept = HeadTail(MOST_OUTPUT)
        pipe = asyncio.subprocess.PIPE
        async with child(
            [shell, "-c", command],
            cwd=self._workspace,
            env=self._environment,
            stdin=pipe,
            stderr=asyncio.subprocess.STDOUT,
        ) as process:
            talking = [asyncio.create_task(_tell(process, event)), asyncio.create_task(_listen(process, kept))]
            try:
                ended = await _ended(process, seconds)
                await asyncio.wait(talking[1:], timeout=AFTERGLOW if ended else 0)
            finally:
                for task in talking:
                    task.cancel()
                await asyncio.gather(*talking, return_exceptions=True)
        return Ran(process.returncode if ended else None, await asyncio.to_thread(self._mask, clean(kept.text())))

    def _check(self, command: str) -> None:
        """Between two looks at the settings a script may have changed that a trusted hook runs."""
        loaded = self._loaded()
        if loaded is None or not loaded.trusted:
            return
        theirs = any(hook.get("command") == command for hook in loaded.project.held.get("hooks", ()))
        if theirs and content(self._workspace, loaded.project.held).digest != loaded.project.digest:
            raise CtxchatError("not run: a file it names changed since it was trusted.", "/trust shows what changed.")


async def _tell(process: asyncio.subprocess.Process, event: bytes) -> None:
    assert process.stdin
    with suppress(BrokenPipeError, ConnectionResetError):  # it may not care to read
        process.stdin.write(event)
        await process.stdin.drain()
        process.stdin.close()


async def _listen(process: asyncio.subprocess.Process, kept: HeadTail) -> None:
    assert process.stdout
    while data := await process.stdout.read(65_536):
        kept.add(data)
        await asyncio.sleep(0.001)  # one that never stops printing must not take the loop for itself


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """True when it ended in time. Not process.wait(): that waits for the pipe as well, which an orphan may hold."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while process.returncode is None:
        if loop.time() > deadline:
            return False
        await asyncio.sleep(TICK)
    return True
