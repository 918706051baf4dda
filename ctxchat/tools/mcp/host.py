"""The other end of the worker: starts the process that holds the SDK and all connections, passes orders to it and news back.

It runs while there is a connection, and what a server sends is read there: however large, nobody here waits for it.
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
"""Seconds the process may take to end what it holds: more than it gives its servers."""

_GONE = Down(0, "The process that speaks to MCP servers ended.", gone=True)

Inbox = asyncio.Queue[protocol.News]


class ToolReply(msgspec.Struct, frozen=True):
    """What a call gave back: its words, and its images as base64."""

    text: str
    failed: bool
    images: tuple[str, ...] = ()


class AskedInCall(msgspec.Struct, frozen=True):
    """What a server asks during a call; `answer` takes what a person says, None for nothing."""

    question: ServerQuestion
    answer: Callable[[dict[str, Any] | None], object]


Watch = Callable[[str | AskedInCall], object]

ShowLogin = Callable[[str, Callable[[str], object]], object]
"""Shows a person the address where they log in; what it is given beside that takes the address they come back to."""


class McpHost:
    """What holds connections, any number of them: its process is started for the first and ended with the last."""

    def __init__(self) -> None:
        self._line: _ProcessRun | None = None

    @asynccontextmanager
    async def connected(
        self, address: Address, workspace: str, log: Path, show: ShowLogin | None = None
    ) -> AsyncGenerator[ConnectionHandle, None]:
        """A connection for as long as the block lasts; with `show`, a person is there to log in. Raises ToolError with the reason
        where there is none, LoginWanted where nobody is there for that."""
        if self._line is None or self._line.ended:
            self._line = _ProcessRun(workspace)
        line = self._line
        async with line.used():
            with line.inbox() as (id, inbox):
                line.send(protocol.Open(id, address, workspace, str(log), show is not None))
                try:
                    connection = ConnectionHandle(line, id, inbox, show)
                    await connection.wait_for_tools()
                    yield connection
                finally:
                    await _closed(line, id, inbox)


class ConnectionHandle:
    """An open one. Calls may be made side by side. `left_out` are tools that cannot be offered, each with why."""

    def __init__(self, line: _ProcessRun, id: int, inbox: Inbox, show: ShowLogin | None = None) -> None:
        self._line, self._id, self._inbox, self._show = line, id, inbox, show
        self.tools: tuple[OfferedTool, ...] = ()
        self.resources: tuple[OfferedResource, ...] = ()
        self.prompts: tuple[OfferedPrompt, ...] = ()
        self.skills: tuple[OfferedSkill, ...] = ()
        self.left_out: tuple[str, ...] = ()

    async def wait_for_tools(self) -> None:
        """Wait until the server has said what it offers, the first time or anew. Raises ToolError where it is down."""
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
                    self._inbox.put_nowait(down)  # for whoever closes it: it is closed
                    raise (LoginWanted if down.login else ToolError)(down.why or "The server has ended.")
                case _:
                    pass

    async def call(self, tool: str, arguments: dict[str, object], watch: Watch) -> ToolReply:
        """Run a tool; `watch` takes what it says and asks on its way. Raises ToolError, ConnectionResetError where the server is
        gone, or ConnectionAbortedError where it has forgotten our session: nothing was done then."""
        return await self._reply(lambda id: protocol.RunTool(id, self._id, tool, arguments), watch)

    async def read(self, uri: str) -> ToolReply:
        """A resource by its address; `failed` where nothing of it can be shown. Raises as `call`."""
        return await self._reply(lambda id: protocol.ReadResource(id, self._id, uri), _declined)

    async def read_skill(self, uri: str, file: str, digest: str) -> ToolReply:
        """A skill, or a file of it, where it is still that of the `digest`. Raises as `call`."""
        return await self._reply(lambda id: protocol.ReadSkillFile(id, self._id, uri, file, digest), _declined)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> ToolReply:
        """A prompt as the server writes it for these arguments. Raises as `call`."""
        return await self._reply(lambda id: protocol.GetPrompt(id, self._id, name, arguments), _declined)

    async def _reply(self, order: Callable[[int], protocol.Request], watch: Watch) -> ToolReply:
        with self._line.inbox() as (id, inbox):
            self._line.send(order(id))
            over = False
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
                over = True
                if isinstance(news, CallEnded):
                    return ToolReply("".join(pieces), news.failed, tuple(images.values()))
            finally:
                if not over:
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
    """One run of the process. It begins when the first wants it, and is hung up by the last; then there is a new one."""

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
        """The process runs for as long as the block lasts, or as it lives."""
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
        """A number for a connection or a call, and where news of it come in."""
        self._next += 1
        id, inbox = self._next, Inbox()
        if self.ended:
            inbox.put_nowait(_GONE)
        self._inboxes[id] = inbox
        try:
            yield id, inbox
        finally:
            del self._inboxes[id]

    def send(self, order: protocol.Request) -> None:
        """Not drained: orders are few, and waiting here would let a stuck process stop the one who gives them."""
        if self._stdin and not self._stdin.is_closing():
            self._stdin.write(protocol.encode(order) + b"\n")

    async def _hang_up(self, task: asyncio.Task[None]) -> None:
        """The process ends its servers where any are left, then itself; and is ended where it does not."""
        if self._stdin:
            self._stdin.close()
        await asyncio.wait({task}, timeout=HOST_END_TIMEOUT_S)
        task.cancel()
        await asyncio.wait({task})

    async def _run(self) -> None:
        """Pass on what the process says until it ends; however that is, nobody waits on."""
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
            pass  # all who wait are told
        finally:
            self.ended = True
            self._up.set()
            for inbox in self._inboxes.values():
                inbox.put_nowait(_GONE)


def _declined(news: str | AskedInCall) -> None:
    """Nobody is asked outside of the agent's own calls."""
    if isinstance(news, AskedInCall):
        news.answer(None)


async def _closed(line: _ProcessRun, id: int, inbox: Inbox) -> None:
    """Have a connection closed, and wait for that."""
    line.send(protocol.End(id))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HOST_END_TIMEOUT_S):
            while not line.ended and not isinstance(await inbox.get(), Down):
                pass
