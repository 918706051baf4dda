"""Background commands (jobs): started by `shell` with `background`, observed, fed and ended by the tool `job`, and listed for the
model by a context provider. They run in the sandbox like any command, each in the hands of a process of its own (`job_keeper`),
and end with the session, except those that a person lets go: these are listed again when the session is opened next.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.jobs import JobRow
from ctxchat.core.patterns import Word
from ctxchat.core.permissions import AccessRequest, Grant, Part
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.own_processes import module_command
from ctxchat.tools.job_keeper import JobNews, JobOrder, JobRecord, ToJob, as_json, from_json, lock_of, stop_of
from ctxchat.tools.processes import child, lines, listening_apart
from ctxchat.tools.redraws import Redraws
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.text import HeadTail, clip_line, without_zeros
from ctxchat.tools.tool import Arguments, Pieces, Tool

MAX_RUNNING = 16

FIRST_LOOK_S = 1.0
"""Seconds a call waits for the first output of a job or for its end."""

MAX_WAIT_S = 600

POLL_S = 0.1
"""Seconds between two checks whether a job that was let go has ended."""

BEGIN_TIMEOUT_S = 30.0
"""Seconds that the start of a command may take: to set up the sandbox, a large folder may have to be walked."""

END_TIMEOUT_S = 30.0
"""Seconds that the end of a job may take, including the removal of files that it created at guarded paths."""

_EAGER_BYTES = 1_000_000
"""Bytes of output that are read at full speed; a job that writes more is slowed down, so that nothing else is."""

SHUT_OFF = (
    "[it listens on port {ports}, in a network of its own: neither you nor the user reach it. Let it be reached by beginning it "
    "with `network`]"
)


class Job:
    """One background command. `file` is where all of its output is kept, `cap` the characters of new output given out at once,
    `beyond` a description of what it may do beyond the sandbox."""

    def __init__(self, id: str, command: str, file: Path, cap: int, beyond: str = "") -> None:
        self.id, self.command, self.file, self.beyond = id, command, file, beyond
        self.began, self.ended = time.time(), 0.0
        self.news = JobNews()
        self.received = 0
        self.told = False
        """Whether the model knows that it has ended."""
        self.goes_on = False
        """Whether it is let go, and so keeps running, when its session is closed."""
        self._letting_go = False
        self.left = False
        """Whether it has been let go."""
        self.task: asyncio.Task[None] | None = None
        self._keeper: asyncio.subprocess.Process | None = None
        self._cap = cap
        self._unseen, self._redraws = HeadTail(cap), Redraws()
        self._changed = asyncio.Event()
        self._begun = asyncio.Event()

    @property
    def running(self) -> bool:
        return not self.ended

    @property
    def moved(self) -> str:
        """A line that names the files it created at guarded paths and the folder they were moved to; empty for none."""
        return self.news.moved

    @property
    def state(self) -> str:
        """`running`, `ended with exit code 1`, `ended by signal 9`, `stopped`."""
        if self.running:
            return "running"
        code = self.news.code
        if self.news.stopped or code is None:
            return "stopped"
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    @property
    def seconds(self) -> float:
        """Seconds that it has run, or ran."""
        return max(0.0, (self.ended or time.time()) - self.began)

    @property
    def row(self) -> JobRow:
        """The job's present state, for display outside the tools."""
        about = (
            self.id,
            self.command,
            self.state,
            self.running,
            self.seconds,
            self.received,
            str(self.file),
            self.moved,
        )
        return JobRow(*about, goes_on=self.goes_on)

    async def run(self, order: JobOrder, environ: Mapping[str, str]) -> None:
        """Start the command and wait until it has ended or is let go."""
        try:
            await self._run(order, environ)
        finally:
            self.ended = 0.0 if self.left else time.time()
            self._begun.set()
            self._changed.set()

    async def _run(self, order: JobOrder, environ: Mapping[str, str]) -> None:
        pipe = asyncio.subprocess.PIPE
        argv = module_command("ctxchat.tools.job_keeper")
        async with child(argv, env=environ, stdin=pipe, stderr=pipe) as keeper:
            assert keeper.stdin and keeper.stdout and keeper.stderr
            self._keeper = keeper
            parts = asyncio.gather(self._read_output(keeper.stdout), self._read_news(keeper.stderr))
            try:
                with suppress(ConnectionError):
                    keeper.stdin.write(as_json(order) + b"\n")
                    await keeper.stdin.drain()
                await asyncio.shield(parts)
            finally:
                keeper.stdin.close()  # which ends it
                with suppress(TimeoutError):
                    await asyncio.wait_for(parts, END_TIMEOUT_S)
                self.left = self._letting_go and not self.news.ended
                if not (self.left or self.news.ended):
                    self.news = JobNews(ended=True, stopped=True)

    async def _read_output(self, pipe: asyncio.StreamReader) -> None:
        while data := await pipe.read(65536):
            self.received += len(data)
            self._unseen.add(self._redraws.add(data))
            self._changed.set()
            if self.received > _EAGER_BYTES:
                await asyncio.sleep(0.002)

    async def _read_news(self, pipe: asyncio.StreamReader) -> None:
        async for line in lines(pipe):
            with suppress(ValueError):
                self.news = from_json(line, JobNews)
            self._begun.set()

    def take_output(self) -> str:
        """The output since the last call, with the middle left out where it is long."""
        self._unseen.add(self._redraws.remaining())
        text = without_zeros(self._unseen.text().rstrip("\n"))
        self._unseen, self._redraws = HeadTail(self._cap), Redraws()
        return text

    def ports_shut_off(self) -> Sequence[int]:
        """The ports on which it listens in a network namespace of its own, where no other program reaches them."""
        return tuple(sorted(listening_apart(self.news.process))) if self.running and self.news.process else ()

    async def begun(self) -> None:
        """Wait until the command runs or has ended, no longer than `BEGIN_TIMEOUT_S`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._begun.wait(), BEGIN_TIMEOUT_S)

    async def wait(self, seconds: float, *, for_output: bool = False) -> None:
        """Wait until it has ended or so many seconds have passed; with `for_output`, also only until new output came."""
        deadline = time.monotonic() + seconds
        while self.running and (left := deadline - time.monotonic()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(left, 1.0) if not for_output else left)
            if for_output:
                return

    async def send(self, text: str) -> None:
        """Send a line to its input. Raises ToolError where it takes none."""
        await self._send_order(ToJob(f"{text}\n"))

    async def let_go(self) -> bool:
        """Let it run on without the session; False where that cannot be recorded, or it has ended."""
        self._letting_go = True
        with suppress(ToolError):
            await self._send_order(ToJob(let_go=True))
            if self.task:
                await asyncio.wait({self.task}, timeout=END_TIMEOUT_S)
        return self.left

    async def _send_order(self, to: ToJob) -> None:
        pipe = self._keeper.stdin if self._keeper else None
        if not self.running or pipe is None or pipe.is_closing():
            raise ToolError(f"{self.id} takes no input: it is {self.state}.")
        try:
            pipe.write(as_json(to) + b"\n")
            await asyncio.wait_for(pipe.drain(), FIRST_LOOK_S)
        except (ConnectionError, TimeoutError) as problem:
            raise ToolError(f"{self.id} does not read its input.", "Look at its output first.") from problem

    async def stop(self) -> None:
        """End it and all its child processes."""
        if self.task and not self.task.done():
            self.task.cancel()
            await asyncio.wait({self.task})


class EarlierJob(Job):
    """A job that was let go when its session was closed before; its output is read from its file. `place` is the file of its
    record."""

    def __init__(self, record: JobRecord, place: Path, cap: int) -> None:
        super().__init__(record.id, record.command, Path(record.file), cap, record.beyond)
        self.goes_on, self.place = True, place
        self.began = record.began
        self._read = 0
        self.look()

    def look(self) -> None:
        """Read its present state from disk. Blocks shortly."""
        if not self.ended:
            alive = _is_locked(lock_of(self.place))
            with suppress(OSError, ValueError):
                record = from_json(self.place.read_bytes(), JobRecord)
                self.news, self.ended = record.news, record.ended
            if not alive and not self.ended:  # it was killed, or the machine was
                self.news, self.ended = JobNews(ended=True, stopped=True), time.time()
        with suppress(OSError):
            self.received = self.file.stat().st_size

    @property
    def running(self) -> bool:
        return not self.ended

    def take_output(self) -> str:
        self.look()
        with suppress(OSError), self.file.open("rb") as file:
            file.seek(self._read)
            while data := file.read(1 << 20):
                self._read += len(data)
                self._unseen.add(self._redraws.add(data))
        return super().take_output()

    async def wait(self, seconds: float, *, for_output: bool = False) -> None:
        deadline = time.monotonic() + seconds
        while self.running and time.monotonic() < deadline and not (for_output and self.received > self._read):
            await asyncio.sleep(POLL_S)
            await asyncio.to_thread(self.look)

    async def let_go(self) -> bool:
        return True

    async def stop(self) -> None:
        """End it through a stop file beside its record: its process id may belong to another process by now."""
        stop_of(self.place).touch(mode=0o600)
        await self.wait(END_TIMEOUT_S)

    def forget(self) -> None:
        """Delete all files of a job that has ended, except its output."""
        for file in (self.place, lock_of(self.place), stop_of(self.place)):
            file.unlink(missing_ok=True)


def _is_locked(lock: Path) -> bool:
    """Whether a process holds a lock; the system releases it however the process ends."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


