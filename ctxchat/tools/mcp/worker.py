"""The process that holds the connections to MCP servers: orders on standard input, news on standard output, the end when the
input ends. Run with `python -P -m`. Knows no session."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ctxchat.core.errors import CtxchatError, first_problem
from ctxchat.core.secrets import masked
from ctxchat.tools.mcp.connection import Connection, connected
from ctxchat.tools.mcp.http_transport import forget_proxies
from ctxchat.tools.mcp.protocol import (
    Address,
    CallEnded,
    CallProgress,
    Down,
    End,
    GetPrompt,
    ImagePiece,
    LoginCallback,
    LoginPage,
    LoginWanted,
    News,
    OlderWanted,
    Open,
    QuestionField,
    ReadResource,
    ReadSkillFile,
    Request,
    ResultPiece,
    RunTool,
    ServerAnswer,
    ServerPrompt,
    ServerQuestion,
    ServerResource,
    ServerSkill,
    ServerTool,
    Up,
    encode,
    read_request,
)
from ctxchat.tools.processes import lines
from ctxchat.tools.text import clip, without_zeros

MAX_RESULT_CHARS = 10_000_000
"""Characters of one result that are passed on; of a longer one head and tail, with a line between them that says so."""

_PIECE_CHARS = 100_000
"""Characters said at once: whoever listens has other things to do."""

_TOOL_CHANGE_PAUSE_S = 0.1
"""Seconds after a server said that its tools are others before they are asked for: it may say so once for each."""

_CLOSING_TIMEOUT_S = 3.0
"""Seconds for all servers together to end."""


class McpWorker:
    """The connections and calls under way, by their numbers."""

    def __init__(self, out: asyncio.StreamWriter) -> None:
        self._out = out
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._connections: dict[int, tuple[Connection, Address]] = {}
        self._leave: dict[int, asyncio.Event] = {}
        self._login_callbacks: dict[int, Callable[[str], object]] = {}
        self._asked: dict[int, asyncio.Future[ServerAnswer]] = {}

    def start_request(self, order: Request) -> None:
        """Begin to do as told."""
        match order:
            case Open():
                self._leave[order.id] = asyncio.Event()
                self._start_task(order.id, self._serve(order))
            case RunTool() | ReadResource() | ReadSkillFile() | GetPrompt():
                self._start_task(order.id, self._call(order))
            case LoginCallback():
                if callback := self._login_callbacks.get(order.id):
                    callback(order.address)
            case ServerAnswer():
                self._answer(order)
            case End():
                self._answer(ServerAnswer(order.id))
                self._end_task(order.id)

    def _answer(self, said: ServerAnswer) -> None:
        if (waiting := self._asked.get(said.id)) and not waiting.done():
            waiting.set_result(said)

    async def close(self) -> None:
        """End everything, and wait for that."""
        for id in list(self._tasks):
            self._end_task(id)
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_CLOSING_TIMEOUT_S)

    def _start_task(self, id: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[id] = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    def _end_task(self, id: int) -> None:
        """An open connection closes by itself; what is still opening, and a call, is cancelled, once: a second time would
        reach the ending of the server's process, and leave it behind."""
        leave, task = self._leave.get(id), self._tasks.get(id)
        if leave and leave.is_set():
            return
        if leave:
            leave.set()
        if task and id not in self._connections:
            task.cancel()

    async def _serve(self, order: Open) -> None:
        """The whole life of a connection in one task: the SDK wants it opened and closed by the same."""
        down = Down(order.id)

        async def show(page: str, callback: Callable[[str], object]) -> None:
            self._login_callbacks[order.id] = callback
            await self._send_news(LoginPage(order.id, page))

        try:
            page = show if order.login else None
            async with connected(order.address, order.workspace, Path(order.log), page) as connection:
                await self._tell_tools(order.id, connection)
                self._connections[order.id] = connection, order.address
                watching = [
                    asyncio.create_task(self._follow(order.id, connection)),
                    asyncio.create_task(connection.watch()),
                ]
                try:
                    await self._leave[order.id].wait()
                finally:
                    for task in watching:
                        task.cancel()
                    await asyncio.gather(*watching, return_exceptions=True)
        except asyncio.CancelledError:
            pass  # as told
        except Exception as problem:  # whatever a foreign server or the SDK comes up with
            down = Down(order.id, reason(problem), login=isinstance(problem, LoginWanted))
        finally:
            self._connections.pop(order.id, None)
            self._login_callbacks.pop(order.id, None)
        await self._send_news(down)
        self._leave.pop(order.id, None)

    async def _tell_tools(self, id: int, connection: Connection) -> None:
        offered, left_out = await connection.tools()
        for tool in offered:
            await self._send_news(ServerTool(id, tool))
        for resource in connection.resources:
            await self._send_news(ServerResource(id, resource))
        for prompt in connection.prompts:
            await self._send_news(ServerPrompt(id, prompt))
        for skill in connection.skills.values():
            await self._send_news(ServerSkill(id, skill.offered))
        await self._send_news(Up(id, tuple(left_out)))

    async def _follow(self, id: int, connection: Connection) -> None:
        """Tell of the tools anew whenever they are others. A server that cannot say which keeps those it had."""
        while True:
            await connection.changed.wait()
            await asyncio.sleep(_TOOL_CHANGE_PAUSE_S)
            connection.changed.clear()
            with suppress(Exception):
                await self._tell_tools(id, connection)

    async def _call(self, order: RunTool | ReadResource | ReadSkillFile | GetPrompt) -> None:
        try:
            if order.connection not in self._connections:
                raise ConnectionResetError("The server has ended.")
            connection, address = self._connections[order.connection]

            async def progress(text: str) -> None:
                await self._send_news(CallProgress(order.id, text))

            one_by_one = asyncio.Lock()  # or an answer would go to another question than the one it was given to

            async def ask(text: str, fields: tuple[QuestionField, ...]) -> dict[str, Any] | None:
                with limit.paused():
                    async with one_by_one:
                        waiting = self._asked[order.id] = asyncio.get_running_loop().create_future()
                        try:  # also beyond the end of the call: it may be another's
                            await self._send_news(ServerQuestion(order.id, text, fields))
                            return (await waiting).content
                        finally:
                            del self._asked[order.id]

            async with asyncio.timeout(address.timeout) as timeout:
                limit = CallLimit(timeout)
                with connection.asked_with(ask, limit.paused):
                    match order:
                        case RunTool():
                            result = await connection.call(order.tool, order.arguments, progress)
                        case ReadResource():
                            result = await connection.read(order.uri)
                        case ReadSkillFile():
                            result = await connection.read_skill(order.uri, order.file, order.digest)
                        case GetPrompt():
                            result = await connection.prompt(order.name, dict(order.arguments))
            text = clip(without_zeros(result.text), MAX_RESULT_CHARS)
            for start in range(0, len(text), _PIECE_CHARS):
                await self._send_news(ResultPiece(order.id, text[start : start + _PIECE_CHARS]))
            for place, image in enumerate(result.images):
                for start in range(0, len(image), _PIECE_CHARS):
                    await self._send_news(ImagePiece(order.id, place, image[start : start + _PIECE_CHARS]))
            await self._send_news(CallEnded(order.id, result.failed))
        except ConnectionAbortedError as problem:
            await self._send_news(Down(order.id, str(problem), forgotten=True))
        except ConnectionResetError:
            await self._send_news(Down(order.id, gone=True))
        except Exception as problem:  # as above
            login, older = isinstance(problem, LoginWanted), isinstance(problem, OlderWanted)
            await self._send_news(Down(order.id, reason(problem), login=login, older=older))

    async def _send_news(self, news: News) -> None:
        self._out.write(encode(news) + b"\n")
        await self._out.drain()


