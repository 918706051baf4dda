"""Connections to MCP servers: to a process over standard input and output, or to an address over HTTP. The only module that uses
the SDK's client; it runs in the worker process, because the SDK is slow to import and parses a large result without a pause.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TextIO, cast

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.images import fault_of, from_base64, kind_of
from ctxchat.core.prompt_files import PromptArgument
from ctxchat.core.secrets import MaskedLines, masked
from ctxchat.tools.mcp.http_transport import HttpSession, ShowPage, http_transport
from ctxchat.tools.mcp.login_store import FOLDER
from ctxchat.tools.mcp.protocol import (
    MAX_EARLIER_LOG_CHARS,
    Address,
    OfferedPrompt,
    OfferedResource,
    OfferedTool,
    OlderWanted,
    QuestionField,
)
from ctxchat.tools.mcp.served_skills import EXTENSION, MAX_SKILLS, SkillEntry, entry_of, is_as_listed, name_in, text_of
from ctxchat.tools.mcp.stream_guard import MAX_LINE_CHARS, reading_shallow, sieved, with_line_limit
from ctxchat.tools.text import clip, clip_line, size

MAX_TOOLS = 500
"""Tools of one server; more would fill any context window."""

LISTENED_TO = "2026-07-28"
"""The first protocol version in which a server notifies only clients that subscribed to changes."""

CHANGED = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))
"""Notifications by which a server tells that its lists have changed."""

PROCESS_END_TIMEOUT_S = 0.5
"""Seconds a server's process has to end by itself, and as many again after a signal, before it is killed: quitting must be
quick."""


LIST_RESOURCES = OfferedTool(
    "list_resources",
    "Lists the resources of this server (files, records and the like) with their addresses.",
    {"type": "object", "properties": {}},
)
READ_RESOURCE = OfferedTool(
    "read_resource",
    "Reads a resource of this server by its address.",
    {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
)
"""Tools that we add for a server that has resources."""

LISTING_TIMEOUT_S = 5.0
"""Seconds that a server may take to list its resources, and as many each for its prompts and its skills; items listed by then
count."""

MAX_LISTED = 1_000
"""Resources of one server that are listed, and prompts."""

MAX_PROMPT_ARGUMENTS = 50
"""Arguments of one prompt."""

_CHANGED = "The skill has changed since it was listed; nothing of it was read. Call it again: it is asked about anew."
_UNLIKE = "What the server sends is not what it lists of this skill; nothing of it was read."

MAX_OPENED = 3
"""Addresses that a server may ask a person to open before one call."""

_NEEDS_OLDER_PROTOCOL = re.compile(r"elicitation/create.{0,80}no back-channel", re.S)
"""The error of a server's SDK where its tool asks a question in the form that protocols before 2026-07-28 had."""

