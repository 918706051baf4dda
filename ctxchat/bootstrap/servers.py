"""Holds the MCP servers of the settings, shared by all sessions of the program: they are started with the first session, replaced
when their settings are edited, and switched on and off by a person."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from ctxchat.config.schema import McpSettings
from ctxchat.config.variables import fill_variables
from ctxchat.core.call_arguments import plain_name
from ctxchat.core.errors import ToolError, UsageError
from ctxchat.core.images import from_base64
from ctxchat.core.network import whole_address
from ctxchat.core.ports import ToolOutput, ToolPort
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.tokens import TokenCounter
from ctxchat.tools.mcp.host import McpHost, ShowLogin, ToolReply
from ctxchat.tools.mcp.login_store import FOLDER, LoginStore
from ctxchat.tools.mcp.protocol import Address, OfferedResource
from ctxchat.tools.mcp.server import McpServer, ServerRow, StartOptions, name_of

MAX_PROMPT_CHARS = 200_000
"""Characters of a prompt that a server writes: as many as a command file may have."""


class Servers:
    """The MCP servers by name. `logs` is the folder for the standard error of their processes; `objection` returns why the server
    of this name must not be started now, empty if it may, and is asked before each start. Nothing runs before `start`."""

    def __init__(self, workspace: Path, logs: Path, objection: Callable[[str], str] = lambda name: "") -> None:
        self._workspace, self._logs, self._objection = workspace, logs, objection
        self._host = McpHost()
        self._settings: Mapping[str, McpSettings] = {}
        self._servers: dict[str, McpServer] = {}

    def tools(self) -> Sequence[ToolPort]:
        """The tools of all connected servers, ordered by the servers' names."""
        return [tool for name in sorted(self._servers) for tool in self._servers[name].tools]

    @property
    def rows(self) -> Sequence[ServerRow]:
        """The state of each server of the settings, ordered by name."""
        return [self._row(name) for name in sorted(self._servers)]

    @property
    def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        """The resources that each server lists, by its name; none for a server that is not connected."""
        return {name: self._servers[name].resources for name in sorted(self._servers)}

    async def read_resource(self, name: str, uri: str) -> ToolReply:
        """Read a resource of a server by its address. Raises UsageError for an unknown server, and ToolError."""
        return await self._found(name).read(uri)

    @property
    def prompts(self) -> Sequence[PromptFile]:
        """The prompts and skills of all connected servers that a person can call; with `get_prompt` a
        `core.ports.ServerPrompts`."""
        prompts = [prompt for name in sorted(self._servers) for prompt in self._servers[name].prompts]
        return [*prompts, *(skill for skill in self.skills if skill.by_person)]

    @property
    def skills(self) -> Sequence[PromptFile]:
        """The skills of all connected servers; with `read_skill` a `core.ports.ServedSkills`."""
        return [skill for name in sorted(self._servers) for skill in self._servers[name].skills]

    async def read_skill(self, skill: PromptFile, file: str = "") -> str:
        """The text of a skill, whether it was listed or not, or of one of its files. Raises ToolError, and UsageError for an
        unknown server."""
        server = next((each for name, each in self._servers.items() if plain_name(name) == skill.server), None)
        if server is None:
            raise UsageError(f"There is no MCP server {skill.server}.", "/mcp shows them.")
        return (await server.read_skill(skill, file)).text

    async def await_server(self, name: str) -> None:
        """Wait for the server of this name, as it stands in its prompts, where it is starting. Raises ToolError where it
        failed."""
        server = next((each for own, each in self._servers.items() if plain_name(own) == name), None)
        if server is None:
            return
        await server.settled()
        if server.state == "failed":
            raise ToolError(f"The MCP server {server.name} is not there: {server.trouble}", "/mcp starts it again.")

    async def get_prompt(self, prompt: PromptFile, arguments: Mapping[str, str]) -> ToolOutput:
        """The text and images of one of `prompts`, filled in by its server with the arguments. Raises ToolError, and UsageError
        if its server offers it no longer."""
        if prompt.kind == "skill":
            return ToolOutput(await self.read_skill(prompt))
        server = next((server for server in self._servers.values() if prompt in server.prompts), None)
        if server is None:
            raise UsageError(f"No MCP server offers /{prompt.name} any more.", "/mcp shows them.")
        reply = await server.get_prompt(prompt, arguments)
        if not (reply.text.strip() or reply.images):
            raise ToolError(f"{server.name} wrote nothing for /{prompt.name}.")
        if len(reply.text) > MAX_PROMPT_CHARS:
            raise ToolError(
                f"/{prompt.name} is {len(reply.text):,} characters long, {MAX_PROMPT_CHARS:,} at most go along."
            )
        return ToolOutput(reply.text, images=tuple(from_base64(image) for image in reply.images))

    def weights(self) -> dict[str, int]:
        """The estimated tokens of each tool of the connected servers, by the tool's name."""
        counter = TokenCounter()
        return {tool.spec.name: counter.tool(tool.spec.schema) for tool in self.tools()}

    def theirs(self, tool: str) -> bool:
        """Whether a tool of this name could be one of these servers' tools, connected or not."""
        return any(tool.startswith(name_of(name, "")) for name in self._servers)

    def start(self, settings: Mapping[str, McpSettings]) -> None:
        """Use these settings from now on: start servers that are new or whose settings changed, end those that are gone."""
        before, self._settings = self._settings, dict(settings)
        for name in [n for n in self._servers if settings.get(n) != before.get(n)]:
            old = self._servers.pop(name)
            old.dismiss()
        for name, one in settings.items():
            if name not in self._servers:
                log = self._logs / f"{_file(name)}.log"
                options = StartOptions(str(self._workspace), log, objection=partial(self._objection, name))
                server = McpServer(name, address_of(one), options, self._host, one.tools)
                self._servers[name] = server
                if one.enabled:
                    server.start()

    async def settled(self, seconds: float, *, all: bool = False) -> None:
        """Wait at most `seconds` for servers that are starting; slower ones become ready later. Servers that were too slow at an
        earlier start are not waited for, unless `all` is set."""
        waited = [server for server in self._servers.values() if all or not server.failed_before]
        waiting = [asyncio.ensure_future(server.settled()) for server in waited]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()
        for server in waited:
            if server.state == "starting":
                server.remember_late()

    def missing(self, seconds: float) -> list[str]:
        """A sentence for each server whose tools are missing after so many seconds of waiting."""
        told = [(row.name, row) for row in self.rows if row.state in {"starting", "failed"}]
        return [
            f"The MCP server {name} failed, its tools are missing: {row.trouble}"
            if row.state == "failed"
            else f"The MCP server {name} did not answer within {seconds:g} s; its tools are missing until it comes."
            for name, row in told
        ]

    async def switch(self, name: str) -> ServerRow:
        """Start the server if it is off or has failed, else end it; return its state then. Raises UsageError for an unknown
        server."""
        server = self._found(name)
        if server.state in {"off", "failed"}:
            await server.stop()
            server.start()
            await server.settled()
        else:
            await server.stop()
        return self._row(name)

    async def log_in(self, name: str, show: ShowLogin) -> ServerRow:
        """Start the server anew, so that a person can log in if it asks for that; `show` shows the page. Return its state then.
        Raises UsageError for an unknown server, and for one that is no web server."""
        server = self._found(name)
        if not server.address.url:
            raise UsageError(f"{name} is a program of this machine; it takes no login.")
        await server.stop()
        server.start(show)
        await server.settled()
        return self._row(name)

    def delete_login(self, url: str) -> bool:
        """Delete the stored login for a server's address; False if there is none. Blocks."""
        return LoginStore(self._logs / FOLDER).delete(url)

    def _found(self, name: str) -> McpServer:
        server = self._servers.get(name)
        if server is None:
            raise UsageError(
                f"There is no MCP server {name!r}.", f"Servers: {', '.join(sorted(self._servers)) or 'none'}."
            )
        return server

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    def _row(self, name: str) -> ServerRow:
        return self._servers[name].row


def address_of(settings: McpSettings) -> Address:
    """The address of a server by its settings, with environment variables filled in, and a scheme added to a URL without one."""
    address = msgspec.convert(fill_variables(msgspec.to_builtins(settings), os.environ), Address)
    if address.url and "://" not in address.url:
        with suppress(ValueError):  # who connects says what is wrong with it
            return msgspec.structs.replace(address, url=whole_address(address.url))
    return address


def _file(name: str) -> str:
    return name_of("mcp", name)
