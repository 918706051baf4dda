"""From settings to hooks, and how their commands are run: in the workspace, in the sandbox, without keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ctxchat.agent.hooks import Ran
from ctxchat.config.effective import Loaded
from ctxchat.config.schema import HookSettings
from ctxchat.config.trust import Content, unchanged
from ctxchat.config.variables import in_project
from ctxchat.core.errors import CtxchatError
from ctxchat.core.hooks import Action, CompactContext, Hook, Inject, Notify, RunCommand, When
from ctxchat.core.permissions import Grant
from ctxchat.core.sanitize import clean
from ctxchat.own_processes import find_program, outside_path
from ctxchat.tools.command_line import parts_of
from ctxchat.tools.processes import child, environment
from ctxchat.tools.programs import is_interpreter
from ctxchat.tools.sandbox import Sandbox, lacked_network, taken_away
from ctxchat.tools.shut_in import shut_in
from ctxchat.tools.text import HeadTail

MAX_OUTPUT_BYTES = 64_000
"""Bytes kept of what a command prints, head and tail; the rest is counted."""

POLL_INTERVAL_S = 0.02
"""Seconds between two looks whether a command has ended."""

OPEN_PIPE_TIMEOUT_S = 0.3
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
            return RunCommand(
                settings.command,
                settings.timeout,
                settings.show_output,
                settings.sandbox,
                settings.form,
                settings.matcher,
                settings.background,
            )
        case "notify":
            return Notify(settings.text)
        case "inject":
            return Inject(settings.text)


_OFFLINE = "[hooks run in the sandbox, which has no network; `permissions.network = true` gives it to them]"


class HookCommands:
    """Runs the commands of hooks in the `sandbox`, as far as there is one. `environ` is what they may see, keys taken out;
    `loaded` gives the settings in force, `mask` takes secrets out of what they print, `session_folder` is for their `/tmp`."""

    def __init__(
        self,
        workspace: Path,
        environ: Mapping[str, str] = os.environ,
        loaded: Callable[[], Loaded | None] = lambda: None,
        mask: Callable[[str], str] = str,
        *,
        sandbox: Callable[[], Sandbox] = Sandbox,
        session_folder: str = "",
    ) -> None:
        self._mask = mask
        self._workspace = workspace
        self._environment = {**environment(environ), "CLAUDE_PROJECT_DIR": str(workspace)}
        self._loaded = loaded
        self._sandbox = sandbox
        self._session_folder = session_folder

    async def __call__(self, action: RunCommand, event: bytes) -> Ran:
        """Run until it ends or its time is up; what it left in the background ends with it. Raises OSError without a shell,
        CtxchatError for a project's hook when a file it names is no longer the one that was trusted, or when it would run outside
        of a sandbox what nobody looked at."""
        sandbox = await asyncio.to_thread(self._sandbox)
        theirs = await asyncio.to_thread(self._check, action.command, sandbox)
        workspace = str(self._workspace)
        shell = find_program("bash", workspace) or "/bin/sh"
        environ = self._environment
        outside = not (action.sandbox or theirs)
        if outside:
            environ = {**environ, "PATH": outside_path(workspace, environ.get("PATH"))}
        kept, errors = HeadTail(MAX_OUTPUT_BYTES), HeadTail(MAX_OUTPUT_BYTES)
        apart = action.form == "claude"  # there the reason for a no stands on standard error alone
        pipe = asyncio.subprocess.PIPE
        ended = False
        async with (
            shut_in(
                sandbox,
                [shell, "-c", action.command],
                workspace,
                environ,
                session_folder=self._session_folder,
                allowed=Grant(outside=outside),
            ) as ready,
            child(
                ready.argv,
                foreign=outside or not sandbox.kind,
                cwd=self._workspace,
                env=ready.environ,
                stdin=pipe,
                stderr=pipe if apart else asyncio.subprocess.STDOUT,
            ) as process,
        ):
            assert process.stdout
            talking = [
                asyncio.create_task(_tell(process, event)),
                asyncio.create_task(_read_output(process.stdout, kept)),
            ]
            talking += [asyncio.create_task(_read_output(process.stderr, errors))] if process.stderr else []
            try:
                ended = await _ended(process, action.timeout)
                await asyncio.wait(talking[1:], timeout=OPEN_PIPE_TIMEOUT_S if ended else 0)
            finally:
                for task in talking:
                    task.cancel()
                await asyncio.gather(*talking, return_exceptions=True)
        notes = [taken_away(ready.taken, ready.kept)] if ready.taken else []
        said, wrong = "\n".join((clean(kept.text()), *notes)), clean(errors.text())
        if process.returncode and not outside and lacked_network(f"{said}\n{wrong}", sandbox):
            said, wrong = (text and f"{text.rstrip()}\n{_OFFLINE}" for text in (said, wrong))
        told = [await asyncio.to_thread(self._mask, text) for text in (said, wrong)]
        return Ran(process.returncode if ended else None, *told)

    def _check(self, command: str, sandbox: Sandbox) -> bool:
        """Whether it is a project's hook. Between two looks at the settings a script may have changed that it runs, and of what a
        script or a build starts nobody knows: that stays in the sandbox."""
        loaded = self._loaded()
        if loaded is None or not any(hook.get("command") == command for hook in loaded.project.held.get("hooks", ())):
            return False
        if not loaded.trusted or not unchanged(self._workspace, loaded.project):
            raise CtxchatError("not run: a file it names changed since it was trusted.", "/trust shows what changed.")
        if not sandbox.kind and not _is_pinned(
            in_project(command, str(self._workspace)), self._workspace, loaded.project
        ):
            raise CtxchatError(
                "not run: what it starts can change unseen, and there is no sandbox here to shut it in.",
                "Have it name a script of the folder and nothing else (`./check.sh`), or move it to your own settings.",
            )
        return True


def _is_pinned(command: str, workspace: Path, looked_at: Content) -> bool:
    """Whether all that a command line runs is a file that was looked at, or a program of the system that runs no other."""
    known = {os.path.realpath(file) for file in looked_at.files}
    waiting = list(parts_of(command, str(workspace)))
    while waiting:
        part = waiting.pop()
        if not all(word.known for word in part.words):
            return False
        program, *rest = [word.text for word in part.words] or [""]
        script = rest[0] if rest and is_interpreter(program) else program
        if (script != program or "/" in program) and os.path.realpath(workspace / script) in known:
            continue
        waiting += part.inner
        if program and not (part.plain or part.through or program in _RUN_NOTHING):
            return False
    return True


_RUN_NOTHING = frozenset({"touch", "mkdir", "cp", "mv", "rm", "tee", "date", "printf"})


async def _tell(process: asyncio.subprocess.Process, event: bytes) -> None:
    assert process.stdin
    with suppress(BrokenPipeError, ConnectionResetError):  # it may not care to read
        process.stdin.write(event)
        await process.stdin.drain()
        process.stdin.close()


async def _read_output(stream: asyncio.StreamReader, kept: HeadTail) -> None:
    while data := await stream.read(65_536):
        kept.add(data)
        await asyncio.sleep(0.001)  # one that never stops printing must not take the loop for itself


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """True when it ended in time. Not process.wait(): that waits for the pipe as well, which an orphan may hold."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while process.returncode is None:
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_INTERVAL_S)
    return True
