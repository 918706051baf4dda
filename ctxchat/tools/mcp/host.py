"""The client of the MCP worker process: starts that process, which holds the SDK and all connections, sends it requests and
passes its news on. The process runs while there is a connection. It parses what servers send, so that a large result delays
nothing here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.own_processes import module_command, outside_path
from ctxchat.tools.mcp import protocol
from ctxchat.tools.mcp.protocol import (
    Address,
    CallEnded,
    CallProgress,
    Down,
    ImagePiece,
    LoginPage,
    LoginWanted,
    OfferedPrompt,
    OfferedResource,
    OfferedSkill,
    OfferedTool,
    OlderWanted,
    ResultPiece,
    ServerPrompt,
    ServerQuestion,
    ServerResource,
    ServerSkill,
    ServerTool,
    Up,
)
from ctxchat.tools.processes import child, lines

HOST_END_TIMEOUT_S = 4.0
"""Seconds the process may take to end its connections: more than it gives its servers."""

_PROCESS_GONE = Down(0, "The process that speaks to MCP servers ended.", gone=True)

Inbox = asyncio.Queue[protocol.News]


class ToolReply(msgspec.Struct, frozen=True):
    """The result of a call: its text, and its images as base64. `failed`: the server reports an error."""

    text: str
    failed: bool
    images: tuple[str, ...] = ()


class AskedInCall(msgspec.Struct, frozen=True):
    """A question of a server during a call. `answer` takes the person's answers by field, None to decline."""

    question: ServerQuestion
    answer: Callable[[dict[str, Any] | None], object]


Watch = Callable[[str | AskedInCall], object]

ShowLogin = Callable[[str, Callable[[str], object]], object]
"""Function that shows a person the address to log in at. Its second argument is to be called with the address that the login
redirects to."""


class McpHost:
    """Holds any number of connections in one process, which is started for the first and ended with the last."""

    def __init__(self) -> None:
        self._run_in_use: _ProcessRun | None = None

    @asynccontextmanager
    async def connected(
        self, address: Address, workspace: str, log: Path, show: ShowLogin | None = None
    ) -> AsyncGenerator[ConnectionHandle, None]:
        """A connection for as long as the block lasts; `show` shows a person the page to log in. Raises ToolError with the reason
        where the connection fails, LoginWanted where a login is needed and nobody is there for it."""
        if self._run_in_use is None or self._run_in_use.ended:
            self._run_in_use = _ProcessRun(workspace)
        process_run = self._run_in_use
        async with process_run.used():
            with process_run.inbox() as (id, inbox):
                process_run.send(protocol.Open(id, address, workspace, str(log), show is not None))
                try:
                    connection = ConnectionHandle(process_run, id, inbox, show)
                    await connection.wait_for_tools()
                    yield connection
                finally:
                    await _close_connection(process_run, id, inbox)


class ConnectionHandle:
    """An open connection, identified by `id` in the worker process; calls may run concurrently. `left_out` are tools that cannot
    be offered, each with the reason."""

    def __init__(self, line: _ProcessRun, id: int, inbox: Inbox, show: ShowLogin | None = None) -> None:
        self._line, self._id, self._inbox, self._show = line, id, inbox, show
        self.tools: tuple[OfferedTool, ...] = ()
        self.resources: tuple[OfferedResource, ...] = ()
        self.prompts: tuple[OfferedPrompt, ...] = ()
        self.skills: tuple[OfferedSkill, ...] = ()
        self.left_out: tuple[str, ...] = ()

    async def wait_for_tools(self) -> None:
        """Wait for the server's lists, at first or after a change, and store them. Raises ToolError, or LoginWanted, where the
        connection has ended."""
        tools: list[OfferedTool] = []
        resources: list[OfferedResource] = []
        prompts: list[OfferedPrompt] = []
        skills: list[OfferedSkill] = []
        while True:
            match await self._inbox.get():
                case ServerTool(tool=tool):
                    tools.append(tool)
                case ServerResource(resource=resource):
                    resources.append(resource)
                case ServerPrompt(prompt=prompt):
                    prompts.append(prompt)
                case ServerSkill(skill=skill):
                    skills.append(skill)
                case LoginPage(address=page) if self._show:
                    self._show(page, self._send_callback)
                case Up(left_out=left_out):
                    self.tools, self.resources, self.prompts = tuple(tools), tuple(resources), tuple(prompts)
                    self.skills, self.left_out = tuple(skills), left_out
                    return
                case Down() as down:
                    self._inbox.put_nowait(down)  # so that closing the connection finds it closed already
                    raise (LoginWanted if down.login else ToolError)(down.why or "The server has ended.")
                case _:
                    pass

    async def call(self, tool: str, arguments: dict[str, object], watch: Watch) -> ToolReply:
        """Run a tool; `watch` receives its progress messages and questions. Raises ToolError, ConnectionResetError where the
        server has ended, ConnectionAbortedError where it has forgotten our session and so did nothing, or OlderWanted where it
        needs the older protocol."""
        return await self._reply(lambda id: protocol.RunTool(id, self._id, tool, arguments), watch)

    async def read(self, uri: str) -> ToolReply:
        """Read a resource by its address; `failed` where nothing of it can be shown. Raises as `call`."""
        return await self._reply(lambda id: protocol.ReadResource(id, self._id, uri), _decline_question)

    async def read_skill(self, uri: str, file: str, digest: str) -> ToolReply:
        """Read a skill, or one of its files, if the skill still has this `digest`. Raises as `call`."""
        return await self._reply(lambda id: protocol.ReadSkillFile(id, self._id, uri, file, digest), _decline_question)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> ToolReply:
        """A prompt as the server fills it in with these arguments. Raises as `call`."""
        return await self._reply(lambda id: protocol.GetPrompt(id, self._id, name, arguments), _decline_question)

    async def _reply(self, order: Callable[[int], protocol.Request], watch: Watch) -> ToolReply:
        with self._line.inbox() as (id, inbox):
            self._line.send(order(id))
            finished = False
            try:
                pieces: list[str] = []
                images: dict[int, str] = {}
                while isinstance(news := await inbox.get(), CallProgress | ServerQuestion | ResultPiece | ImagePiece):
                    if isinstance(news, CallProgress):
                        watch(news.text)
                    elif isinstance(news, ServerQuestion):
                        watch(AskedInCall(news, lambda said: self._line.send(protocol.ServerAnswer(id, said))))
                    elif isinstance(news, ResultPiece):
                        pieces.append(news.text)
                    else:
                        images[news.place] = images.get(news.place, "") + news.data
                finished = True
                if isinstance(news, CallEnded):
                    return ToolReply("".join(pieces), news.failed, tuple(images.values()))
            finally:
                if not finished:
                    self._line.send(protocol.End(id))
        why = news.why if isinstance(news, Down) else ""
        if isinstance(news, Down) and news.gone:
            raise ConnectionResetError(why)
        if isinstance(news, Down) and news.forgotten:
            raise ConnectionAbortedError(why)
        if isinstance(news, Down) and news.older:
            raise OlderWanted(why)
        raise (LoginWanted if isinstance(news, Down) and news.login else ToolError)(why)

    def _send_callback(self, address: str) -> None:
        self._line.send(protocol.LoginCallback(self._id, address))


