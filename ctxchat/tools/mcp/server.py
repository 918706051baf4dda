"""One MCP server over the life of a program: starts it in the background, offers its tools while it is connected, and restarts it
when it dies. A dead or slow server costs its tools and nothing else.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Literal, cast

import msgspec

from ctxchat.core.call_arguments import MAX_TOOL_NAME_CHARS, plain_name
from ctxchat.core.errors import ToolError
from ctxchat.core.images import from_base64
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput, ToolPiece, ToolPort, ToolQuestion, ToolText
from ctxchat.core.prompt_files import MAX_DESCRIPTION_CHARS as MAX_PROMPT_ABOUT_CHARS
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.tool_schemas import plain_keys, restored_keys
from ctxchat.core.view import ToolSpec
from ctxchat.tools.mcp.host import AskedInCall, ConnectionHandle, McpHost, ShowLogin, ToolReply, Watch
from ctxchat.tools.mcp.protocol import (
    MAX_EARLIER_LOG_CHARS,
    Address,
    LoginWanted,
    OfferedPrompt,
    OfferedResource,
    OfferedSkill,
    OfferedTool,
    OlderWanted,
    QuestionField,
)
from ctxchat.tools.text import clip, clip_line

State = Literal["off", "starting", "ready", "failed"]

START_TIMEOUT_S = 30.0
"""Seconds a server may take to start: some download themselves first."""

LOGIN_TIMEOUT_S = 600.0
"""Seconds a person has to log in."""

LATE_START_S = 2.0
"""Seconds after which a start is shown as late."""

MAX_DEATHS_IN_A_ROW = 3
"""Calls in a row during which a server may die; after that only a person can start it again."""

SERVER_END_TIMEOUT_S = 2.0
"""Seconds a server may take to end: more than a process that does not react gets (`connection.PROCESS_END_TIMEOUT_S`), or that
process would be left running."""


MAX_QUESTIONS = 10
"""Questions of a server during one call that are put to a person; further ones are declined."""

MAX_DESCRIPTION_CHARS = 4000
"""Characters of a tool's description."""

_UNTYPABLE = re.compile(r"[^\w.-]+")
"""Characters that are replaced in a prompt's name, so that a person can type it after a slash."""


class McpTool:
    """A tool of a server, as a `core.ports.ToolPort`. `name` is the name by which models call it."""

    def __init__(self, server: McpServer, offered: OfferedTool, name: str) -> None:
        self._server = server
        self._tool = offered.name
        self._schema, self._renamed = plain_keys(offered.schema)
        self.spec = ToolSpec(name, clip(offered.description, MAX_DESCRIPTION_CHARS), self._schema)

    def reads(self, arguments: Mapping[str, object]) -> bool:
        """False: what a server's tool does is not known."""
        return False

    @property
    def server(self) -> str:
        """The name of the server it belongs to."""
        return self._server.name

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        """A request for network access. A rule for it covers this tool with any arguments."""
        written = msgspec.json.encode(self._server_arguments(arguments)).decode()
        summary = f"{self._server.name}: {clip_line(self._tool, 80)} {clip_line(written, 160)}"
        return AccessRequest("network", self.spec.name, False, summary, preview=written, patterns=(self.spec.name,))

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolPiece]:
        """Call the tool: its progress messages and questions, then the whole result in one piece. The caller keeps a result that
        is too long for the context window in a file. Raises ToolError."""
        said: asyncio.Queue[str | AskedInCall] = asyncio.Queue()
        calling = asyncio.create_task(self._server.call(self._tool, self._server_arguments(arguments), said.put_nowait))
        calling.add_done_callback(lambda _: said.put_nowait(""))
        questions = 0
        try:
            while news := await said.get():
                if isinstance(news, str):
                    yield ToolText(news)
                elif (questions := questions + 1) > MAX_QUESTIONS:
                    news.answer(None)
                else:
                    async with aclosing(self._ask_person(news)) as asking:
                        async for question in asking:
                            yield question
            reply = await calling
        finally:
            if not calling.done():
                calling.cancel()
                await asyncio.wait({calling})
        images = tuple(from_base64(image) for image in reply.images)
        text = reply.text or ("" if images else "[no output]")
        yield ToolOutput(text, "error" if reply.failed else "ok", images=images)

    async def _ask_person(self, asked: AskedInCall) -> AsyncGenerator[ToolQuestion, None]:
        """Ask a person for each field of a server's question, and pass the answers on. Where one is missing, the question is
        declined."""
        opening = f"{self._server.name} asks: {asked.question.text}"
        content: dict[str, object] = {}
        said = None
        try:
            for field in asked.question.fields or (QuestionField("", "", options=("yes", "no")),):
                waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
                several = field.kind == "list"
                among = f" (with commas between, of: {', '.join(field.options)})" if several else ""
                text = f"{opening}\n{field.text}{among}".strip()
                options = () if several else field.options
                yield ToolQuestion(text, options, partial(_set_answer, waiting), self._server.name)
                value = _parse_answer(await waiting, field)
                if value is None or (not field.name and value != "yes"):
                    return
                content[field.name] = value
            said = content
        finally:  # also where this call is abandoned: the question may belong to another one
            asked.answer(said)

    def _server_arguments(self, arguments: dict[str, object]) -> dict[str, object]:
        """The arguments under the server's own names, where `plain_keys` changed them for the model."""
        return (
            cast("dict[str, object]", restored_keys(arguments, self._renamed, self._schema))
            if self._renamed
            else arguments
        )