RECORDS = "jobs"
"""Folder in the session's folder with the records of jobs that were let go."""


class Jobs:
    """The background commands of one session, with those in its `folder` that were let go before. Fulfils
    `core.ports.BackgroundCommands`."""

    def __init__(self, folder: str = "", cap: int = 30_000) -> None:
        self._jobs: dict[str, Job] = {}
        self._closed = False
        self._last = 0
        for place in sorted(Path(folder, RECORDS).glob("*.json")) if folder else ():
            with suppress(OSError, ValueError):
                job = EarlierJob(from_json(place.read_bytes(), JobRecord), place, cap)
                self._jobs[job.id] = job
                self._last = max(self._last, int(job.id.removeprefix("j")))

    @property
    def rows(self) -> Sequence[JobRow]:
        """All jobs for display, the newest first."""
        for job in self._jobs.values():
            if isinstance(job, EarlierJob):
                job.look()
        return [job.row for job in reversed(self._jobs.values())]

    def find(self, id: str) -> Job:
        """The job with this id. Raises ToolError where there is none."""
        if job := self._jobs.get(id.strip()):
            return job
        there = ", ".join(self._jobs) or "none"
        raise ToolError(f"There is no job {clip_line(id, 40)}.", f"Jobs: {there}. `shell` with background begins one.")

    def all_jobs(self) -> Sequence[Job]:
        return tuple(self._jobs.values())

    async def start(
        self,
        command: str,
        argv: Sequence[str],
        context: ToolContext,
        *,
        sandbox: Sandbox,
        environ: Mapping[str, str],
        seconds: float | None = None,
    ) -> Job:
        """Start a job; it is ended after so many `seconds`, None for never. Raises ToolError."""
        running = [job.id for job in self._jobs.values() if job.running]
        if len(running) >= MAX_RUNNING or self._closed:
            raise ToolError(f"{len(running)} background commands run already.", f"End one first: {', '.join(running)}.")
        self._last += 1
        id, name = f"j{self._last}", os.urandom(3).hex()
        folder = Path(context.session_folder or "/nonexistent")
        file = folder / "tool-results" / f"job-{id}-{name}.txt"
        foreign = not sandbox.kind or context.allowance.outside
        beyond = _beyond(context.allowance, foreign=foreign)
        order = JobOrder(
            id,
            command,
            tuple(argv),
            context.workspace,
            sandbox,
            context.session_folder,
            str(file),
            str(folder / RECORDS / f"{id}-{name}.json"),
            beyond,
            context.allowance,
            context.read_only,
            tuple(context.unreadable),
            foreign,
            seconds,
        )
        job = self._jobs[id] = Job(id, command, file, context.max_chars, beyond)
        job.task = asyncio.create_task(job.run(order, environ), name=f"job {id}")
        job.task.add_done_callback(_retrieve_exception)
        await job.begun()
        return job

    def keep(self, id: str, *, going_on: bool) -> None:
        """Set whether a job runs on when the session is closed. Raises ToolError."""
        self.find(id).goes_on = going_on

    async def stop(self, id: str) -> None:
        """End a job and all its child processes. Raises ToolError."""
        await self.find(id).stop()

    async def close(self) -> None:
        """End all jobs except those that are to run on, and let no more begin."""
        self._closed = True
        await asyncio.gather(*(self._end(job) for job in self._jobs.values()))

    async def _end(self, job: Job) -> None:
        if not (job.running and job.goes_on and await job.let_go()):
            await job.stop()
        if isinstance(job, EarlierJob) and not job.running:
            await asyncio.to_thread(job.forget)


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Retrieve a task's exception, so that asyncio does not log it: the job's state tells how it ended."""
    if not task.cancelled():
        task.exception()


def report(job: Job) -> str:
    """A job's state and its new output, as a text for a model."""
    output = job.take_output()
    job.told = job.told or not job.running
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
    """The tool `job`, by which the agent observes, feeds and ends its background commands."""

    name = "job"
    about = "See a background command's new output, wait for its end, send it a line of input, or stop it."
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
        # What a running program does with its input is not known: it may be a shell.
        parts = (Part((Word(arguments.text, False),)),)
        summary = f"send a line to {what}{job.beyond}"
        return AccessRequest("run", arguments.text, True, summary, preview=arguments.text, parts=parts)

    async def execute(self, arguments: JobArguments, context: ToolContext) -> Pieces:
        if arguments.action == "look" and not arguments.id.strip():
            lines = [
                f"{j.id}: {j.state}, {j.seconds:.0f} s: {clip_line(' '.join(j.command.split()), 200)}"
                for j in self._jobs.all_jobs()
            ]
            yield ToolOutput("\n".join(lines) or "No command runs in the background.")
            return
        job = self._jobs.find(arguments.id)
        match arguments.action:
            case "wait":
                await job.wait(min(max(0, arguments.seconds), MAX_WAIT_S))
            case "send":
                await job.send(arguments.text)
                await job.wait(FIRST_LOOK_S, for_output=True)
            case "stop":
                await self._jobs.stop(job.id)
            case "look":
                pass
        yield ToolOutput(report(job))


class JobList:
    """The context provider `jobs`: lists the commands that run in the background or have ended since the model looked at them."""

    source_id = "jobs"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def provide(self) -> str:
        """A line for each job, without numbers that change by themselves; empty for none."""
        lines = [
            f"{j.id} `{clip_line(j.command, 120)}`: {j.state}" for j in self._jobs.all_jobs() if j.running or not j.told
        ]
        return "\n".join(["Commands in the background (tool `job`):", *lines]) if lines else ""
