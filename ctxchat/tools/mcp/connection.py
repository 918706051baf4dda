"""How a server is reached: its process over standard input and output, or its address over HTTP. The one place that knows
the SDK's client; it runs in the worker process, for the SDK is slow to import and reads a large result in one go.
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
"""Of one server: more would fill any window."""

LISTENED_TO = "2026-07-28"
"""The first protocol in which a server tells of changes only who has asked for them."""

CHANGED = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))
"""What a server says when it offers something else."""

PROCESS_END_TIMEOUT_S = 0.5
"""Seconds a process has to end by itself, and as many to end when it is told to, before it is killed: nobody waits to quit."""


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
"""What we offer for a server that has resources."""

LISTING_TIMEOUT_S = 5.0
"""Seconds that a server may take to list its resources, and as many for its prompts; what it has listed by then counts."""

MAX_LISTED = 1_000
"""Resources that are listed, and prompts."""

MAX_PROMPT_ARGUMENTS = 50
"""Of one prompt."""

_CHANGED = "The skill has changed since it was listed; nothing of it was read. Call it again: it is asked about anew."
_UNLIKE = "What the server sends is not what it lists of this skill; nothing of it was read."

MAX_OPENED = 3
"""Addresses that a server may want opened before one call."""

_NO_WAY_BACK = re.compile(r"elicitation/create.{0,80}no back-channel", re.S)
"""What a server's SDK says where its tool asks in the way of before 2026-07-28."""

_TOO_LONG = "Server-sent event exceeded the"
"""What the SDK says of an answer in a stream that is longer than it may be."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a call came back with: its words, and its images as base64. `failed`: the tool says so."""

    text: str
    failed: bool
    images: tuple[str, ...] = ()


Ask = Callable[[str, tuple[QuestionField, ...]], Awaitable[dict[str, Any] | None]]

Pause = Callable[[], AbstractContextManager[None]]

_ASK: ContextVar[Ask | None] = ContextVar("ask", default=None)
"""That of the call at hand, in all that comes of it."""


