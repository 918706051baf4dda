"""The client of the litellm worker: starts the process that holds litellm, sends it calls and receives the pieces of replies.

Concurrent calls share one process. If it dies or ignores a cancel, its calls fail, and the next call starts a new process. Knows
nothing of litellm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.ports import ModelPiece, ReplyEnd
from ctxchat.models import protocol
from ctxchat.models.reply import joined
from ctxchat.own_processes import module_command

CANCEL_SECONDS = 1.0
"""Seconds that a cancelled call may keep its connection before the process is killed."""

Inbox = asyncio.Queue[protocol.News]


class ModelProcess:
    """Runs the worker process and its calls. `log`: the file for what libraries print; None discards it. `environment`: the
    process's environment variables."""

    def __init__(self, log: Path | None = None, environment: Mapping[str, str] = os.environ) -> None:
        self._log = log
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._inboxes: dict[int, Inbox] = {}
        self._next = 1
        self._ending = False  # it was killed, and its reader has not finished
        self._warm = asyncio.Event()  # litellm is loaded
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """The process id, 0 when no process runs."""
        return self._process.pid if self._process and self._process.returncode is None else 0

    async def start(self) -> None:
        """Start the process if none runs, without waiting until it has loaded litellm. Raises ModelError."""
        async with self._starting:
            if self._ending and self._reader:
                await asyncio.wait({self._reader})  # errors are reported to the calls
            if self._reader and not self._reader.done():
                return
            self._warm.clear()
            self._ending = False
            try:
                self._process = await self._spawn()
            except OSError as error:
                raise ModelError(
                    f"The model process does not start: {error}",
                    "`ctxchat doctor` says what is missing.",
                    kind="worker",
                ) from error
            self._reader = asyncio.create_task(self._read_process(self._process))

    async def _loaded(self, reader: asyncio.Task[None] | None) -> None:
        """Wait until litellm is loaded, or until the process ends."""
        warm = asyncio.create_task(self._warm.wait())
        await asyncio.wait({warm, reader} if reader else {warm}, return_when=asyncio.FIRST_COMPLETED)
        warm.cancel()

    async def stream(self, arguments: dict[str, object], timeout: float) -> AsyncGenerator[ModelPiece, None]:
        """One reply: pieces, then one ReplyEnd. `timeout` in seconds without a byte. Raises ModelError. Closing the generator
        closes the connection within a second."""
        await self.start()
        id, inbox = self._next, Inbox()
        self._next += 1
        self._inboxes[id] = inbox
        over = False
        try:
            self._send(protocol.Call(id, arguments, timeout))
            while not over:
                arrived = [await inbox.get()]
                while not inbox.empty():
                    arrived.append(inbox.get_nowait())
                for piece in joined(news.piece for news in arrived if isinstance(news, protocol.Piece)):
                    over = isinstance(piece, ReplyEnd)
                    yield piece
                if not over and not isinstance(arrived[-1], protocol.Piece):
                    over = True
                    raise _end_of(arrived)
        finally:
            if over or id not in self._inboxes:
                self._inboxes.pop(id, None)
            else:
                self._cancel(id, inbox)

    async def close(self) -> None:
        """End the process and the tasks that read from it."""
        async with self._starting:  # a start under way finishes first
            process, self._process = self._process, None
        if process and process.returncode is None:
            try:
                if process.stdin:
                    process.stdin.close()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 0.5)
            finally:
                _kill(process)
            await process.wait()
        if self._reader:
            await asyncio.gather(self._reader, *self._watches, return_exceptions=True)

    async def _spawn(self) -> asyncio.subprocess.Process:
        """Start the worker process."""
        log = await asyncio.to_thread(_open_log, self._log)
        try:
            return await asyncio.create_subprocess_exec(
                *module_command("ctxchat.models.litellm_worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(self._environment),
                start_new_session=True,  # ctrl+c in the terminal must not reach it
            )
        finally:
            os.close(log)

    def _send(self, request: protocol.Request) -> None:
        """Write a request without draining the pipe: requests are few, and a stuck process must not block the caller."""
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(protocol.encode(request) + b"\n")

    async def _read_process(self, process: asyncio.subprocess.Process) -> None:
        """Deliver the process's messages until it ends. However this ends, the process is killed and no call is left waiting."""
        assert process.stdout is not None
        buffer = b""
        try:
            while data := await process.stdout.read(1 << 20):
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    self._handle_line(line)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), CANCEL_SECONDS)
        finally:
            _kill(process)  # if it still lives, nobody reads it any more
            self._fail(self._death(process), *self._inboxes)

    def _handle_line(self, line: bytes) -> None:
        """Deliver one line. A line that cannot be parsed fails the call whose id it has, and all calls where it has none."""
        try:
            news = protocol.read_news(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            ids = _id_in(line) or tuple(self._inboxes)
            unread = "The model process said something that cannot be read."
            self._fail(ModelError(unread, "Send the message again.", kind="worker"), *ids)
            for id in ids:
                self._send(protocol.Cancel(id))
        else:
            self._deliver(news)

    def _fail(self, error: ModelError, *calls: int) -> None:
        for id in calls:
            if inbox := self._inboxes.pop(id, None):
                inbox.put_nowait(protocol.failed(id, error))

    def _deliver(self, news: protocol.News) -> None:
        """Hand news to the call it is for."""
        if isinstance(news, protocol.Ready):
            self._warm.set()
        elif inbox := self._inboxes.get(news.id):
            inbox.put_nowait(news)

    def _death(self, process: asyncio.subprocess.Process) -> ModelError:
        hint = f"It is started again with the next request; what it said is in {self._log}." if self._log else ""
        return ModelError(f"The model process ended (exit code {process.returncode}).", hint, kind="worker")

    def _cancel(self, id: int, inbox: Inbox) -> None:
        """Cancel a call in the worker, and end the worker where it ignores that."""
        self._send(protocol.Cancel(id))
        watch = asyncio.create_task(self._enforce_cancel(id, inbox, self._process, self._reader))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _enforce_cancel(
        self, id: int, inbox: Inbox, process: asyncio.subprocess.Process | None, reader: asyncio.Task[None] | None
    ) -> None:
        """Kill the process if a cancelled call is not over in time. A process that is still loading litellm holds no connection
        and may be slow to respond, so the time counts from when it has loaded."""
        await self._loaded(reader)
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                while not isinstance(await inbox.get(), protocol.StreamEnded) and id in self._inboxes:
                    pass
        except TimeoutError:
            if process and process is self._process and process.returncode is None:
                self._ending = True
                process.kill()
        self._inboxes.pop(id, None)


class _Addressed(msgspec.Struct):
    """The part of a line that says which call it belongs to."""

    id: int


def _id_in(line: bytes) -> tuple[int, ...]:
    """The id of the call that a line is for; empty for none."""
    try:
        return (msgspec.json.decode(line, type=_Addressed).id,)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()


def _end_of(arrived: Sequence[protocol.News]) -> ModelError:
    """The error for a reply that ended without a ReplyEnd."""
    failed = next((news for news in arrived if isinstance(news, protocol.Failure)), None)
    if failed:
        return failed.error()
    return ModelError("The model process ended a reply without a word.", "Send the message again.", kind="worker")


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process if it lives, by closing its transport, which has no public name: a transport still open when the event
    loop ends would be closed too late, by the garbage collector."""
    if transport := getattr(process, "_transport", None):
        transport.close()


def _open_log(path: Path | None) -> int:
    """A file descriptor for the worker's log."""
    if path is None:
        return os.open(os.devnull, os.O_WRONLY)
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
