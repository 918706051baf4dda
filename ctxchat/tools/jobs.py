"""Background commands: begun by `shell` with `background`, looked at, waited for, fed and ended by the tool `job`, and told to
the model by a context provider when they end. They run in the sandbox like any command, each held by a process of its own
(`job_keeper`), and end with the session, but for those that a person lets go: these are there again when it is opened next.
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
"""Seconds a call waits for the first output of a job, or its end."""

MAX_WAIT_S = 600

POLL_S = 0.1
"""Seconds between two looks whether a job that was let go has ended."""

BEGIN_TIMEOUT_S = 30.0
"""Seconds until a command runs that has to be shut in: a large folder is walked for that."""

END_TIMEOUT_S = 30.0
"""Seconds that the end of a job may take, what it moved taken away again among it."""

_EAGER_BYTES = 1_000_000
"""Read at full speed; a job that writes more is slowed down so that nothing else is."""

SHUT_OFF = (
    "[it listens on port {ports}, in a network of its own: neither you nor the user reach it. Let it be reached by beginning it "
    "with `network`]"
)


class Job:
    """One background command. `file` is where all of its output is kept, `beyond` in words what it may do beyond the sandbox."""

    def __init__(self, id: str, command: str, file: Path, cap: int, beyond: str = "") -> None:
        self.id, self.command, self.file, self.beyond = id, command, file, beyond
        self.began, self.ended = time.time(), 0.0
        self.news = JobNews()
        self.received = 0
        self.told = False
        """The model knows that it has ended."""
        self.goes_on = False
        """It is let go when its session is closed."""
        self._letting_go = False
        self.left = False
        """It has been let go."""
        self.task: asyncio.Task[None] | None = None
        self._keeper: asyncio.subprocess.Process | None = None
        self._cap = cap
        self._unseen, self._redraws = HeadTail(cap), Redraws()
        self._fresh = asyncio.Event()
        self._begun = asyncio.Event()

    @property
    def running(self) -> bool:
        return not self.ended

    @property
    def moved(self) -> str:
        """A line that names what it put where it could run later, and where that lies now."""
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
        """How long it has run, or ran."""
        return max(0.0, (self.ended or time.time()) - self.began)

    @property
    def row(self) -> JobRow:
        """What everybody outside the tools sees of it."""
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
        """From its start until it has ended, however that comes, or is let go."""
        try:
            await self._run(order, environ)
        finally:
            self.ended = 0.0 if self.left else time.time()
            self._begun.set()
            self._fresh.set()

    async def _run(self, order: JobOrder, environ: Mapping[str, str]) -> None:
        pipe = asyncio.subprocess.PIPE
        argv = module_command("ctxchat.tools.job_keeper")
        async with child(argv, env=environ, stdin=pipe, stderr=pipe) as keeper:
            assert keeper.stdin and keeper.stdout and keeper.stderr
            self._keeper = keeper
            parts = asyncio.gather(self._listen(keeper.stdout), self._hear(keeper.stderr))
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

    async def _listen(self, pipe: asyncio.StreamReader) -> None:
        while data := await pipe.read(65536):
            self.received += len(data)
            self._unseen.add(self._redraws.add(data))
            self._fresh.set()
            if self.received > _EAGER_BYTES:
                await asyncio.sleep(0.002)

    async def _hear(self, pipe: asyncio.StreamReader) -> None:
        async for line in lines(pipe):
            with suppress(ValueError):
                self.news = from_json(line, JobNews)
            self._begun.set()

    def take_output(self) -> str:
        """What came since this was asked last, the middle of very much left out."""
        self._unseen.add(self._redraws.remaining())
        text = without_zeros(self._unseen.text().rstrip("\n"))
        self._unseen, self._redraws = HeadTail(self._cap), Redraws()
        return text

    def ports_shut_off(self) -> Sequence[int]:
        """Ports that it listens on in a network of its own, where nothing else reaches them."""
        return tuple(sorted(listening_apart(self.news.process))) if self.running and self.news.process else ()

    async def begun(self) -> None:
        """Until it runs, or has ended before."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._begun.wait(), BEGIN_TIMEOUT_S)

    async def wait(self, seconds: float, *, for_output: bool = False) -> None:
        """Until it has ended or the time is up; `for_output`: or something new came."""
        deadline = time.monotonic() + seconds
        while self.running and (left := deadline - time.monotonic()) > 0:
            self._fresh.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._fresh.wait(), min(left, 1.0) if not for_output else left)
            if for_output:
                return

    async def send(self, text: str) -> None:
        """A line for its input. Raises ToolError where it takes none."""
        await self._say(ToJob(f"{text}\n"))

    async def let_go(self) -> bool:
        """Let it go on by itself; False where that cannot be written down, or it has ended."""
        self._letting_go = True
        with suppress(ToolError):
            await self._say(ToJob(let_go=True))
            if self.task:
                await asyncio.wait({self.task}, timeout=END_TIMEOUT_S)
        return self.left

    async def _say(self, to: ToJob) -> None:
        pipe = self._keeper.stdin if self._keeper else None
        if not self.running or pipe is None or pipe.is_closing():
            raise ToolError(f"{self.id} takes no input: it is {self.state}.")
        try:
            pipe.write(as_json(to) + b"\n")
            await asyncio.wait_for(pipe.drain(), FIRST_LOOK_S)
        except (ConnectionError, TimeoutError) as problem:
            raise ToolError(f"{self.id} does not read its input.", "Look at its output first.") from problem

    async def stop(self) -> None:
        """End it and all it began."""
        if self.task and not self.task.done():
            self.task.cancel()
            await asyncio.wait({self.task})