class Connection:
    """An open one. Calls may be made side by side. `session` is that of HTTP, `changed` is set when the server says that it
    offers something else. `resources`, `prompts` and `skills` are those it listed when it was last asked for its tools."""

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
        """What the server asks about the call in this block is put to a person by `ask`; no time of it goes by in `pause`."""
        before = _ASK.set(ask)
        self._asks[ask] = pause
        try:
            yield
        finally:
            del self._asks[ask]
            _ASK.reset(before)

    async def answer(self, text: str, fields: tuple[QuestionField, ...]) -> dict[str, Any] | None:
        """What a person says to a question of the server's; None for nothing. Over HTTP it comes in answer to the call that it is
        about; of a process nobody can tell: the call that is longest under way puts it, and the time of none goes by."""
        if ask := _ASK.get():
            return await ask(text, fields) if ask in self._asks else None
        with ExitStack() as paused:
            for pause in self._asks.values():
                paused.enter_context(pause())
            ask = next(iter(self._asks), None)
            return await ask(text, fields) if ask else None

    async def tools(self) -> tuple[Sequence[OfferedTool], Sequence[str]]:
        """What the server offers, and what of that cannot be taken, with why. Resources are offered as two tools, unless it has
        tools of those names itself."""
        found, left_out = await self._own_tools()
        more = (LIST_RESOURCES, READ_RESOURCE) if await self._has_resources() else ()
        await self._list_prompts()
        left_out = [*left_out, *await self._list_skills()]
        taken = {tool.name for tool in found}
        self._resource_tools = {tool.name for tool in more} - taken
        return [*found, *(tool for tool in more if tool.name in self._resource_tools)], left_out

    async def _has_resources(self) -> bool:
        """List them. Most servers say that they could have some; one that does not answer has none."""
        self.resources = []
        about = self._client.server_capabilities
        if not (about and about.resources):
            return False
        with suppress(self._refusals, TimeoutError):
            async with asyncio.timeout(LISTING_TIMEOUT_S):
                async for each in self._listed("resources"):
                    self.resources.append(OfferedResource(str(each.uri), str(each.title or each.name or "")))
                return bool(self.resources or await self._templates())
        return bool(self.resources)

    async def _list_prompts(self) -> None:
        self.prompts = []
        about = self._client.server_capabilities
        if about and about.prompts:
            with suppress(self._refusals, TimeoutError):
                async with asyncio.timeout(LISTING_TIMEOUT_S):
                    async for each in self._listed("prompts"):
                        self.prompts.append(_offered_prompt(each))

    async def _list_skills(self) -> Sequence[str]:
        """Ask which it serves; says of each that is left out why."""
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

    async def _listed(self, kind: Literal["resources", "prompts"]) -> AsyncGenerator[Any, None]:
        """What it has of that kind, page by page, no more than `MAX_LISTED`; a page that was there before is the last."""
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
        """The forms that addresses of resources may have; not all servers know of them."""
        with suppress(self._refusals):
            return (await self._client.list_resource_templates()).resource_templates
        return ()

    async def _own_tools(self) -> tuple[list[OfferedTool], Sequence[str]]:
        """Its tools, all pages of them; none where it knows of none."""
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
        """Run a tool; `progress` takes what it says on its way. Raises ConnectionResetError where the server is gone,
        ConnectionAbortedError where it has forgotten our session and so done nothing, else what the SDK raises."""

        async def tell(done: float, total: float | None, message: str | None) -> None:
            await progress(_progress_text(done, total, message))

        if tool in self._resource_tools and tool == READ_RESOURCE.name:
            return await self.read(str(arguments.get("uri", "")))
        with self._told_endings():
            if tool in self._resource_tools:
                return await self._list_resources()
            try:
                result = await self._client.call_tool(tool, arguments, progress_callback=tell)
            except self._refusals as problem:
                if not await self._has_opened(problem.error):
                    raise
                result = await self._client.call_tool(tool, arguments, progress_callback=tell)
        words, images = _contents(result.content)
        structured = _structured(result.structured_content, words)
        return ToolResult("\n".join(filter(None, (*words, structured))), bool(result.is_error), tuple(images))

    async def _has_opened(self, refusal: Any) -> bool:
        """The person has opened all the addresses without which a server does not begin with a call."""
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
    def _told_endings(self) -> Iterator[None]:
        """A server that is gone, or has forgotten us, said as `call` says it."""
        try:
            yield
        except self._refusals as problem:
            if self._session.forgotten:
                raise ConnectionAbortedError("The server does not know this session any more.") from problem
            self._session.raise_refusal()
            if _TOO_LONG in problem.error.message:  # which the SDK gives out as an ending
                raise ToolError(f"It sends an answer of more than {size(MAX_LINE_CHARS)}.") from problem
            if problem.error.code == self._closed:
                raise ConnectionResetError("The server has ended.") from problem
            if _NO_WAY_BACK.search(problem.error.message):
                raise OlderWanted(problem.error.message) from problem
            raise

    async def _list_resources(self) -> ToolResult:
        """All resources, and the forms that addresses of more may have, a line each."""
        lines = [_resource_line(str(each.uri), each) async for each in self._listed("resources")]
        more = f"[only the first {MAX_LISTED}]" if len(lines) >= MAX_LISTED else ""
        lines += [_resource_line(each.uri_template, each) for each in await self._templates()]
        return ToolResult("\n".join(filter(None, (*lines, more))) or "There are none.", False)

    async def read(self, uri: str) -> ToolResult:
        """A resource by its address; `failed` where nothing of it can be shown, with why as its words. Raises as `call`."""
        with self._told_endings():
            contents = (await self._client.read_resource(uri)).contents
        words: list[str] = []
        images: list[str] = []
        shown = not contents
        for part in contents:
            kind = part.mime_type or "not said what"
            if hasattr(part, "text"):
                words.append(part.text)
                shown = True
            elif kind.startswith("image/") or kind_of(from_base64(part.blob)):  # some call every blob text
                _take_image(part.blob, words, images)
            else:
                words.append(f"[{part.uri}: {kind}, not shown]")
        return ToolResult("\n".join(words), not (shown or images), tuple(images))

    async def read_skill(self, uri: str, file: str, digest: str) -> ToolResult:
        """A skill, or a file of it, where it is what was listed; `digest` is that of what was looked at, empty for a skill that
        is not listed. Raises ToolError, and as `call`."""
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
            self.changed.set()  # so that the list is told anew
            raise ToolError(_CHANGED if self.skills[uri].digest != entry.digest else _UNLIKE)
        text = text_of(data, entry, place)
        more = [] if file or not entry.offered.files else [f"[Files of this skill: {', '.join(entry.offered.files)}]"]
        return ToolResult("\n\n".join([text, *more]), False)

    async def _entry(self, uri: str) -> SkillEntry:
        """What the server says of a skill now, listed or not. Raises ToolError."""
        with self._told_endings():
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
        """What lies at an address. Raises ToolError where that is not one content."""
        with self._told_endings():
            contents = (await self._client.read_resource(uri, cache_mode="refresh")).contents
        if len(contents) != 1:
            raise ToolError("It answers with other than one file.")
        [part] = contents
        return part.text.encode() if hasattr(part, "text") else from_base64(part.blob)

    async def prompt(self, name: str, arguments: dict[str, str]) -> ToolResult:
        """A prompt as the server writes it for these arguments: of several messages, those of the assistant are marked. Raises as
        `call`."""
        with self._told_endings():
            messages = (await self._client.get_prompt(name, arguments)).messages
        words: list[str] = []
        images: list[str] = []
        for message in messages:
            texts, shown = _contents([message.content])
            words += [f"The assistant:\n{text}" if message.role == "assistant" else text for text in texts]
            images += shown
        return ToolResult("\n\n".join(words), False, tuple(images))

    async def watch(self) -> None:
        """Hear that it offers something else from a server of the newest protocol, which tells only who asks; until it ends.
        Others tell without being asked."""
        able = self._client.server_capabilities
        kinds = ("tools", "resources", "prompts")
        told = {f"{kind}_list_changed": bool(getattr(getattr(able, kind), "list_changed", False)) for kind in kinds}
        if self._client.protocol_version < LISTENED_TO or not any(told.values()):
            return
        async with self._client.listen(**told) as events:
            async for _ in events:
                self.changed.set()


