"""Runs one background command (a job) in a process of its own, the keeper.

The keeper starts the command in the sandbox, writes its output to a file and passes it on while the program listens, and at the
end moves away files that the command put where they could be run later. Thus a command ends when the program is killed, but can
go on after the program's end if it was let go. The keeper's standard input has lines of JSON: a `JobOrder`, then `ToJob`s; when
it is closed, the command is ended, unless it was let go. Its standard output is the command's; its standard error has `JobNews`
as JSON.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from ctxchat.core.permissions import Grant
from ctxchat.tools.processes import MARK, child
from ctxchat.tools.sandbox import Sandbox, taken_away
from ctxchat.tools.shut_in import ShutIn, shut_in

MAX_FILE_BYTES = 50_000_000
"""Bytes of a job's output that are kept on disk; later output is only passed on."""

POLL_S = 0.1
"""Seconds between two checks whether a job has ended."""

RECORD_POLL_S = 0.5
"""Seconds between two checks whether a job that was let go should be ended."""

AFTERGLOW_S = 0.3
"""Seconds for which output is still read after a job ended, if a process that it left behind holds the pipe open."""

MAX_ORDER_BYTES = 16_000_000

_EAGER_BYTES = 1_000_000
"""Bytes of output that are read at full speed; a job that writes more is slowed down, so that it slows nothing else."""

Value = TypeVar("Value")


class JobOrder(msgspec.Struct, frozen=True):
    """A command to run, and how it is shut in (see `shut_in`). Its output is kept in `file`; if it is let go, its `JobRecord` is
    written to `record`. It is ended after `seconds`, None for never. `foreign`: it runs without a sandbox."""

    id: str
    command: str
    argv: tuple[str, ...]
    workspace: str
    sandbox: Sandbox
    session_folder: str
    file: str
    record: str
    beyond: str = ""
    allowed: Grant = Grant()
    read_only: bool = False
    unreadable: tuple[str, ...] = ()
    foreign: bool = False
    seconds: float | None = None


class ToJob(msgspec.Struct, frozen=True):
    """A text for the command's standard input, or (`let_go`) the order that it goes on when the program ends."""

    text: str = ""
    let_go: bool = False


class JobNews(msgspec.Struct, frozen=True):
    """News of the command: it has begun with this `process` id, or has `ended` with this exit `code` (None if it was `stopped`).
    `moved` names the files that were moved away."""

    process: int = 0
    ended: bool = False
    code: int | None = None
    stopped: bool = False
    moved: str = ""


class JobRecord(msgspec.Struct, frozen=True):
    """The file by which a session finds a command again that was let go. The command runs as long as the lock file beside it is
    locked, and is ended when a `.stop` file is put there, or this file is deleted. Times are in seconds since 1970."""

    id: str
    command: str
    file: str
    beyond: str
    began: float
    ended: float = 0.0
    news: JobNews = JobNews()


def as_json(value: object) -> bytes:
    """A value as one line of JSON. File names may hold bytes that are no text, which plain UTF-8 could not encode."""
    return json.dumps(msgspec.to_builtins(value)).encode()


def from_json(line: bytes, of: type[Value]) -> Value:
    """The value of type `of` on a line of JSON. Raises ValueError (msgspec's ValidationError is one)."""
    return msgspec.convert(json.loads(line), of)


def lock_of(record: Path) -> Path:
    return record.with_suffix(".lock")


def stop_of(record: Path) -> Path:
    return record.with_suffix(".stop")