class EarlierJob(Job):
    """One that was let go when its session was closed last; its output is read from its file."""

    def __init__(self, record: JobRecord, place: Path, cap: int) -> None:
        super().__init__(record.id, record.command, Path(record.file), cap, record.beyond)
        self.goes_on, self.place = True, place
        self.began = record.began
        self._read = 0
        self.look()

    def look(self) -> None:
        """How it stands now. Blocks, not for long."""
        if not self.ended:
            alive = _is_held(lock_of(self.place))
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
        """By a word in its folder: a number that its process had may be another's by now."""
        stop_of(self.place).touch(mode=0o600)
        await self.wait(END_TIMEOUT_S)

    def forget(self) -> None:
        """Leave nothing of one that has ended, but its output."""
        for file in (self.place, lock_of(self.place), stop_of(self.place)):
            file.unlink(missing_ok=True)


def _is_held(lock: Path) -> bool:
    """Somebody has that lock, which the system gives back however they end."""
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
"""In the session's folder: what is known of those that were let go."""


class Jobs:
    """The background commands of one session, whose `folder` has those that were let go before. Fulfils
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
        """The newest first."""
        for job in self._jobs.values():
            if isinstance(job, EarlierJob):
                job.look()
        return [job.row for job in reversed(self._jobs.values())]

    def find(self, id: str) -> Job:
        """Raises ToolError."""
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
        """Begin it; `seconds` after which it is ended, None for never. Raises ToolError."""
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
        job.task.add_done_callback(_retrieve)
        await job.begun()
        return job

    def keep(self, id: str, *, going_on: bool) -> None:
        """Whether it goes on when the session is closed. Raises ToolError."""
        self.find(id).goes_on = going_on

    async def stop(self, id: str) -> None:
        """End it and all it began. Raises ToolError."""
        await self.find(id).stop()

    async def close(self) -> None:
        """End all of them but those that are to go on; none begins any more."""
        self._closed = True
        await asyncio.gather(*(self._end(job) for job in self._jobs.values()))

    async def _end(self, job: Job) -> None:
        if not (job.running and job.goes_on and await job.let_go()):
            await job.stop()
        if isinstance(job, EarlierJob) and not job.running:
            await asyncio.to_thread(job.forget)


def _retrieve(task: asyncio.Task[None]) -> None:
    """What ended a job is told by its state."""
    if not task.cancelled():
        task.exception()


def report(job: Job) -> str:
    """What there is to know of a job, for a model: its state, then what is new of its output."""
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
                await job.send(arguments.text)
                await job.wait(FIRST_LOOK_S, for_output=True)
            case "stop":
                await self._jobs.stop(job.id)
            case "look":
                pass
        yield ToolOutput(report(job))


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
