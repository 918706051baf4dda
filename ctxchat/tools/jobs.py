"""Background commands: begun by `shell` with `background`, looked at, waited for, fed and ended by the tool `job`, and told to
the model by a context provider when they end. They run in the sandbox like any command, and end with the session.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.jobs import JobRow
from ctxchat.core.patterns import Word
from ctxchat.core.permissions import AccessRequest, Grant, Part
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.processes import child, listening_apart
from ctxchat.tools.redraws import Redraws
from ctxchat.tools.sandbox import taken_away
from ctxchat.tools.shut_in import ShutIn
from ctxchat.tools.text import HeadTail, clip_line, without_zeros
from ctxchat.tools.tool import Arguments, Pieces, Tool

MAX_RUNNING = 16
MAX_FILE_BYTES = 50_000_000
"""Of a job's output on disk; what comes after that is only shown."""

FIRST_LOOK_S = 1.0
"""Seconds a call waits for the first output of a job, or its end."""

MAX_WAIT_S = 600

POLL_S = 0.1
"""Seconds between two looks whether a job has ended."""

AFTERGLOW_S = 0.3
"""Seconds of listening on after a job ended while something it left behind holds its pipe."""

_EAGER_BYTES = 1_000_000
"""Read at full speed; a job that writes more is slowed down so that nothing else is."""

SHUT_OFF = (
    "[it listens on port {ports}, in a network of its own: neither you nor the user reach it. Let it be reached by beginning it "
    "with `network`]"
)

ReadyCommand = AbstractAsyncContextManager[ShutIn]


class Job:
    """One background command. `file` is where all of its output is kept, `beyond` in words what it may do beyond the sandbox."""

    def __init__(self, id: str, command: str, file: Path, cap: int, beyond: str = "") -> None:
        self.id, self.command, self.file, self.beyond = id, command, file, beyond
        self.moved = ""
        """A line that names what it put where it could run later, and where that lies now."""
        self.began, self.ended = time.monotonic(), 0.0
        self.code: int | None = None
        self.stopped = False
        self.received = 0
        self.told = False
        """The model knows that it has ended."""
        self.process: asyncio.subprocess.Process | None = None
        self.task: asyncio.Task[None] | None = None
        self._cap = cap
        self._unseen, self._redraws = HeadTail(cap), Redraws()
        self._fresh = asyncio.Event()

    @property
    def running(self) -> bool:
        return not self.ended

    @property
    def state(self) -> str:
        """`running`, `ended with exit code 1`, `ended by signal 9`, `stopped`."""
        if self.running:
            return "running"
        if self.stopped or self.code is None:
            return "stopped"
        return f"ended by signal {-self.code}" if self.code < 0 else f"ended with exit code {self.code}"

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return (self.ended or time.monotonic()) - self.began

    async def run(self, ready: ReadyCommand, *, foreign: bool, workspace: str, seconds: float | None) -> None:
        """From its start to its end, however that comes; after so many `seconds` at the latest."""
        try:
            async with asyncio.timeout(seconds):
                await self._run(ready, foreign, workspace)
        except TimeoutError:
            self.stopped = True
        finally:
            self.code = self.process.returncode if self.process else None
            self.ended = time.monotonic()
            self._fresh.set()

    async def _run(self, ready: ReadyCommand, foreign: bool, workspace: str) -> None:
        with _opened(self.file) as kept, ExitStack() as told:
            async with ready as command:
                told.callback(self._tell_moved, command)
                async with child(
                    command.argv,
                    foreign=foreign,
                    cwd=workspace,
                    env=command.environ,
                    stdin=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                ) as self.process:
                    reader = asyncio.create_task(self._listen(self.process.stdout, kept))
                    try:
                        # Not process.wait(): that waits for whoever holds the pipe as well.
                        while self.process.returncode is None:
                            await asyncio.wait({reader}, timeout=POLL_S)
                            if reader.done():
                                await asyncio.sleep(POLL_S)
                        await asyncio.wait({reader}, timeout=AFTERGLOW_S)
                    finally:
                        reader.cancel()

    def _tell_moved(self, command: ShutIn) -> None:
        """However it ended."""
        if command.taken:
            self.moved = taken_away(command.taken, command.kept)

    async def _listen(self, pipe: asyncio.StreamReader | None, kept: BinaryIO) -> None:
        assert pipe is not None
        while data := await pipe.read(65536):
            if self.received < MAX_FILE_BYTES:
                with suppress(OSError):  # a full disk costs the file its end, and not the job
                    kept.write(data)
            self.received += len(data)
            self._unseen.add(self._redraws.add(data))
            self._fresh.set()
            if self.received > _EAGER_BYTES:
                await asyncio.sleep(0.002)

    def take_output(self) -> str:
        """What came since this was asked last, the middle of very much left out."""
        self._unseen.add(self._redraws.remaining())
        text = without_zeros(self._unseen.text().rstrip("\n"))
        self._unseen, self._redraws = HeadTail(self._cap), Redraws()
        return text

    def ports_shut_off(self) -> Sequence[int]:
        """Ports that it listens on in a network of its own, where nothing else reaches them."""
        if not self.running or self.process is None:
            return ()
        return tuple(sorted(listening_apart(self.process.pid)))

    async def wait(self, seconds: float, *, for_output: bool = False) -> None:
        """Until it has ended or the time is up; `for_output`: or something new came."""
        deadline = time.monotonic() + seconds
        while self.running and (left := deadline - time.monotonic()) > 0:
            self._fresh.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._fresh.wait(), min(left, 1.0) if not for_output else left)
            if for_output:
                return