def _set_answer(waiting: asyncio.Future[str], text: str) -> None:
    if not waiting.done():
        waiting.set_result(text)


def _parse_answer(text: str, field: QuestionField) -> str | int | float | bool | list[str] | None:
    """An answer in the type of its field; None where it cannot be read as that."""
    text = text.strip()
    with suppress(ValueError):
        match field.kind:
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "list":
                values = [each for part in text.split(",") if (each := part.strip())]
                return values if values and (not field.options or set(values) <= set(field.options)) else None
            case "boolean":
                return text.lower() in {"yes", "true", "y"} if text else None
            case _:
                return text or None
    return None


def name_of(server: str, tool: str) -> str:
    """The name of a tool for models: `server__tool`, in the characters and length that providers accept."""
    return plain_name(f"{server}__{tool}")


MAX_SAID_CHARS = 200
"""Characters of the last line that a server wrote before it failed."""


def _text_of(log: Path) -> str:
    """The content of a server's log; empty where there is none yet."""
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _last_line(log: Path, earlier: str) -> str:
    """The last line that came to a log since it had the content `earlier`, of which its end is kept."""
    new = _text_of(log).removeprefix(earlier[-MAX_EARLIER_LOG_CHARS:])
    return next((line.strip()[:MAX_SAID_CHARS] for line in reversed(new.splitlines()) if line.strip()), "")


def names_of(server: str, tools: Sequence[str]) -> list[str]:
    """`name_of` for all tools of a server, made unique."""
    return _unique_names(name_of(server, tool) for tool in tools)


def _unique_names(names: Iterable[str]) -> list[str]:
    """The names, in order, each repeated one with a number added."""
    once: dict[str, int] = {}  # with the last number that a name has got
    for wanted in names:
        name, number = wanted, once.get(wanted, 1)
        while name in once:
            number += 1
            end = f"_{number}"
            name = wanted[: MAX_TOOL_NAME_CHARS - len(end)] + end
        once[name] = 1
        once[wanted] = number
    return list(once)


def prompts_of(server: str, offered: Sequence[OfferedPrompt]) -> dict[PromptFile, str]:
    """A server's prompts under the names by which a person calls them, each with the server's own name."""
    prompts: dict[PromptFile, str] = {}
    names = _unique_names(_UNTYPABLE.sub("_", prompt.name)[:MAX_TOOL_NAME_CHARS] for prompt in offered)
    for each, name in zip(offered, names, strict=True):
        hint = " ".join(f"<{a.name}>" if a.required else f"[{a.name}]" for a in each.arguments)
        about = " ".join(each.description.split())[:MAX_PROMPT_ABOUT_CHARS]
        called = f"{plain_name(server)}:{name}"
        prompts[PromptFile(called, "prompt", about, origin="server", hint=hint, arguments=each.arguments)] = each.name
    return prompts


