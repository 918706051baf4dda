"""The tool `shell`: runs a command line, shows its output as it arrives, keeps the head and the tail of it, and leaves no process
running unless the call asked for a background command."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.events import ToolStatus
from ctxchat.core.patterns import Word
from ctxchat.core.permissions import AccessRequest, Grant, Part
from ctxchat.core.ports import ToolContext, ToolOutput, ToolText
from ctxchat.own_processes import find_program
from ctxchat.tools.command_line import leaves_something_running, parts_of
from ctxchat.tools.jobs import FIRST_LOOK_S, Job, Jobs, report
from ctxchat.tools.processes import child, environment
from ctxchat.tools.redraws import Redraws
from ctxchat.tools.sandbox import PRIVATE, Sandbox, known_needs, stopped_by_sandbox, taken_away
from ctxchat.tools.shut_in import ReadyCommand, shut_in
from ctxchat.tools.text import HeadTail, clip_line, without_zeros
from ctxchat.tools.tool import Arguments, Pieces, Tool

OUTPUT_INTERVAL_S = 0.1
"""Seconds between two updates of the shown output."""

_SHOWN_BYTES_A_TICK = 8_000
"""Bytes of output that are shown in one such interval."""

_FULL_SPEED_BYTES = 1_000_000
"""Bytes of output that are read at full speed; a command that writes more is slowed down, so that it slows nothing else."""

_OPEN_PIPE_TIMEOUT_S = 0.3
"""Seconds for which output is still read after the command ended, if a process that it left behind holds the pipe open."""


MAX_COMMAND_CHARS = 100_000
"""Characters of a command: Linux takes at most 128 kB as one argument."""

MAX_TIMEOUT_S = 600.0
"""The longest time limit in seconds that a call may ask for, unless the settings allow more."""


NO_OUTPUT = "[no output]"

ENDED_WITH_CALL = (
    "[what this command put into the background has ended with the call; `background` keeps a command running]"
)


class ShellArguments(Arguments, frozen=True):
    command: str
    timeout: Annotated[int | None, msgspec.Meta(description="Seconds, at most 600")] = None
    background: Annotated[bool, msgspec.Meta(description="Goes on; see `job`")] = False
    network: Annotated[bool, msgspec.Meta(description="It needs the network, or serves others")] = False
    folders: Annotated[tuple[str, ...], msgspec.Meta(description="Other folders it must write in")] = ()
    why: Annotated[str, msgspec.Meta(description="For the user")] = ""


class Shell(Tool[ShellArguments]):
    """Runs commands in the sandbox. `environ` are the variables that commands get, without secrets, except those named in `keep`.
    With `asks_everything` a person is asked even about commands that can do no harm."""

    name = "shell"
    about = (
        "Run a bash command line in the workspace: build, test, git, what no other tool does. No input; what it leaves "
        "running ends with the call, unless `background`. Long output keeps its beginning and end. /tmp is private to "
        "commands. No network and no writing outside the workspace, unless you ask for it."
    )
    arguments = ShellArguments
    reads_only = False

    def __init__(
        self,
        sandbox: Sandbox,
        environ: Mapping[str, str],
        keep: Sequence[str] = (),
        *,
        jobs: Jobs | None = None,
        asks_everything: bool = False,
    ) -> None:
        super().__init__()
        self._jobs = jobs or Jobs()
        self._asks_everything = asks_everything
        self._sandbox = sandbox
        self.environment: Mapping[str, str] = environment(environ, keep)
        """The environment variables of commands."""

    @property
    def sandbox(self) -> str:
        """The sandbox that commands run in: `bubblewrap`, `seatbelt`, or empty for none."""
        return self._sandbox.kind

    def access_needed(self, arguments: ShellArguments, context: ToolContext) -> AccessRequest:
        command = arguments.command.strip()
        if not command or "\0" in command:
            raise ToolError("The command is empty." if not command else "The command holds a NUL character.")
        if len(command) > MAX_COMMAND_CHARS:
            raise ToolError(
                f"The command is {len(command):,} characters long; no system takes that.",
                "Write it to a file with write_file and run that.",
            )
        first, _, more = command.partition("\n")
        asks = self._asks(arguments)
        how = "run in the background" if arguments.background else "run"
        summary = (
            f"{how} {clip_line(first, 200)}{' …' if more else ''}{_beyond(asks, arguments.why, bool(self.sandbox))}"
        )
        bash = bool(find_program("bash", context.workspace))  # what another shell makes of a line nobody knows here
        parts = parts_of(command, context.workspace) if bash else (Part((Word(command, False),)),)
        return AccessRequest(
            "run",
            command,
            True,
            summary,
            preview=command,
            parts=parts,
            allowance=self._offers(command, parts, asks, context.workspace),
            asks=asks,
            shut_in=bool(self.sandbox) and not self._asks_everything,
        )

    def _asks(self, arguments: ShellArguments) -> Grant:
        """The access beyond the sandbox that the call asks for. Raises ToolError for a folder that cannot be allowed."""
        if not self.sandbox:
            return Grant()
        folders: list[str] = []
        for name in arguments.folders:
            folder = os.path.realpath(os.path.expanduser(name))  # noqa: PTH111  (pathlib's raises where nobody has that name)
            if not Path(folder).is_dir() or not self._sandbox.can_write(folder):
                raise ToolError(
                    f"{clip_line(name, 200)} cannot be opened to a command.",
                    "It must be a folder that is there and holds no secrets: name the very one that is needed.",
                )
            folders.append(folder)
        return Grant(arguments.network and not self._sandbox.network, tuple(folders))

    def _offers(self, command: str, parts: Sequence[Part], asks: Grant, workspace: str) -> Grant:
        """The access that is offered to a person together with approving the command: what such commands are known to need, and
        the folders that this one writes files in."""
        if not self.sandbox:
            return Grant()
        written = (str(Path(part.writes).parent) for part in parts if part.writes and not (part.inside or part.guarded))
        there = (folder for folder in written if folder not in PRIVATE and Path(folder).is_dir())
        needs = dict.fromkeys((*known_needs(command, workspace), *there))
        folders = tuple(f for f in needs if f not in asks.folders and self._sandbox.can_write(f))
        return Grant(not (self._sandbox.network or asks.network), folders, outside=True)

    async def execute(self, arguments: ShellArguments, context: ToolContext) -> Pieces:
        try:
            command = arguments.command.strip().encode()
        except UnicodeEncodeError as error:
            raise ToolError("The command holds characters that cannot be written.") from error
        usual = context.seconds
        seconds = usual if arguments.timeout is None else min(max(1, arguments.timeout), max(MAX_TIMEOUT_S, usual))
        shell = find_program("bash", context.workspace) or "/bin/sh"
        sandboxed = bool(self.sandbox) and not context.allowance.outside
        if context.read_only and not sandboxed:
            raise ToolError("This command was to run in a sandbox, and there is none.", "Call again.")
        argv = [shell, "-c", os.fsdecode(command)]
        if arguments.background:
            limit = float(arguments.timeout) if arguments.timeout else None
            job = await self.begin(arguments.command.strip(), argv, context, limit)
            await job.wait(FIRST_LOOK_S)
            yield ToolOutput(report(job))
            return
        async with aclosing(run_ready(self.ready(argv, context), context, seconds, foreign=not sandboxed)) as pieces:
            async for piece in pieces:
                yield self._noted(piece, arguments.command, context) if isinstance(piece, ToolOutput) else piece

    async def begin(self, command: str, argv: Sequence[str], context: ToolContext, seconds: float | None = None) -> Job:
        """Start a background command, in the sandbox like any other. Raises ToolError."""
        environ = self.environment
        return await self._jobs.start(command, argv, context, sandbox=self._sandbox, environ=environ, seconds=seconds)

    def ready(self, argv: Sequence[str], context: ToolContext, more: Mapping[str, str] | None = None) -> ReadyCommand:
        """The command line and environment that run a program in the sandbox; without it if there is none, or if the call was
        allowed to leave it. `more` are further variables."""
        return shut_in(
            self._sandbox,
            argv,
            context.workspace,
            {**self.environment, **(more or {})},
            session_folder=context.session_folder,
            allowed=context.allowance,
            read_only=context.read_only,
            unreadable=context.unreadable,
        )

    def _noted(self, output: ToolOutput, command: str, context: ToolContext) -> ToolOutput:
        """The output with remarks for the model on how the command ended."""
        notes: list[str] = []
        if output.status == "ok" and leaves_something_running(command):
            notes.append(ENDED_WITH_CALL)
        notes += self.in_the_way(output, command, context)
        return msgspec.structs.replace(output, text="\n".join((output.text, *notes)))

    def in_the_way(self, output: ToolOutput, command: str, context: ToolContext) -> list[str]:
        """Lines that tell what the sandbox seems to have prevented."""
        allowed, failed = context.allowance, output.status != "ok"
        if not self.sandbox or allowed.outside:
            return []
        return stopped_by_sandbox(
            command,
            output.text,
            self._sandbox,
            context.workspace,
            allowed,
            failed=failed,
            read_only=context.read_only,
        )


async def run_ready(
    command: ReadyCommand, context: ToolContext, seconds: float, *, foreign: bool, pass_fds: Sequence[int] = ()
) -> AsyncGenerator[ToolText | ToolOutput, None]:
    """Run a command and yield its output, then the whole result; it is ended after so many `seconds`. `foreign`: it runs without
    a sandbox."""
    run = _Run(context.max_chars)
    async with (
        command as ready,
        child(
            ready.argv,
            foreign=foreign,
            cwd=context.workspace,
            env=ready.environ,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=pass_fds,
        ) as process,
    ):
        reader = asyncio.create_task(run.listen(process.stdout))
        try:
            async for piece in run.watch(process, reader, seconds):
                yield ToolText(piece)
        finally:
            reader.cancel()
    output = run.output(process.returncode, seconds)
    notes = [taken_away(ready.taken, ready.kept)] if ready.taken else []
    yield msgspec.structs.replace(output, text="\n".join((output.text, *notes)))


class _Run:
    """Collects the output of one command while it runs."""

    def __init__(self, cap: int) -> None:
        self._kept = HeadTail(cap)
        self._redraws = Redraws()
        self._received = 0
        self._fresh = bytearray()
        self._skipped = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timed_out = False

    async def listen(self, pipe: asyncio.StreamReader | None) -> None:
        """Read all output; of what comes at once too fast to be shown, only the end is shown."""
        assert pipe is not None
        while data := await pipe.read(65536):
            self._received += len(data)
            self._kept.add(self._redraws.add(data))
            self._fresh += data
            over = len(self._fresh) - _SHOWN_BYTES_A_TICK
            if over > 0:
                self._skipped += over
                del self._fresh[:over]
            if self._received > _FULL_SPEED_BYTES:
                await asyncio.sleep(0.002)

    async def watch(self, process: asyncio.subprocess.Process, reader: asyncio.Task[None], seconds: float):
        """Yield new output about ten times a second until the command has ended or its time is up."""
        loop = asyncio.get_running_loop()
        deadline, ended = loop.time() + seconds, 0.0
        while True:
            # Not process.wait(): that waits for the pipe as well, which an orphan may hold.
            await asyncio.wait({reader}, timeout=OUTPUT_INTERVAL_S)
            if piece := self._piece():
                yield piece
            now = loop.time()
            if process.returncode is not None:
                ended = ended or now
                if reader.done() or now - ended > _OPEN_PIPE_TIMEOUT_S:
                    return
            elif now > deadline:
                self._timed_out = True
                return
            if reader.done():
                await asyncio.sleep(0.01)

    def _piece(self) -> str:
        skipped = f"[… {self._skipped:,} bytes not shown …]\n" if self._skipped else ""
        text = self._decoder.decode(bytes(self._fresh))
        self._fresh.clear()
        self._skipped = 0
        return skipped + text

    def output(self, code: int | None, seconds: float) -> ToolOutput:
        """The result for the model: the output, and how the command ended."""
        self._kept.add(self._redraws.remaining())
        text = without_zeros(self._kept.text().rstrip("\n"))
        if many := self._redraws.redrawn:
            text += f"\n[drawn over {many:,} times: lines are shown as they were last]"
        if self._timed_out:
            return ToolOutput(_with_note(text, f"[stopped after {seconds:g} s: time-out]"), "timeout")
        status: ToolStatus = "ok" if code == 0 else "error"
        note = "" if code == 0 else f"[exit code {code}]" if code is None or code >= 0 else f"[ended by signal {-code}]"
        return ToolOutput(_with_note(text or NO_OUTPUT, note), status, exit_code=code)


def _beyond(asks: Grant, why: str, sandboxed: bool) -> str:
    """The text behind a command that names the access it asks for beyond the sandbox."""
    if not sandboxed:
        return " (no sandbox)"
    wanted = [*(["the network"] if asks.network else []), *(f"writing in {folder}" for folder in asks.folders)]
    reason = f": {clip_line(' '.join(why.split()), 200)}" if why.strip() else ""
    return f" (asks for {' and '.join(wanted)}{reason})" if wanted else ""


def _with_note(text: str, note: str) -> str:
    return f"{text}\n{note}".strip("\n") if note else text
