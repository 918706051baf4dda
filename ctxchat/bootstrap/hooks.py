"""Builds hooks from the settings, and runs their commands: in the workspace, in the sandbox, with API keys removed from the
environment."""

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
"""Bytes kept of a command's output, from its head and its tail; the remainder is only counted."""

POLL_INTERVAL_S = 0.02
"""Seconds between two checks whether a command has ended."""

OPEN_PIPE_TIMEOUT_S = 0.3
"""Seconds that output is still read after a command ended while a process it left behind holds its pipe open."""


def hooks_of(settings: Sequence[HookSettings]) -> tuple[Hook, ...]:
    """The enabled hooks. One without a name is named after its action and event; a repeated name gets a number."""
    hooks: list[Hook] = []
    names: list[str] = []
    for each in settings:
        base = each.name or f"{each.action} at {each.event}"
        names.append(base)
        number = names.count(base)
        if not each.enabled:
            continue
        hooks.append(
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
    return tuple(hooks)


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
    """Runs the commands of hooks, in the sandbox where there is one.

    `environ` is the environment they get, without its API keys; `loaded` returns the current settings, `mask` masks secrets in
    output, `sandbox` returns the current sandbox, and `session_folder` holds their `/tmp`.
    """

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
        """Run a command until it ends or times out, with `event` on its standard input; processes it left in the background are
        ended with it. Raises OSError where there is no shell. Raises CtxchatError for a project's hook when a file it names
        changed since it was trusted, or when it would run, without a sandbox, files that nobody has reviewed."""
        sandbox = await asyncio.to_thread(self._sandbox)
        of_project = await asyncio.to_thread(self._check, action.command, sandbox)
        workspace = str(self._workspace)
        shell = find_program("bash", workspace) or "/bin/sh"
        environ = self._environment
        outside = not (action.sandbox or of_project)
        if outside:
            environ = {**environ, "PATH": outside_path(workspace, environ.get("PATH"))}
        output, errors = HeadTail(MAX_OUTPUT_BYTES), HeadTail(MAX_OUTPUT_BYTES)
        separate = action.form == "claude"  # such a hook gives its reason for refusing on standard error
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
                stderr=pipe if separate else asyncio.subprocess.STDOUT,
            ) as process,
        ):
            assert process.stdout
            pipes = [
                asyncio.create_task(_send_event(process, event)),
                asyncio.create_task(_read_output(process.stdout, output)),
            ]
            pipes += [asyncio.create_task(_read_output(process.stderr, errors))] if process.stderr else []
            try:
                ended = await _ended(process, action.timeout)
                await asyncio.wait(pipes[1:], timeout=OPEN_PIPE_TIMEOUT_S if ended else 0)
            finally:
                for task in pipes:
                    task.cancel()
                await asyncio.gather(*pipes, return_exceptions=True)
        notes = [taken_away(ready.taken, ready.kept)] if ready.taken else []
        stdout, stderr = "\n".join((clean(output.text()), *notes)), clean(errors.text())
        if process.returncode and not outside and lacked_network(f"{stdout}\n{stderr}", sandbox):
            stdout, stderr = (text and f"{text.rstrip()}\n{_OFFLINE}" for text in (stdout, stderr))
        masked = [await asyncio.to_thread(self._mask, text) for text in (stdout, stderr)]
        return Ran(process.returncode if ended else None, *masked)

    def _check(self, command: str, sandbox: Sandbox) -> bool:
        """Whether the command belongs to a project's hook, which always runs in the sandbox: a script it runs may have changed
        since the settings were read, and what a script or a build starts is unknown. Raises CtxchatError as `__call__`."""
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


def _is_pinned(command: str, workspace: Path, trusted: Content) -> bool:
    """Whether a command line runs only files that were trusted, and system programs that run no others."""
    trusted_files = {os.path.realpath(file) for file in trusted.files}
    waiting = list(parts_of(command, str(workspace)))
    while waiting:
        part = waiting.pop()
        if not all(word.known for word in part.words):
            return False
        program, *arguments = [word.text for word in part.words] or [""]
        script = arguments[0] if arguments and is_interpreter(program) else program
        if (script != program or "/" in program) and os.path.realpath(workspace / script) in trusted_files:
            continue
        waiting += part.inner
        if program and not (part.plain or part.through or program in _RUN_NOTHING):
            return False
    return True


_RUN_NOTHING = frozenset({"touch", "mkdir", "cp", "mv", "rm", "tee", "date", "printf"})
"""System programs that start no other program."""


async def _send_event(process: asyncio.subprocess.Process, event: bytes) -> None:
    assert process.stdin
    with suppress(BrokenPipeError, ConnectionResetError):  # the command need not read its input
        process.stdin.write(event)
        await process.stdin.drain()
        process.stdin.close()


async def _read_output(stream: asyncio.StreamReader, output: HeadTail) -> None:
    while data := await stream.read(65_536):
        output.add(data)
        await asyncio.sleep(0.001)  # endless output must not block the event loop


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether the process ended within `seconds`. Does not use process.wait(), which also waits for the pipe, and an orphan may
    hold that open."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while process.returncode is None:
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_INTERVAL_S)
    return True
