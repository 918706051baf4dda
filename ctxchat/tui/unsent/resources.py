"""Resources of MCP servers that an unsent message mentions by `@server:uri`: each is read once in the background, its tokens are
counted, and the same content is sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ctxchat.core.errors import CtxchatError
from ctxchat.core.images import from_base64
from ctxchat.tools.mentions import MentionedFile, MentionRules, image, mentions
from ctxchat.tools.text import size

if TYPE_CHECKING:
    from ctxchat.tools.mcp.host import ToolReply
    from ctxchat.tools.mcp.protocol import OfferedResource
    from ctxchat.tui.services import Services

_RESOURCE_NAME = re.compile(r"([A-Za-z0-9_-]{1,30}):([A-Za-z][A-Za-z0-9+.-]*:.+)", re.S)
_ENDS = ".,;:!?)]}'\""

Found = tuple[MentionedFile, ...] | CtxchatError
"""The content of a resource, or the error of reading it."""


def is_resource(name: str) -> bool:
    """Whether a mention names a server and an address, such as `library:book://tides`."""
    return _RESOURCE_NAME.fullmatch(name) is not None


class MentionedResources:
    """The resources mentioned in the message being written. `listed` holds the resources of each server, as of the last
    `refresh`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.listed: Mapping[str, Sequence[OfferedResource]] = {}
        self._reads: dict[tuple[str, int], asyncio.Task[Found]] = {}

    async def refresh(self) -> bool:
        """Ask the servers for their resources; True where the lists have changed."""
        before, self.listed = self.listed, await self._services.resources()
        return before != self.listed

    def look(
        self, text: str, longest: int, rules: MentionRules, typed: str
    ) -> tuple[list[MentionedFile], list[asyncio.Task[Found]]]:
        """The resources that the text mentions, as far as they are read, and the tasks of those being read. The name being
        `typed` is read only where a server lists it; `longest` is the number of characters up to which a resource is sent
        whole."""
        looked: list[MentionedFile] = []
        named = self._named(text)
        names = [name for name in named if named[name] not in rules.pasted or named[name] in rules.agreed]
        looked += [
            MentionedFile(named[n], "nothing", why="named in pasted text", asks=True) for n in named if n not in names
        ]
        names = [name for name in names if name != typed or self._is_listed(name)]
        self._reads = {key: read for key, read in self._reads.items() if key[0] in names}
        under_way: list[asyncio.Task[Found]] = []
        for name in names:
            read = self._read(name, longest)
            if not read.done():
                under_way.append(read)
                looked.append(MentionedFile(name, "nothing", why="being read …"))
            elif isinstance(found := read.result(), CtxchatError):
                looked.append(MentionedFile(name, "nothing", why=str(found)))
            else:
                looked += found
        return looked, under_way

    async def load(self, text: str, longest: int, rules: MentionRules) -> list[MentionedFile]:
        """The resources to send with a text. Raises CtxchatError where one cannot be read; nothing is sent then."""
        loaded: list[MentionedFile] = []
        for name, written in self._named(text).items():
            if written in rules.pasted and written not in rules.agreed:
                continue
            read = self._read(name, longest)
            if read.done() and isinstance(read.result(), CtxchatError):
                del self._reads[name, longest]  # try again: the server may be up by now
                read = self._read(name, longest)
            found = await asyncio.shield(read)
            if isinstance(found, CtxchatError):
                hint = f"{found.hint.rstrip('.')}. " if found.hint else ""
                raise CtxchatError(
                    f"@{name} could not be read, and nothing was sent: {found.text}",
                    f"{hint}Your message is back in the editor.",
                )
            loaded += found
        return loaded

    def _named(self, text: str) -> dict[str, str]:
        """The resources a text mentions, by name, each with its mention as written. Punctuation at the end belongs to the name
        only where a server lists it so."""
        named: dict[str, str] = {}
        for written in mentions(text):
            if is_resource(written):
                name = written if self._is_listed(written) else written.rstrip(_ENDS)
                named.setdefault(name if is_resource(name) else written, written)
        return named

    def _is_listed(self, name: str) -> bool:
        server, uri = _parts(name)
        return any(each.uri == uri for each in self.listed.get(server, ()))

    def _read(self, name: str, longest: int) -> asyncio.Task[Found]:
        """The task that reads a resource, started where there is none. It ends by the server's own time limit."""
        if (name, longest) not in self._reads:
            self._reads[name, longest] = asyncio.create_task(self._found(name, longest), name="resource")
        return self._reads[name, longest]

    async def _found(self, name: str, longest: int) -> Found:
        try:
            return contents(name, await self._services.read_resource(*_parts(name)), longest)
        except CtxchatError as problem:
            return problem


def contents(name: str, reply: ToolReply, longest: int) -> tuple[MentionedFile, ...]:
    """The parts of a resource to send: its text, where it has at most `longest` characters, and its images; or why nothing is
    sent."""
    if reply.failed:
        return (MentionedFile(name, "nothing", why="nothing that can be shown: only named"),)
    images = tuple(image(name, from_base64(data)) for data in reply.images)
    if len(reply.text) > longest:
        length = size(len(reply.text.encode("utf-8", "replace")))
        return (MentionedFile(name, "nothing", why=f"{length}: the agent reads what it needs of it"), *images)
    if reply.text.strip():
        return (MentionedFile(name, "text", text=reply.text.replace("\r\n", "\n").replace("\r", "\n")), *images)
    return images or (MentionedFile(name, "nothing", why="it is empty"),)


def _parts(name: str) -> tuple[str, str]:
    server, _, uri = name.partition(":")
    return server, uri