def new_file(file: Path) -> BinaryIO:
    """Open a new private file for writing; fails if the path exists, even as a link."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb", buffering=0)


class _Keeper:
    """Runs one command from its start to its end. `bound` is the pipe by whose end the parent process notices that the command
    was let go."""

    def __init__(self, order: JobOrder, bound: int) -> None:
        self._order, self._bound = order, bound
        self._record = Path(order.record)
        self._process: asyncio.subprocess.Process | None = None
        self._began = time.time()
        self._listener: asyncio.StreamWriter | None = None
        self._lock = -1
        self._received = 0
        self._moved = ""

    async def run(self, orders: asyncio.StreamReader) -> None:
        work = asyncio.create_task(self._run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        following = asyncio.create_task(self._follow(orders, work))
        stopped = False
        try:
            await work
        except (asyncio.CancelledError, TimeoutError):
            stopped = True
        except (OSError, Exception) as problem:  # it could not be begun: there is no code, and why stands in its output
            with suppress(OSError):
                os.write(1, f"{problem}\n".encode("utf-8", "replace"))
        following.cancel()
        code = self._process.returncode if self._process else None
        news = JobNews(ended=True, code=code, stopped=stopped, moved=self._moved)
        if self._lock >= 0:
            self._write_record(news)
        else:
            _tell(news)

    async def _run(self) -> None:
        order = self._order
        async with asyncio.timeout(order.seconds):
            with new_file(Path(order.file)) as kept, ExitStack() as told:
                async with shut_in(
                    order.sandbox,
                    order.argv,
                    order.workspace,
                    {name: value for name, value in os.environ.items() if name != MARK},
                    session_folder=order.session_folder,
                    allowed=order.allowed,
                    read_only=order.read_only,
                    unreadable=order.unreadable,
                ) as command:
                    told.callback(self._note_moved, command)
                    async with child(
                        command.argv,
                        foreign=order.foreign,
                        cwd=order.workspace,
                        env=command.environ,
                        stdin=asyncio.subprocess.PIPE,
                        stderr=asyncio.subprocess.STDOUT,
                    ) as self._process:
                        _tell(JobNews(self._process.pid))
                        await self._until_ended(self._process, kept)

    async def _until_ended(self, process: asyncio.subprocess.Process, kept: BinaryIO) -> None:
        self._listener = await _writer(1) if self._lock < 0 else None
        reader = asyncio.create_task(self._listen(process.stdout, kept))
        try:
            # Not process.wait(): that waits for whoever holds the pipe as well.
            while process.returncode is None:
                await asyncio.wait({reader}, timeout=POLL_S)
                if reader.done():
                    await asyncio.sleep(POLL_S)
            await asyncio.wait({reader}, timeout=AFTERGLOW_S)
        finally:
            reader.cancel()

    async def _listen(self, pipe: asyncio.StreamReader | None, kept: BinaryIO) -> None:
        assert pipe is not None
        while data := await pipe.read(65536):
            if self._received < MAX_FILE_BYTES:
                with suppress(OSError):  # a full disk costs the file its end, and not the job
                    kept.write(data)
            self._received += len(data)
            try:
                if self._listener:
                    self._listener.write(data)
                    await self._listener.drain()
            except ConnectionError:
                self._listener = None
            if self._received > _EAGER_BYTES:
                await asyncio.sleep(0.002)

    def _note_moved(self, command: ShutIn) -> None:
        """Note which files were moved away, however the command ended."""
        if command.taken:
            self._moved = taken_away(command.taken, command.kept)

    async def _follow(self, orders: asyncio.StreamReader, work: asyncio.Task[None]) -> None:
        """Pass texts on to the command, and end it when the input is closed, or after it was let go when its record says so."""
        while line := await orders.readline():
            to = from_json(line, ToJob)
            if to.let_go:
                try:
                    self._let_go()
                except OSError:  # it could not be found again
                    work.cancel()
            elif self._process and self._process.stdin:
                self._process.stdin.write(to.text.encode("utf-8", "replace"))
        if self._lock < 0:
            work.cancel()
            return
        if self._process and self._process.stdin:
            self._process.stdin.close()
        while self._record.exists() and not stop_of(self._record).exists():  # noqa: ASYNC110  (whoever says so is another process)
            await asyncio.sleep(RECORD_POLL_S)
        work.cancel()

    def _let_go(self) -> None:
        self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(lock_of(self._record), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._write_record(JobNews())
        os.close(self._bound)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        listener, self._listener = self._listener, None
        if listener:
            cast("asyncio.WriteTransport", listener.transport).abort()

    def _write_record(self, news: JobNews) -> None:
        """Write the record of a command that was let go; not at its end if the record was deleted, since its session is gone."""
        order = self._order
        ended = time.time() if news.ended else 0.0
        record = JobRecord(order.id, order.command, order.file, order.beyond, self._began, ended, news)
        if news.ended and not self._record.exists():
            return
        beside = self._record.with_suffix(".new")
        beside.write_bytes(as_json(record))
        beside.replace(self._record)


def _tell(news: JobNews) -> None:
    with suppress(OSError):
        os.write(2, as_json(news) + b"\n")


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _hold_command(bound: int) -> None:
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(limit=MAX_ORDER_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), os.fdopen(0, "rb", buffering=0))
    order = from_json(await orders.readline(), JobOrder)
    await _Keeper(order, bound).run(orders)


def main() -> None:
    """Fork, and run the command in the child. The parent ends as soon as the command ended or was let go, so the program sees
    both as the end of the process it started; it can end the child only through its input."""
    read_end, bound = os.pipe()
    if os.fork():
        for descriptor in (0, 1, 2, bound):
            os.close(descriptor)
        os.read(read_end, 1)
        os._exit(0)
    os.close(read_end)
    os.setsid()
    asyncio.run(_hold_command(bound))


if __name__ == "__main__":
    main()
