"""The editor at the other end: what it says it can, and the way to it for what is newer than the library.

That knows schema 1.19; `compaction_update`, `subagent_update` and `session_message` are of the schema's crate 1.20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from acp import Client

from ctxchat.acp.updates import SessionUpdate
from ctxchat.acp.wire import JsonObject, Wire


class Abilities(msgspec.Struct, frozen=True):
    """What an editor says that it can: ask in words (`forms`), show compactions and sub-agents by themselves, read and write
    files."""

    forms: bool = False
    compactions: bool = False
    children: bool = False
    reads: bool = False
    writes: bool = False


def abilities_in(told: object) -> Abilities:
    """The `clientCapabilities` of a first request, as they came."""
    return Abilities(
        forms=_said(told, "elicitation", "form"),
        compactions=_said(told, "session", "compaction"),
        children=_said(told, "subagents"),
        reads=_said(told, "fs", "readTextFile"),
        writes=_said(told, "fs", "writeTextFile"),
    )


def _said(told: object, *names: str) -> bool:
    """Something of that name is there: an object, be it empty, or true."""
    for name in names:
        told = cast("Mapping[str, object]", told).get(name) if isinstance(told, Mapping) else None
    return told is True or isinstance(told, Mapping)


class Editor:
    """`client` is the library's way to it, `wire` what that speaks through."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self.client, self.loop = client, wire.loop
        self._wire = wire

    @property
    def able(self) -> Abilities:
        """What it can."""
        return abilities_in(self._wire.client_capabilities)

    async def tell(self, session: str, update: SessionUpdate | JsonObject) -> None:
        """One update of a session, in order with all others; an object where the library knows none of its kind. Raises
        ConnectionError."""
        if isinstance(update, dict):
            told: dict[str, Any] = {"sessionId": session, "update": update}
            await self._wire.send({"jsonrpc": "2.0", "method": "session/update", "params": told})
        else:
            await self.client.session_update(session, update)