@asynccontextmanager
async def connected(
    address: Address, workspace: str, log: Path, page: ShowPage | None = None
) -> AsyncGenerator[Connection, None]:
    """A connection for as long as the block lasts; what a server's process says beside the protocol goes to the file `log`,
    secrets masked. With a `page`, a person is there to log in where the server wants that.

    Raises LoginWanted, ToolError where the SDK is missing or a variable is not set; else what the SDK raises.
    """
    try:
        sdk: Any = import_module("mcp")
    except ImportError as missing:
        raise ToolError(
            "MCP servers need one more package.",
            f"Install it beside ctxchat: uv pip install --python {sys.executable} mcp (in a checkout: uv run --extra mcp "
            "ctxchat). Then start again.",
        ) from missing
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # else each line beside the protocol makes a traceback
    async with AsyncExitStack() as stack:
        session, changed = HttpSession(address), asyncio.Event()
        if page is None:
            stack.enter_context(session.told_refusals())
        if address.url:
            transport = await stack.enter_async_context(http_transport(address, session, log.parent / FOLDER, page))
        else:
            errors = await stack.enter_async_context(_logged(log))
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

        async def hear(message: Any) -> None:
            if getattr(message, "method", "") in CHANGED:
                changed.set()

        found: list[Connection] = []

        async def asked(_: Any, question: Any) -> Any:
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
                message_handler=hear,
                elicitation_callback=asked,
                extensions=able,
                mode="legacy" if address.older else "auto",
            )
        )
        found.append(Connection(sdk, client, left_out, session, changed))
        yield found[0]


