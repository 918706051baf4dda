"""The other end of the worker: starts the process that holds litellm, passes calls to it and their pieces back.

Many calls at once share one process. One that dies, or does not obey a cancel, fails what was under way and is started
anew with the next call. Knows nothing of litellm.
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
"""How long a cancelled call may keep its connection before the process is ended."""

Inbox = asyncio.Queue[protocol.News]


class ModelProcess:
    """A handle on the process. `log`: where it may write what libraries print; None for nowhere. `environment`: its variables."""

    def __init__(self, log: Path | None = None, environment: Mapping[str, str] = os.environ) -> None:
        self._log = log
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._inboxes: dict[int, Inbox] = {}
        self._next = 1
        self._ending = False
        self._warm = asyncio.Event()
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """The process's number, 0 when none runs."""
        return self._process.pid if self._process and self._process.returncode is None else 0

    async def start(self) -> None:
        """Start the process where none runs; it loads litellm by itself and this does not wait for it. Raises ModelError."""
        async with self._starting:
            if self._ending and self._reader:
                await asyncio.wait({self._reader})  # whatever it ended with
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
        """Until litellm is loaded, or nobody can say so any more."""
        warm = asyncio.create_task(self._warm.wait())
        await asyncio.wait({warm, reader} if reader else {warm}, return_when=asyncio.FIRST_COMPLETED)
        warm.cancel()

    async def stream(self, arguments: dict[str, object], timeout: float) -> AsyncGenerator[ModelPiece, None]:
        """One reply: pieces, then one ReplyEnd. Raises ModelError. Closing it closes the connection within a second."""
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
        """End the process and what hangs on it."""
        async with self._starting:  # one that is on its way is there first
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
        log = await asyncio.to_thread(_open_log, self._log)
        try:
            return await asyncio.create_subprocess_exec(
                *module_command("ctxchat.models.litellm_worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(self._environment),
                start_new_session=True,  # ctrl+c in the terminal is not for it
            )
        finally:
            os.close(log)

    def _send(self, order: protocol.Request) -> None:
        """Not drained: orders are few, and waiting here would let a stuck process stop the one who gives them."""
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(protocol.encode(order) + b"\n")

    async def _read_process(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what the process says until it ends. However this ends, no call waits on and the process is gone."""
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
            _kill(process)  # if it lives, nobody hears it any more
            self._fail(self._death(process), *self._inboxes)

    def _handle_line(self, line: bytes) -> None:
        """A line that cannot be read fails the call it is about, and every call where not even that can be told."""
        try:
            news = protocol.read_news(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            about = _about(line) or tuple(self._inboxes)
            unread = "The model process said something that cannot be read."
            self._fail(ModelError(unread, "Send the message again.", kind="worker"), *about)
            for id in about:
                self._send(protocol.Cancel(id))
        else:
            self._deliver(news)

    def _fail(self, error: ModelError, *calls: int) -> None:
        for id in calls:
            if inbox := self._inboxes.pop(id, None):
                inbox.put_nowait(protocol.failed(id, error))

    def _deliver(self, news: protocol.News) -> None:
        if isinstance(news, protocol.Ready):
            self._warm.set()
        elif inbox := self._inboxes.get(news.id):
            inbox.put_nowait(news)

    def _death(self, process: asyncio.subprocess.Process) -> ModelError:
        hint = f"It is started again with the next request; what it said is in {self._log}." if self._log else ""
        return ModelError(f"The model process ended (exit code {process.returncode}).", hint, kind="worker")

    def _cancel(self, id: int, inbox: Inbox) -> None:
        self._send(protocol.Cancel(id))
        watch = asyncio.create_task(self._obeyed(id, inbox, self._process, self._reader))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _obeyed(
        self, id: int, inbox: Inbox, process: asyncio.subprocess.Process | None, reader: asyncio.Task[None] | None
    ) -> None:
        """See that a cancelled call is over in time; the process that holds on to it is ended. While it loads it has no
        connection to hold, and may be deaf for as long as that takes."""
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
    """As much of a line as says which call it is about."""

    id: int


def _about(line: bytes) -> tuple[int, ...]:
    try:
        return (msgspec.json.decode(line, type=_Addressed).id,)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()


def _end_of(arrived: Sequence[protocol.News]) -> ModelError:
    """Why a reply ended that has no end."""
    failed = next((news for news in arrived if isinstance(news, protocol.Failure)), None)
    if failed:
        return failed.error()
    return ModelError("The model process ended a reply without a word.", "Send the message again.", kind="worker")


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill it where it lives. Its transport is closed with it, which has no public name: one still open when the loop ends would
    be closed by the collector, too late."""
    if transport := getattr(process, "_transport", None):
        transport.close()


def _open_log(path: Path | None) -> int:
    if path is None:
        return os.open(os.devnull, os.O_WRONLY)
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