def skills_of(server: str, offered: Sequence[OfferedSkill], taken: Collection[str]) -> dict[PromptFile, OfferedSkill]:
    """A server's skills under the names by which they are called, each with its listing. The name is `server:skill`; where two
    skills have the same name, or a prompt has it (`taken`), the whole path of the skill's address replaces the skill's name."""
    skills: dict[PromptFile, OfferedSkill] = {}
    names = [skill.name for skill in offered]
    called = [
        f"{plain_name(server)}:{skill.name}"
        if names.count(skill.name) == 1 and f"{plain_name(server)}:{skill.name}" not in taken
        else f"{plain_name(server)}:{_UNTYPABLE.sub(':', skill.uri.partition('://')[2].rpartition('/')[0])}"
        for skill in offered
    ]
    for skill, name in zip(offered, _unique_names(called), strict=True):
        file = PromptFile(
            name,
            "skill",
            " ".join(skill.description.split()),
            path=skill.uri,
            origin="server",
            hint=skill.hint,
            by_model=skill.by_model,
            by_person=skill.by_person,
            version=skill.digest,
        )
        skills[file] = skill
    return skills


class ServerRow(msgspec.Struct, frozen=True):
    """The present state of a server, for display. `tools` and `skills` are names, `trouble` is why it failed, `where` its address
    or command, `left_out` the items of its lists that cannot be used, each with the reason. `late`: its start takes longer than
    usual. `login_wanted`: it, or its last call, failed because of a missing login; `login_page` is the address to log in at
    now."""

    name: str
    state: State
    tools: tuple[str, ...]
    trouble: str
    where: str
    left_out: tuple[str, ...] = ()
    late: bool = False
    login_wanted: bool = False
    login_page: str = ""
    skills: tuple[str, ...] = ()


class StartOptions(msgspec.Struct, frozen=True):
    """How a server is started: in the folder `workspace`, with its standard error in the file `log`, and so many seconds to start
    and to list its tools. `objection` gives the reason why it must not be started now, or an empty text; it may block."""

    workspace: str
    log: Path
    timeout: float = START_TIMEOUT_S
    objection: Callable[[], str] = str