class _ProcessRun:
    """One run of the worker process: it starts for its first user and ends with its last; later users need a new run."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.ended = False
        self._users = 0
        self._next = 0
        self._inboxes: dict[int, Inbox] = {}
        self._stdin: asyncio.StreamWriter | None = None
        self._up = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def used(self) -> AsyncGenerator[None, None]:
        """Keeps the process running for as long as the block lasts, unless the process ends by itself."""
        self._users += 1
        self._task = self._task or asyncio.create_task(self._run(), name="mcp worker")
        try:
            await self._up.wait()
            yield
        finally:
            self._users -= 1
            if not self._users:
                self.ended = True
                await self._hang_up(self._task)

    @contextmanager
    def inbox(self) -> Iterator[tuple[int, Inbox]]:
        """An id for a connection or a call, and the queue that receives its news."""
        self._next += 1
        id, inbox = self._next, Inbox()
        if self.ended:
            inbox.put_nowait(_PROCESS_GONE)
        self._inboxes[id] = inbox
        try:
            yield id, inbox
        finally:
            del self._inboxes[id]

    def send(self, order: protocol.Request) -> None:
        """Write a request to the process, without waiting until it is read: requests are few, and a stuck process would block the
        caller."""
        if self._stdin and not self._stdin.is_closing():
            self._stdin.write(protocol.encode(order) + b"\n")

    async def _hang_up(self, task: asyncio.Task[None]) -> None:
        """Close the process's input, upon which it ends its servers and itself; kill it where it does not."""
        if self._stdin:
            self._stdin.close()
        await asyncio.wait({task}, timeout=HOST_END_TIMEOUT_S)
        task.cancel()
        await asyncio.wait({task})

    async def _run(self) -> None:
        """Start the process and pass its news to the inboxes until it ends; then tell all inboxes, so that nobody waits any
        longer."""
        argv = module_command("ctxchat.tools.mcp.worker")
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            async with child(
                argv, stdin=pipe, stderr=nowhere, env={**os.environ, "PATH": outside_path(self._workspace)}
            ) as process:
                assert process.stdout
                self._stdin = process.stdin
                self._up.set()
                async for line in lines(process.stdout):
                    news = protocol.read_news(line)
                    if inbox := self._inboxes.get(news.id):
                        inbox.put_nowait(news)
                    await asyncio.sleep(0)  # a long answer is many lines: let others have their turn
        except (OSError, msgspec.MsgspecError):
            pass  # `finally` tells all inboxes
        finally:
            self.ended = True
            self._up.set()
            for inbox in self._inboxes.values():
                inbox.put_nowait(_PROCESS_GONE)


def _decline_question(news: str | AskedInCall) -> None:
    """Decline a question: a person is asked only during the agent's tool calls."""
    if isinstance(news, AskedInCall):
        news.answer(None)


async def _close_connection(line: _ProcessRun, id: int, inbox: Inbox) -> None:
    """Have the process close a connection, and wait for that, no longer than `HOST_END_TIMEOUT_S`."""
    line.send(protocol.End(id))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HOST_END_TIMEOUT_S):
            while not line.ended and not isinstance(await inbox.get(), Down):
                pass