_TOO_LONG = "Server-sent event exceeded the"
"""The SDK's error for a message in an HTTP stream that is longer than allowed."""


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a call: its text, and its images as base64. `failed`: the tool reports an error."""

    text: str
    failed: bool
    images: tuple[str, ...] = ()


Ask = Callable[[str, tuple[QuestionField, ...]], Awaitable[dict[str, Any] | None]]

Pause = Callable[[], AbstractContextManager[None]]

_CURRENT_ASK: ContextVar[Ask | None] = ContextVar("ask", default=None)
"""The function that asks a person on behalf of the current call, inherited by the tasks that the call starts."""


class Connection:
    """An open connection to a server; calls may run concurrently. `session` is the HTTP session, `left_out` collects descriptions
    of tools that cannot be used, `changed` is set when the server says that its lists have changed. `resources`, `prompts` and
    `skills` are those it listed when it was last asked for its tools."""

    def __init__(
        self, sdk: Any, client: Any, left_out: list[str], session: HttpSession, changed: asyncio.Event
    ) -> None:
        self._client = client
        self._left_out = left_out
        self._session = session
        self.changed = changed
        self._asks: dict[Ask, Pause] = {}  # of the calls under way, the one longest under way first
        self.resources: list[OfferedResource] = []
        self.prompts: list[OfferedPrompt] = []
        self.skills: dict[str, SkillEntry] = {}
        self._resource_tools: set[str] = set()
        self._refusals, codes = sdk.MCPError, sdk.types
        self._request = codes.Request[dict[str, Any], str]
        self._any_result: Any = import_module("pydantic").TypeAdapter(dict[str, Any])
        self._closed, self._unknown = codes.CONNECTION_CLOSED, codes.METHOD_NOT_FOUND
        self._wants_opened = codes.URL_ELICITATION_REQUIRED

    @contextmanager
    def asked_with(self, ask: Ask, pause: Pause) -> Iterator[None]:
        """Within the block, questions of the server about its call are put to a person by `ask`; within the context `pause`, the
        time of that call does not run."""
        before = _CURRENT_ASK.set(ask)
        self._asks[ask] = pause
        try:
            yield
        finally:
            del self._asks[ask]
            _CURRENT_ASK.reset(before)

    async def answer(self, text: str, fields: tuple[QuestionField, ...]) -> dict[str, Any] | None:
        """A person's answer to a question of the server; None for none. Over HTTP a question arrives in the context of the call
        that it is about. For a process the call is not known: the oldest running call asks, and the time of all calls is
        paused."""
        if ask := _CURRENT_ASK.get():
            return await ask(text, fields) if ask in self._asks else None
        with ExitStack() as paused:
            for pause in self._asks.values():
                paused.enter_context(pause())
            ask = next(iter(self._asks), None)
            return await ask(text, fields) if ask else None

    async def tools(self) -> tuple[Sequence[OfferedTool], Sequence[str]]:
        """The server's tools, and descriptions of the tools and skills that cannot be used, with the reason. Resources are
        offered as two more tools, unless the server has tools of those names itself. Lists resources, prompts and skills on the
        way."""
        found, left_out = await self._own_tools()
        more = (LIST_RESOURCES, READ_RESOURCE) if await self._has_resources() else ()
        await self._list_prompts()
        left_out = [*left_out, *await self._list_skills()]
        taken = {tool.name for tool in found}
        self._resource_tools = {tool.name for tool in more} - taken
        return [*found, *(tool for tool in more if tool.name in self._resource_tools)], left_out

    async def _has_resources(self) -> bool:
        """Whether the server has resources; they are listed for that, because most servers only announce that they could have
        some. A server that does not answer counts as having none."""
        self.resources = []
        about = self._client.server_capabilities
        if not (about and about.resources):
            return False
        with suppress(self._refusals, TimeoutError):
            async with asyncio.timeout(LISTING_TIMEOUT_S):
                async for each in self._list_pages("resources"):
                    self.resources.append(OfferedResource(str(each.uri), str(each.title or each.name or "")))
                return bool(self.resources or await self._templates())
        return bool(self.resources)

    async def _list_prompts(self) -> None:
        self.prompts = []
        about = self._client.server_capabilities
        if about and about.prompts:
            with suppress(self._refusals, TimeoutError):
                async with asyncio.timeout(LISTING_TIMEOUT_S):
                    async for each in self._list_pages("prompts"):
                        self.prompts.append(_offered_prompt(each))

    async def _list_skills(self) -> Sequence[str]:
        """List the server's skills; descriptions of those that cannot be used, each with the reason."""
        self.skills, left_out = {}, list[str]()
        about = self._client.server_capabilities
        if EXTENSION not in (getattr(about, "extensions", None) or {}):
            return left_out
        cursors, cursor = set[str](), ""
        with suppress(self._refusals, TimeoutError):
            async with asyncio.timeout(LISTING_TIMEOUT_S):
                while len(self.skills) + len(left_out) < MAX_SKILLS:
                    page = await self._send_request("skills/list", {"cursor": cursor} if cursor else {})
                    found: object = page.get("skills")
                    for value in cast("list[object]", found) if isinstance(found, list) else ():
                        try:
                            entry = entry_of(value)
                        except ToolError as problem:
                            left_out.append(f"skill {name_in(value)} ({problem.text})")
                        else:
                            self.skills[entry.uri] = entry
                    cursor = str(page.get("nextCursor") or "")
                    if not cursor or cursor in cursors:
                        break
                    cursors.add(cursor)
        self.skills = dict(list(self.skills.items())[:MAX_SKILLS])
        return left_out[:MAX_SKILLS]

    async def _send_request(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The result of a request that the SDK does not know."""
        request = self._request(method=method, params=parameters)
        return await self._client.session.send_request(request, self._any_result)

    async def _list_pages(self, kind: Literal["resources", "prompts"]) -> AsyncGenerator[Any, None]:
        """The server's items of a kind, page by page, no more than `MAX_LISTED`. A cursor that repeats ends the list."""
        cursor, seen, count = None, set[str](), 0
        while True:
            page = await getattr(self._client, f"list_{kind}")(cursor=cursor, cache_mode="refresh")
            found = getattr(page, kind)
            for each in found[: MAX_LISTED - count]:
                yield each
            count += len(found)
            cursor = page.next_cursor
            if not cursor or cursor in seen or count >= MAX_LISTED:
                return
            seen.add(cursor)

    async def _templates(self) -> Sequence[Any]:
        """The server's resource templates; none where it does not support them."""
        with suppress(self._refusals):
            return (await self._client.list_resource_templates()).resource_templates
        return ()

    async def _own_tools(self) -> tuple[list[OfferedTool], Sequence[str]]:
        """The server's own tools, all pages of them, and descriptions of those left out; none where it does not support tools."""
        self._left_out.clear()
        found: list[OfferedTool] = []
        cursor = None
        while True:
            try:
                page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            except self._refusals as problem:
                if problem.error.code != self._unknown:
                    raise
                return [], []
            found += [OfferedTool(t.name, t.description or "", dict(t.input_schema)) for t in page.tools]
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_TOOLS:
                more = [f"all after the first {MAX_TOOLS}"] if cursor or len(found) > MAX_TOOLS else []
                return found[:MAX_TOOLS], [*self._left_out, *more]

    async def call(
        self, tool: str, arguments: dict[str, Any], progress: Callable[[str], Awaitable[None]]
    ) -> ToolResult:
        """Run a tool; `progress` receives its progress messages. Raises ConnectionResetError where the server has ended,
        ConnectionAbortedError where it has forgotten our session and so did nothing, OlderWanted where it needs the older
        protocol, ToolError, and any other error of the SDK."""

        async def report_progress(done: float, total: float | None, message: str | None) -> None:
            await progress(_progress_text(done, total, message))

        if tool in self._resource_tools and tool == READ_RESOURCE.name:
            return await self.read(str(arguments.get("uri", "")))
        with self._translated_errors():
            if tool in self._resource_tools:
                return await self._list_resources()
            try:
                result = await self._client.call_tool(tool, arguments, progress_callback=report_progress)
            except self._refusals as problem:
                if not await self._let_person_open(problem.error):
                    raise
                result = await self._client.call_tool(tool, arguments, progress_callback=report_progress)
        words, images = _contents(result.content)
        structured = _structured_text(result.structured_content, words)
        return ToolResult("\n".join(filter(None, (*words, structured))), bool(result.is_error), tuple(images))

    async def _let_person_open(self, refusal: Any) -> bool:
        """Ask the person to open the addresses that a server requires before a call; whether all of them were opened."""
        data = refusal.data if refusal.code == self._wants_opened and isinstance(refusal.data, dict) else {}
        given = cast("dict[str, object]", data).get("elicitations")
        wanted = cast("list[object]", given) if isinstance(given, list) else []
        for each in wanted[:MAX_OPENED]:
            about = cast("dict[str, object]", each) if isinstance(each, dict) else {}
            text = f"{clip(str(about.get('message', '')), MAX_QUESTION_CHARS)}\n{about.get('url', '')}".strip()
            if await self.answer(text, ()) is None:
                return False
        return 0 < len(wanted) <= MAX_OPENED

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn the SDK's errors in the block into those that `call` raises."""
        try:
            yield
        except self._refusals as problem:
            if self._session.forgotten:
                raise ConnectionAbortedError("The server does not know this session any more.") from problem
            self._session.raise_refusal()
            if _TOO_LONG in problem.error.message:  # the SDK reports it as a closed connection
                raise ToolError(f"It sends an answer of more than {size(MAX_LINE_CHARS)}.") from problem
            if problem.error.code == self._closed:
                raise ConnectionResetError("The server has ended.") from problem
            if _NEEDS_OLDER_PROTOCOL.search(problem.error.message):
                raise OlderWanted(problem.error.message) from problem
            raise

    async def _list_resources(self) -> ToolResult:
        """All resources and resource templates, a line each."""
        lines = [_resource_line(str(each.uri), each) async for each in self._list_pages("resources")]
        more = f"[only the first {MAX_LISTED}]" if len(lines) >= MAX_LISTED else ""
        lines += [_resource_line(each.uri_template, each) for each in await self._templates()]
        return ToolResult("\n".join(filter(None, (*lines, more))) or "There are none.", False)

    async def read(self, uri: str) -> ToolResult:
        """Read a resource by its address; `failed` where nothing of it can be shown, with the reason as text. Raises as
        `call`."""
        with self._translated_errors():
            contents = (await self._client.read_resource(uri)).contents
        words: list[str] = []
        images: list[str] = []
        shown = not contents
        for part in contents:
            kind = part.mime_type or "not said what"
            if hasattr(part, "text"):
                words.append(part.text)
                shown = True
            elif kind.startswith("image/") or kind_of(
                from_base64(part.blob)
            ):  # some servers give every blob a text type
                _take_image(part.blob, words, images)
            else:
                words.append(f"[{part.uri}: {kind}, not shown]")
        return ToolResult("\n".join(words), not (shown or images), tuple(images))

    async def read_skill(self, uri: str, file: str, digest: str) -> ToolResult:
        """Read a skill, or one of its files, if its content is what the server listed. `digest` is that of the listed skill,
        empty for one that is not listed. Raises ToolError where the content differs, and as `call`."""
        entry = self.skills.get(uri)
        if entry is None:
            entry = self.skills[uri] = await self._entry(uri)
        if digest and digest != entry.digest:
            raise ToolError(_CHANGED)
        place = f"{entry.root}/{file}" if file else uri
        if place not in entry.digests:
            names = ", ".join(entry.offered.files) or "none"
            raise ToolError(f"It has no file {clip_line(file, 200)!r}.", f"Its files: {clip_line(names, 2_000)}.")
        data = await self._content(place)
        if not is_as_listed(data, entry, place):
            self.skills[uri] = await self._entry(uri)
            self.changed.set()  # so that the server's lists are read again
            raise ToolError(_CHANGED if self.skills[uri].digest != entry.digest else _UNLIKE)
        text = text_of(data, entry, place)
        more = [] if file or not entry.offered.files else [f"[Files of this skill: {', '.join(entry.offered.files)}]"]
        return ToolResult("\n\n".join([text, *more]), False)

    async def _entry(self, uri: str) -> SkillEntry:
        """The server's present description of a skill, listed or not. Raises ToolError."""
        with self._translated_errors():
            if EXTENSION not in (getattr(self._client.server_capabilities, "extensions", None) or {}):
                raise ToolError("It serves no skills.")
            found = (await self._send_request("skills/get", {"uri": uri})).get("skill")
        try:
            entry = entry_of(found)
        except ToolError as problem:
            raise ToolError(f"The skill cannot be used: {problem.text}.") from problem
        if entry.uri != uri:
            raise ToolError("It answers with another skill.")
        return entry

    async def _content(self, uri: str) -> bytes:
        """The bytes of the resource at an address. Raises ToolError where it has other than one content."""
        with self._translated_errors():
            contents = (await self._client.read_resource(uri, cache_mode="refresh")).contents
        if len(contents) != 1:
            raise ToolError("It answers with other than one file.")
        [part] = contents
        return part.text.encode() if hasattr(part, "text") else from_base64(part.blob)

    async def prompt(self, name: str, arguments: dict[str, str]) -> ToolResult:
        """A prompt as the server fills it in with these arguments. Messages of the assistant are marked. Raises as `call`."""
        with self._translated_errors():
            messages = (await self._client.get_prompt(name, arguments)).messages
        words: list[str] = []
        images: list[str] = []
        for message in messages:
            texts, shown = _contents([message.content])
            words += [f"The assistant:\n{text}" if message.role == "assistant" else text for text in texts]
            images += shown
        return ToolResult("\n\n".join(words), False, tuple(images))

    async def watch(self) -> None:
        """Subscribe to changes of the server's lists and set `changed` for each, until the connection ends. Only servers of the
        newest protocol need a subscription; others notify without one."""
        capabilities = self._client.server_capabilities
        kinds = ("tools", "resources", "prompts")
        subscriptions = {
            f"{kind}_list_changed": bool(getattr(getattr(capabilities, kind), "list_changed", False)) for kind in kinds
        }
        if self._client.protocol_version < LISTENED_TO or not any(subscriptions.values()):
            return
        async with self._client.listen(**subscriptions) as events:
            async for _ in events:
                self.changed.set()


@asynccontextmanager
async def connected(
    address: Address, workspace: str, log: Path, page: ShowPage | None = None
) -> AsyncGenerator[Connection, None]:
    """A connection for as long as the block lasts. The standard error of a server's process goes to the file `log`, secrets
    masked. `page` shows a person the page to log in; None where nobody is there to log in.

    Raises LoginWanted, ToolError where the SDK is missing or a variable is not set, and any error of the SDK.
    """
    try:
        sdk: Any = import_module("mcp")
    except ImportError as missing:
        raise ToolError(
            "MCP servers need one more package.",
            f"Install it beside ctxchat: uv pip install --python {sys.executable} mcp (in a checkout: uv run --extra mcp "
            "ctxchat). Then start again.",
        ) from missing
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # else each line that is not of the protocol logs a traceback
    async with AsyncExitStack() as stack:
        session, changed = HttpSession(address), asyncio.Event()
        if page is None:
            stack.enter_context(session.told_refusals())
        if address.url:
            transport = await stack.enter_async_context(http_transport(address, session, log.parent / FOLDER, page))
        else:
            errors = await stack.enter_async_context(_masked_log(log))
            parameters = sdk.StdioServerParameters(
                command=address.command,
                args=list(address.args),
                env=dict(address.env),
                cwd=Path(workspace) / address.cwd,
                encoding_error_handler="replace",
            )
            pipes: Any = import_module("mcp.client.stdio")
            pipes.PROCESS_TERMINATION_TIMEOUT = pipes.FORCE_KILL_TIMEOUT = PROCESS_END_TIMEOUT_S
            pipes.TextReceiveStream = with_line_limit(import_module("anyio.streams.text").TextReceiveStream)
            pipes.types.jsonrpc_message_adapter = reading_shallow(pipes.types.jsonrpc_message_adapter)
            transport = pipes.stdio_client(parameters, errlog=errors)
        left_out: list[str] = []

        async def on_message(message: Any) -> None:
            if getattr(message, "method", "") in CHANGED:
                changed.set()

        found: list[Connection] = []

        async def on_elicitation(_: Any, question: Any) -> Any:
            if not found:
                return sdk.types.ElicitResult(action="cancel")
            address = getattr(question, "url", "")
            text = f"{clip(question.message, MAX_QUESTION_CHARS)}\n{address}".strip()
            fields = () if address else question_fields(question.requested_schema)
            content = None if fields is None else await found[0].answer(text, fields)
            if content is None:
                return sdk.types.ElicitResult(action="decline")
            return sdk.types.ElicitResult(action="accept", content=None if address else content)

        able = [import_module("mcp.client").advertise(EXTENSION)]
        client = await stack.enter_async_context(
            sdk.Client(
                sieved(transport, left_out),
                message_handler=on_message,
                elicitation_callback=on_elicitation,
                extensions=able,
                mode="legacy" if address.older else "auto",
            )
        )
        found.append(Connection(sdk, client, left_out, session, changed))
        yield found[0]


@asynccontextmanager
async def _masked_log(log: Path) -> AsyncGenerator[TextIO, None]:
    """A text file for a process's standard error; its lines are copied to `log`, secrets masked."""
    file = _open_log(log)
    reading, writing = os.pipe()
    copying = threading.Thread(target=_copy_masked, args=(reading, file), name=f"log of {log.stem}", daemon=True)
    copying.start()
    try:
        with os.fdopen(writing, "w", encoding="utf-8") as errors:
            yield errors
    finally:  # copy its last lines; a child of the process may keep the pipe open, so there is a time-out
        await asyncio.to_thread(copying.join, PROCESS_END_TIMEOUT_S)


def _copy_masked(reading: int, file: TextIO) -> None:
    lines = MaskedLines(masked)
    with file, os.fdopen(reading, encoding="utf-8", errors="replace") as said:
        while piece := said.readline(MaskedLines.MAX_HELD_CHARS):
            file.write(lines.feed(piece))
            file.flush()
        file.write(lines.rest())


def _open_log(log: Path) -> TextIO:
    """The log opened for writing, with the end of its earlier content kept: the reason why a restarted server died stands
    there."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = log.read_text(encoding="utf-8", errors="replace")[-MAX_EARLIER_LOG_CHARS:] if log.exists() else ""
    file = os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
    file.write(before)
    file.flush()
    return file


def _structured_text(content: object, words: Sequence[str]) -> str:
    """A structured result as JSON; empty where the text parts have the same content already, as with most servers that send
    both."""
    if content is None:
        return ""
    inner = (
        cast("dict[str, object]", content).get("result") if isinstance(content, dict) and len(content) == 1 else None
    )
    for text in words:
        if inner is not None and text == str(inner):
            return ""
        with suppress(msgspec.DecodeError, RecursionError):
            if msgspec.json.decode(text) in (content, inner):
                return ""
    return msgspec.json.encode(content).decode()


MAX_QUESTION_CHARS, MAX_FIELD_CHARS = 4_000, 400
"""Characters of a server's question, and of each field's description and each choice."""

MAX_FIELDS, MAX_CHOICES = 20, 50
"""Fields of one question, and choices of one field; a question with more is declined."""


def question_fields(schema: dict[str, Any]) -> tuple[QuestionField, ...] | None:
    """The fields of a server's question, from its JSON schema; None where there are too many or the schema is not valid."""
    properties: object = schema.get("properties", {})
    if not isinstance(properties, dict) or len(cast("dict[str, object]", properties)) > MAX_FIELDS:
        return None
    fields = [_question_field(name, about) for name, about in cast("dict[str, object]", properties).items()]
    return None if None in fields else tuple(field for field in fields if field)


def _choices(about: object) -> list[object]:
    """The values that a field's schema allows; empty where it allows any."""
    match about:
        case {"enum": [*options]}:
            return cast("list[object]", options)
        case {"oneOf": [*each]} | {"anyOf": [*each]}:
            return [one["const"] for one in each if isinstance(one, dict) and "const" in one]
        case _:
            return []


def _question_field(name: str, about: object) -> QuestionField | None:
    if not isinstance(about, dict):
        return None
    known = cast("dict[str, object]", about)
    several = known.get("type") == "array"
    options = _choices(known.get("items") if several else known)
    if len(options) > MAX_CHOICES or any(len(str(option)) > MAX_FIELD_CHARS for option in options):
        return None
    text = ": ".join(str(known[key]) for key in ("title", "description") if known.get(key)) or name
    kind: Literal["string", "integer", "number", "boolean", "list"] = "list" if several else "string"
    for able in ("integer", "number", "boolean"):
        kind = able if known.get("type") == able else kind
    if kind == "boolean":
        options = ["yes", "no"]
    return QuestionField(name, clip(text, MAX_FIELD_CHARS), kind, tuple(map(str, options)))


def _offered_prompt(prompt: Any) -> OfferedPrompt:
    arguments = (
        PromptArgument(a.name, a.description or "", bool(a.required))
        for a in (prompt.arguments or ())[:MAX_PROMPT_ARGUMENTS]
    )
    return OfferedPrompt(prompt.name, prompt.description or prompt.title or "", tuple(arguments))


def _contents(parts: Sequence[Any]) -> tuple[list[str], list[str]]:
    """The text parts of a server's content, and its images as base64."""
    words: list[str] = []
    images: list[str] = []
    for part in parts:
        if part.type != "image":
            words.append(_part_text(part))
        else:
            _take_image(part.data, words, images)
    return words, images


def _take_image(data: str, words: list[str], images: list[str]) -> None:
    """Add an image to `images`, or, where it cannot be used, the reason to `words`."""
    if fault := fault_of(from_base64(data)):
        words.append(f"[image: {fault}]")
    else:
        images.append(data)


def _progress_text(done: float, total: float | None, message: str | None) -> str:
    """A progress message as a line: `3 of 10: reading`."""
    far = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{far}: {clip_line(message, 200)}\n" if message else f"{far}\n"


def _resource_line(address: str, resource: Any) -> str:
    about = " ".join(f"{resource.title or resource.name or ''}. {resource.description or ''}".split()).strip(". ")
    return f"{address}  {clip_line(about, 160)}".rstrip()


def _part_text(part: Any) -> str:
    """One part of a result as text; a part that is no text is described in brackets."""
    match part.type:
        case "text":
            return str(part.text)
        case "resource" if hasattr(part.resource, "text"):
            return str(part.resource.text)
        case "resource_link":
            return f"[{part.name}: {part.uri}]"
        case kind:
            return f"[{kind}: {getattr(part, 'mime_type', None) or 'not shown'}]"