MAX_EARLIER_LOG_CHARS = 20_000
"""Characters of a server's log that are kept when it is started anew."""


@asynccontextmanager
async def _logged(log: Path) -> AsyncGenerator[TextIO, None]:
    """What is written here goes to the file, line by line, secrets masked."""
    file = _opened(log)
    reading, writing = os.pipe()
    copying = threading.Thread(target=_copy, args=(reading, file), name=f"log of {log.stem}", daemon=True)
    copying.start()
    try:
        with os.fdopen(writing, "w", encoding="utf-8") as errors:
            yield errors
    finally:  # what the process said last; one of its children may hold the pipe for longer
        await asyncio.to_thread(copying.join, PROCESS_END_TIMEOUT_S)


def _copy(reading: int, file: TextIO) -> None:
    lines = MaskedLines(masked)
    with file, os.fdopen(reading, encoding="utf-8", errors="replace") as said:
        while piece := said.readline(MaskedLines.MAX_HELD_CHARS):
            file.write(lines.feed(piece))
            file.flush()
        file.write(lines.rest())


def _opened(log: Path) -> TextIO:
    """The file, with the end of what the server said before: one that died is started anew, and why it did stands there."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = log.read_text(encoding="utf-8", errors="replace")[-MAX_EARLIER_LOG_CHARS:] if log.exists() else ""
    file = os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
    file.write(before)
    file.flush()
    return file


def _structured(content: object, words: Sequence[str]) -> str:
    """The result as data, where the words do not hold it already: servers that send both mostly say the same twice."""
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
"""Characters of what a server asks, and of each thing it wants to know and each answer to choose."""

MAX_FIELDS, MAX_CHOICES = 20, 50
"""Things that it may want to know at once, and answers to choose from; a question with more is declined."""


def question_fields(schema: dict[str, Any]) -> tuple[QuestionField, ...] | None:
    """What a server wants to know, one by one; None where it is too much, or no question."""
    properties: object = schema.get("properties", {})
    if not isinstance(properties, dict) or len(cast("dict[str, object]", properties)) > MAX_FIELDS:
        return None
    fields = [_question_field(name, about) for name, about in cast("dict[str, object]", properties).items()]
    return None if None in fields else tuple(field for field in fields if field)


def _choices(about: object) -> list[object]:
    """What may be answered; nothing where it is anything."""
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
    """What a server sent as words, and its images as base64."""
    words: list[str] = []
    images: list[str] = []
    for part in parts:
        if part.type != "image":
            words.append(_part_text(part))
        else:
            _take_image(part.data, words, images)
    return words, images


def _take_image(data: str, words: list[str], images: list[str]) -> None:
    """An image among a result, or a word on why it is none."""
    if fault := fault_of(from_base64(data)):
        words.append(f"[image: {fault}]")
    else:
        images.append(data)


def _progress_text(done: float, total: float | None, message: str | None) -> str:
    """`3 of 10: reading`, as a line."""
    far = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{far}: {clip_line(message, 200)}\n" if message else f"{far}\n"


def _resource_line(address: str, resource: Any) -> str:
    about = " ".join(f"{resource.title or resource.name or ''}. {resource.description or ''}".split()).strip(". ")
    return f"{address}  {clip_line(about, 160)}".rstrip()


def _part_text(part: Any) -> str:
    """One part of a result as text; what is no text is named."""
    match part.type:
        case "text":
            return str(part.text)
        case "resource" if hasattr(part.resource, "text"):
            return str(part.resource.text)
        case "resource_link":
            return f"[{part.name}: {part.uri}]"
        case kind:
            return f"[{kind}: {getattr(part, 'mime_type', None) or 'not shown'}]"