class CallLimit:
    """The time a call may take, which does not go by while a person is asked for it, however many questions wait."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._now = asyncio.get_running_loop().time
        self._questions = 0
        self._left = 0.0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A question waits for as long as this block lasts."""
        due = self._timeout.when()
        if not self._questions and due is not None:
            self._left = due - self._now()
            self._reschedule(None)
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._reschedule(self._now() + self._left)

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the call has ended meanwhile
            self._timeout.reschedule(when)


def reason(problem: BaseException) -> str:
    """Why something failed, in one sentence."""
    match problem := first_problem(problem):
        case CtxchatError():
            return str(problem)
        case TimeoutError():
            return "It did not answer in time."
        case FileNotFoundError():
            return f"There is no program {problem.filename or ''}.".replace(" .", ".")
        case OSError():
            return f"{problem.strerror or problem}."
        case _:
            words = masked(" ".join(str(problem).split()))
            return words[:300] if words else type(problem).__name__


async def main() -> None:
    """Orders until there are no more."""
    forget_proxies()
    loop = asyncio.get_running_loop()
    # Whatever prints goes nowhere near the news: what we speak through is a copy that nobody else knows.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
    worker = McpWorker(asyncio.StreamWriter(transport, protocol, None, loop))
    async for line in lines(orders):
        worker.start_request(read_request(line))
    await worker.close()


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)  # the libraries take long to say good-bye