class McpServer:
    """One MCP server: its state, its connection and what it offers. `host` holds the connection; `only` are the tools to offer,
    None for all."""

    def __init__(
        self,
        name: str,
        address: Address,
        options: StartOptions,
        host: McpHost,
        only: Collection[str] | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.state: State = "off"
        self.trouble = ""
        """Why it failed, in a sentence."""
        self._login_wanted = False
        self._login_page = ""
        self._options, self._only = options, only
        self._host = host
        self._offered: tuple[ToolPort, ...] = ()
        self._left_out: tuple[str, ...] = ()
        self._prompts: Mapping[PromptFile, str] = {}
        self._skills: Mapping[PromptFile, OfferedSkill] = {}
        self._connection: ConnectionHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._interrupted = False
        self._settled = asyncio.Event()
        self._leave = asyncio.Event()
        self._begun = 0.0
        self._deaths = 0
        self._older = False  # connect with a protocol before 2026-07-28, because its tools ask questions in that form

    @property
    def tools(self) -> Sequence[ToolPort]:
        """The tools that can be called now. A call during a restart waits for the server."""
        return self._offered if self.state in {"ready", "starting"} else ()

    @property
    def row(self) -> ServerRow:
        """The present state, for display."""
        where = self.address.url or " ".join((self.address.command, *self.address.args))
        names = tuple(tool.spec.name for tool in self.tools)
        late = self.state == "starting" and time.monotonic() - self._begun > LATE_START_S
        return ServerRow(
            self.name,
            self.state,
            names,
            self.trouble,
            where,
            self._left_out if names else (),
            late,
            self._login_wanted,
            self._login_page,
            tuple(skill.name for skill in self.skills),
        )

    @property
    def failed_before(self) -> bool:
        """Whether it failed to start in time the last time, so that this start is not waited for."""
        return self._failure_marker.exists()

    def remember_late(self) -> None:
        """Mark it as late or failed, so that its next start is not waited for."""
        with suppress(OSError):
            self._failure_marker.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._failure_marker.touch(mode=0o600)

    @property
    def _failure_marker(self) -> Path:
        return self._options.log.with_suffix(".failed")

    def start(self, show: ShowLogin | None = None) -> None:
        """Start it in the background; nothing where it is connected or starting. `show` shows a person the page to log in; None
        where nobody is there to log in."""
        if self._task is None or self._task.done():
            self.state, self.trouble, self._interrupted = "starting", "", False
            self._login_wanted, self._login_page = show is not None, ""
            self._settled, self._leave = asyncio.Event(), asyncio.Event()
            self._begun = time.monotonic()
            self._task = asyncio.create_task(self._serve(show), name=f"mcp {self.name}")

    async def settled(self) -> None:
        """Wait until it is connected or has failed."""
        if self.state == "starting":
            await self._settled.wait()

    async def stop(self) -> None:
        """End the connection, and wait for that, no longer than twice `SERVER_END_TIMEOUT_S`."""
        self.dismiss()
        task, self._task = self._task, None
        if task is not None and (await asyncio.wait({task}, timeout=SERVER_END_TIMEOUT_S))[1]:
            task.cancel()
            await asyncio.wait({task}, timeout=SERVER_END_TIMEOUT_S)
        self.state, self.trouble, self._offered = "off", "", ()

    def dismiss(self) -> None:
        """End the connection without waiting."""
        self._leave.set()
        if self.state == "starting":
            self._interrupt()

    def _interrupt(self) -> None:
        """Cancel a start, once: a second cancel would interrupt the ending of the server's process and leave it running."""
        if self._task is not None and not self._interrupted:
            self._interrupted = True
            self._task.cancel()

    async def call(
        self,
        tool: str,
        arguments: dict[str, object],
        watch: Watch = lambda news: None,
    ) -> ToolReply:
        """Run one of its tools; `watch` receives progress and questions. A server that dies during the call is restarted for the
        next one. Raises ToolError."""
        return await self._ask_server(lambda connection: connection.call(tool, arguments, watch))

    async def read(self, uri: str) -> ToolReply:
        """Read a resource by its address; `failed` where nothing of it can be shown. Raises ToolError, as `call`."""
        return await self._ask_server(lambda connection: connection.read(uri))

    async def get_prompt(self, prompt: PromptFile, arguments: Mapping[str, str]) -> ToolReply:
        """Get one of the server's `prompts`, filled in with these arguments. Raises ToolError, like `call`."""
        name = self._prompts[prompt]  # now: the server may list other prompts by the time the request runs
        return await self._ask_server(lambda connection: connection.prompt(name, arguments))

    async def read_skill(self, skill: PromptFile, file: str = "") -> ToolReply:
        """Read one of its `skills`, or an unlisted one by the address in its `path`; with `file`, that file of it. Raises
        ToolError, as `call`, and where the content differs from the listing."""
        listed = self._skills.get(skill)
        digest = listed.digest if listed else ""
        return await self._ask_server(lambda connection: connection.read_skill(skill.path, file, digest))

    @property
    def skills(self) -> Mapping[PromptFile, OfferedSkill]:
        """The skills it lists, by the name they are called; empty while it is not connected."""
        return self._skills if self._connection else {}

    @property
    def prompts(self) -> Collection[PromptFile]:
        """The prompts that a person can call as `/server:name`; empty while it is not connected."""
        return self._prompts if self._connection else ()

    @property
    def resources(self) -> Sequence[OfferedResource]:
        """The resources it lists; empty while it is not connected."""
        return self._connection.resources if self._connection else ()

    async def _ask_server(
        self, ask: Callable[[ConnectionHandle], Awaitable[ToolReply]], *, again: bool = False
    ) -> ToolReply:
        """The reply to a request on the present connection. A server that has forgotten our HTTP session did nothing: the request
        is sent once more in a new session (`again`). Raises ToolError."""
        await self.settled()
        connection = self._connection
        if connection is None:
            raise ToolError(
                f"The MCP server {self.name} is {self.state}. {self.trouble}".strip(),
                f"/mcp starts it again.{self._log_hint}",
            )
        try:
            reply = await ask(connection)
            self._deaths, self._login_wanted = 0, False
            return reply
        except ConnectionAbortedError as problem:
            if again:
                raise ToolError(f"{self.name}: {problem}") from problem
            await self._restart(connection)
            self._deaths = 0
            return await self._ask_server(ask, again=True)
        except ConnectionResetError as problem:
            await self._restart(connection)
            hint = f"{'It is being started again.' if self.state == 'starting' else ''}{self._log_hint}".strip()
            raise ToolError(f"The MCP server {self.name} ended during the call.", hint) from problem
        except OlderWanted as problem:
            self._older = True
            await self._restart(connection)
            self._deaths = 0
            hint = "It is connected anew in that form; call the tool again."
            raise ToolError(f"{self.name} asks something, in a form of before 2026-07-28.", hint) from problem
        except ToolError as problem:
            self._login_wanted = isinstance(problem, LoginWanted)
            raise ToolError(f"{self.name}: {problem}", self._login_hint if self._login_wanted else "") from problem

    async def _restart(self, dead: ConnectionHandle) -> None:
        """Restart the server after its connection died, unless it was ended on purpose or another call has restarted it."""
        if self._connection is dead and not self._leave.is_set():
            offered = self._offered
            self._deaths += 1
            await self.stop()
            if self._deaths < MAX_DEATHS_IN_A_ROW:
                self._offered = offered
                self.start()
            else:
                self._deaths = 0
                self.state, self.trouble = "failed", f"It ended during {MAX_DEATHS_IN_A_ROW} calls in a row."

    @property
    def _login_hint(self) -> str:
        return f"`ctxchat mcp login {self.name}` does that, or l in /mcp."

    @property
    def _log_hint(self) -> str:
        return f" What it said: {self._options.log}" if self.address.command else ""

    async def _serve(self, show: ShowLogin | None) -> None:
        """Run one connection from its start to its end; sets `state` and `trouble`."""
        timeout = LOGIN_TIMEOUT_S if show else self._options.timeout
        earlier = await asyncio.to_thread(_text_of, self._options.log)
        late = asyncio.get_running_loop().call_later(timeout, self._interrupt)

        def shown(page: str, callback: Callable[[str], object]) -> None:
            assert show
            self._login_page = page
            show(page, callback)

        try:
            if why := await asyncio.to_thread(self._options.objection):
                raise ToolError(why)
            there = shown if show else None
            address = msgspec.structs.replace(self.address, older=self._older)
            async with self._host.connected(address, self._options.workspace, self._options.log, there) as connection:
                self._adopt_connection(connection)
                self._connection, self.state, self._login_wanted = connection, "ready", False
                late.cancel()
                self._settled.set()
                with suppress(OSError):
                    self._failure_marker.unlink(missing_ok=True)
                following = asyncio.create_task(self._follow_changes(connection))
                try:
                    await self._leave.wait()
                finally:
                    following.cancel()
                    await asyncio.wait({following})
        except asyncio.CancelledError:
            if self._leave.is_set() or not self._interrupted:
                raise
            self.state, self.trouble = "failed", "It did not answer in time."
        except LoginWanted as problem:
            self.state, self.trouble, self._login_wanted = "failed", f"{problem} {self._login_hint}", True
        except (ToolError, OSError) as problem:
            self.state, self.trouble = "failed", str(problem)
        finally:
            late.cancel()
            self._connection, self._login_page = None, ""
            if self.state != "failed":
                self.state = "off"
            else:
                self.remember_late()
                if self.address.command and (said := _last_line(self._options.log, earlier)):
                    self.trouble = f"{self.trouble.rstrip('.')}. It said: {said}"
            self._settled.set()

    async def _follow_changes(self, connection: ConnectionHandle) -> None:
        """Adopt the server's new lists each time they change, until it ends."""
        with suppress(ToolError):
            while True:
                await connection.wait_for_tools()
                self._adopt_connection(connection)

    def _adopt_connection(self, connection: ConnectionHandle) -> None:
        self._offered, self._left_out = self._wanted_tools(connection.tools), connection.left_out
        self._prompts = prompts_of(self.name, connection.prompts)
        self._skills = skills_of(self.name, connection.skills, [prompt.name for prompt in self._prompts])

    def _wanted_tools(self, found: Sequence[OfferedTool]) -> tuple[ToolPort, ...]:
        named = zip(found, names_of(self.name, [offered.name for offered in found]), strict=True)
        return tuple(
            McpTool(self, offered, name) for offered, name in named if self._only is None or offered.name in self._only
        )