class Jobs:
    """The background commands of one session. Fulfils `core.ports.BackgroundCommands`."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._closed = False

    @property
    def rows(self) -> Sequence[JobRow]:
        """The newest first."""
        return [
            JobRow(j.id, j.command, j.state, j.running, j.seconds, j.received, str(j.file), j.moved)
            for j in reversed(self._jobs.values())
        ]

    def find(self, id: str) -> Job:
        """Raises ToolError."""
        if job := self._jobs.get(id.strip()):
            return job
        there = ", ".join(self._jobs) or "none"
        raise ToolError(f"There is no job {clip_line(id, 40)}.", f"Jobs: {there}. `shell` with background begins one.")

    def all_jobs(self) -> Sequence[Job]:
        return tuple(self._jobs.values())

    async def start(
        self, command: str, ready: ReadyCommand, context: ToolContext, *, foreign: bool, seconds: float | None
    ) -> Job:
        """Begin it; `seconds` after which it is ended, None for never. Raises ToolError."""
        running = [job.id for job in self._jobs.values() if job.running]
        if len(running) >= MAX_RUNNING or self._closed:
            raise ToolError(f"{len(running)} background commands run already.", f"End one first: {', '.join(running)}.")
        id = f"j{len(self._jobs) + 1}"
        folder = Path(context.session_folder or "/nonexistent") / "tool-results"
        job = self._jobs[id] = Job(
            id,
            command,
            folder / f"job-{id}-{os.urandom(3).hex()}.txt",
            context.max_chars,
            _beyond(context.allowance, foreign=foreign),
        )
        run = job.run(ready, foreign=foreign, workspace=context.workspace, seconds=seconds)
        job.task = asyncio.create_task(run, name=f"job {id}")
        job.task.add_done_callback(_retrieve)
        return job

    async def stop(self, id: str) -> None:
        """End it and all it began. Raises ToolError."""
        await self._stop(self.find(id))

    async def _stop(self, job: Job) -> None:
        if job.task and not job.task.done():
            job.stopped = True
            job.task.cancel()
            await asyncio.wait({job.task})

    async def close(self) -> None:
        """End all of them; none begins any more."""
        self._closed = True
        await asyncio.gather(*(self._stop(job) for job in self._jobs.values()))


def _retrieve(task: asyncio.Task[None]) -> None:
    """What ended a job is told by its state."""
    if not task.cancelled():
        task.exception()


def _opened(file: Path) -> BinaryIO:
    """A new private file, never one that is there or a link."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb", buffering=0)


