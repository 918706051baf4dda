"""The connected editor: the capabilities it states, and sending updates to it, also those newer than the protocol library.

The library knows schema 1.19; `compaction_update`, `subagent_update` and `session_message` are of the schema's crate 1.20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from acp import Client

from ctxchat.acp.updates import SessionUpdate
from ctxchat.acp.wire import JsonObject, Wire


class Abilities(msgspec.Struct, frozen=True):
    """The capabilities an editor states: ask for text (`forms`), show `compactions` and sub-agents (`children`) as such, read and
    write files."""

    forms: bool = False
    compactions: bool = False
    children: bool = False
    reads: bool = False
    writes: bool = False


def abilities_in(told: object) -> Abilities:
    """The abilities in the raw `clientCapabilities` of the `initialize` request."""
    return Abilities(
        forms=_said(told, "elicitation", "form"),
        compactions=_said(told, "session", "compaction"),
        children=_said(told, "subagents"),
        reads=_said(told, "fs", "readTextFile"),
        writes=_said(told, "fs", "writeTextFile"),
    )


def _said(told: object, *names: str) -> bool:
    """Whether a capability at this path of names is stated: by an object, even an empty one, or by true."""
    for name in names:
        told = cast("Mapping[str, object]", told).get(name) if isinstance(told, Mapping) else None
    return told is True or isinstance(told, Mapping)


class Editor:
    """The editor of a connection. `client` is the library's proxy for it, `wire` the transport below."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self.client, self.loop = client, wire.loop
        self._wire = wire

    @property
    def able(self) -> Abilities:
        """The editor's capabilities."""
        return abilities_in(self._wire.client_capabilities)

    async def tell(self, session: str, update: SessionUpdate | JsonObject) -> None:
        """Send one update of a session, in order with all others; as a JSON object where the library has no type for it. Raises
        ConnectionError."""
        if isinstance(update, dict):
            told: dict[str, Any] = {"sessionId": session, "update": update}
            await self._wire.send({"jsonrpc": "2.0", "method": "session/update", "params": told})
        else:
            await self.client.session_update(session, update)
