"""The base of the built-in tools: arguments are declared once as a struct, from which the schema is made, and are checked before
the tool runs. Knows no single tool and judges nothing: permissions are the agent's."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolPiece
from ctxchat.core.view import ToolSpec
from ctxchat.tools.text import clip_line

A = TypeVar("A", bound="Arguments")
T = TypeVar("T")
P = ParamSpec("P")
Pieces = AsyncGenerator[ToolPiece, None]

_MAX_REMEMBERED_REQUESTS = 256
"""Access requests kept for a second look; a denied call never comes to fetch its own."""


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every tool's arguments. Field descriptions (`msgspec.Meta`) are what the model reads."""


class Tool(ABC, Generic[A]):
    """A `core.ports.ToolPort`. What a call was judged by is remembered; when that no longer holds, it does not run."""

    name: ClassVar[str]
    about: ClassVar[str]
    arguments: type[A]
    reads_only: ClassVar[bool] = False
    """Its calls change nothing, so that several may run at once."""

    def __init__(self, about: str = "") -> None:
        """`about` where it depends on what is there."""
        self._judged: dict[str, AccessRequest] = {}
        self.spec = ToolSpec(self.name, about or self.about, schema_of(self.arguments))

    def reads(self, arguments: Mapping[str, object]) -> bool:
        """True when such a call changes nothing, so that several may run at once."""
        return self.reads_only

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        """The access that a call needs. May read files: call it off the event loop. Raises ToolError."""
        access_request = self._judged_access(self._decode(arguments), context)
        self._judged.pop(context.call_id, None)
        self._judged[context.call_id] = access_request
        while len(self._judged) > _MAX_REMEMBERED_REQUESTS:
            del self._judged[next(iter(self._judged))]
        return access_request

    async def run(self, arguments: dict[str, object], context: ToolContext) -> Pieces:
        """Texts while it works, then one ToolOutput. Raises ToolError, also when the call is no longer what was judged."""
        decoded = self._decode(arguments)
        judged = self._judged.pop(context.call_id, None)
        if judged is not None and judged != await asyncio.to_thread(self._judged_access, decoded, context):
            raise ToolError(
                f"{judged.target} changed after this call was approved; nothing was done.",
                "Read it again, then try again.",
            )
        context = msgspec.structs.replace(context, target=judged.target if judged else "")
        async with aclosing(self.execute(decoded, context)) as pieces:
            try:
                async for piece in pieces:
                    yield piece
            except OSError as error:
                raise _readable(error) from error

    @abstractmethod
    def access_needed(self, arguments: A, context: ToolContext) -> AccessRequest:
        """The access that a call with these arguments needs. Raises ToolError or OSError."""

    @abstractmethod
    def execute(self, arguments: A, context: ToolContext) -> Pieces:
        """Do it. Raises ToolError or OSError."""

    def _judged_access(self, arguments: A, context: ToolContext) -> AccessRequest:
        try:
            return self.access_needed(arguments, context)
        except OSError as error:
            raise _readable(error) from error

    def _decode(self, arguments: dict[str, object]) -> A:
        """Models write `null` for what they leave out and `"12"` for numbers; both are taken as meant."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return msgspec.convert(given, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            names = ", ".join(self.arguments.__struct_fields__)
            raise ToolError(f"{self.name}: wrong arguments: {error}.", f"Arguments are: {names}.") from error


def schema_of(arguments: type[Arguments]) -> dict[str, object]:
    """The JSON schema of an arguments struct, with nothing in it that a model does not need (each token is sent every time)."""
    (root,), parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    return _inline_references(root, parts)


def _inline_references(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline_references(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline_references(parts[node["$ref"]], parts)
    if "properties" in node:
        fields = {name: _inline_references(value, parts) for name, value in node["properties"].items()}
        required = {"required": node["required"]} if node["required"] else {}
        return {"type": "object", "properties": fields, **required}
    if {"type": "null"} in (either := node.get("anyOf", ())):  # what may be null may be left out
        (node,) = ({**node, **one} for one in either if one != {"type": "null"})
        del node["anyOf"]
    return {key: _inline_references(value, parts) for key, value in node.items() if key not in {"default", "title"}}


async def in_thread(work: Callable[Concatenate[threading.Event, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread. Its first argument is an event that is set when nobody waits for it any more."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop, *args, **kwargs)
    finally:
        stop.set()


def _readable(error: OSError) -> ToolError:
    where = f": {clip_line(str(error.filename), 300)}" if error.filename else ""
    return ToolError(f"{error.strerror or error}{where}.")