def report(job: Job) -> str:
    """What there is to know of a job, for a model: its state, then what is new of its output."""
    job.told = job.told or not job.running
    output = job.take_output()
    shut_off = SHUT_OFF.format(ports=", ".join(map(str, ports))) if (ports := job.ports_shut_off()) else ""
    head = f"[{job.id}: {job.state}, {job.seconds:.0f} s, {job.received:,} bytes of output in tool-results/{job.file.name}]"
    return "\n".join((head, output or "[no new output]", *filter(None, (shut_off, job.moved))))


def _beyond(allowed: Grant, *, foreign: bool) -> str:
    if foreign:
        return ", which no sandbox holds"
    return ", which has the network" if allowed.network else ""


class JobArguments(Arguments, frozen=True):
    id: Annotated[str, msgspec.Meta(description="Empty lists all")] = ""
    action: Literal["look", "wait", "send", "stop"] = "look"
    seconds: Annotated[int, msgspec.Meta(description="To wait")] = 30
    text: Annotated[str, msgspec.Meta(description="To send")] = ""


class JobTool(Tool[JobArguments]):
    """What the agent does with its background commands."""

    name = "job"
    about = "Look at new output of a background command, wait for its end, send it a line of input, or end it."
    arguments = JobArguments
    reads_only = False

    def __init__(self, jobs: Jobs) -> None:
        super().__init__()
        self._jobs = jobs

    def access_needed(self, arguments: JobArguments, context: ToolContext) -> AccessRequest:
        if arguments.action == "look" and not arguments.id.strip():
            return AccessRequest("none", summary="list background commands")
        job = self._jobs.find(arguments.id)
        what = f"{job.id} ({clip_line(job.command, 80)})"
        if arguments.action != "send":
            return AccessRequest("none", summary=f"{arguments.action} {what}")
        # What a running program makes of its input nobody knows: it may be a shell.
        parts = (Part((Word(arguments.text, False),)),)
        summary = f"send a line to {what}{job.beyond}"
        return AccessRequest("run", arguments.text, True, summary, preview=arguments.text, parts=parts)

    async def execute(self, arguments: JobArguments, context: ToolContext) -> Pieces:
        if arguments.action == "look" and not arguments.id.strip():
            lines = [
                f"{j.id}: {j.state}, {j.seconds:.0f} s: {clip_line(j.command, 200)}" for j in self._jobs.all_jobs()
            ]
            yield ToolOutput("\n".join(lines) or "No command runs in the background.")
            return
        job = self._jobs.find(arguments.id)
        match arguments.action:
            case "wait":
                await job.wait(min(max(0, arguments.seconds), MAX_WAIT_S))
            case "send":
                await self._send(job, arguments.text)
                await job.wait(FIRST_LOOK_S, for_output=True)
            case "stop":
                await self._jobs.stop(job.id)
            case "look":
                pass
        yield ToolOutput(report(job))

    async def _send(self, job: Job, text: str) -> None:
        pipe = job.process.stdin if job.process else None
        if not job.running or pipe is None or pipe.is_closing():
            raise ToolError(f"{job.id} takes no input: it is {job.state}.")
        try:
            pipe.write(f"{text}\n".encode("utf-8", "replace"))
            await asyncio.wait_for(pipe.drain(), FIRST_LOOK_S)
        except (ConnectionError, TimeoutError) as problem:
            raise ToolError(f"{job.id} does not read its input.", "Look at its output first.") from problem


class JobList:
    """ContextProvider `jobs`: which commands run in the background, and which have ended since the model looked at them."""

    source_id = "jobs"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def provide(self) -> str:
        """A line each, without figures that change by themselves; empty for none."""
        lines = [
            f"{j.id} `{clip_line(j.command, 120)}`: {j.state}" for j in self._jobs.all_jobs() if j.running or not j.told
        ]
        return "\n".join(["Commands in the background (tool `job`):", *lines]) if lines else ""
