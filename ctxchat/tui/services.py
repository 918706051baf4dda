"""What the interface needs beside a conversation: sessions to open, the record to search, models, servers. `ctxchat.bootstrap`
fulfils it; a conversation is an `agent.session.Session`. Knows no widget.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the first frame needs none of it
    from pathlib import Path

    from ctxchat.agent.session import Session
    from ctxchat.config.effective import Loaded
    from ctxchat.core.messages import Group
    from ctxchat.core.search import Hit, Scope
    from ctxchat.core.secrets import Masking
    from ctxchat.importing.outcome import Importable, ImportNews
    from ctxchat.models.discovery import FirstLook, FoundModel
    from ctxchat.storage.archive import LastSaid
    from ctxchat.storage.loading import JournalNews
    from ctxchat.storage.sessions import SessionRow
    from ctxchat.tools.mcp.host import ShowLogin, ToolReply
    from ctxchat.tools.mcp.protocol import OfferedResource
    from ctxchat.tools.mcp.server import ServerRow


class Services(Protocol):
    """Everything beside the conversation."""

    @property
    def workspace(self) -> Path:
        """The folder the agent works in, resolved."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What went wrong at start (a broken setting, theme, data folder): sentences with remedy, for a banner."""
        ...

    @property
    def sandboxed(self) -> bool:
        """Shell commands run in a sandbox."""
        ...

    @property
    def masking(self) -> Masking:
        """What secrets are masked with, and what was masked since the start."""
        ...

    def adopt(self, loaded: Loaded) -> None:
        """Edited settings, for sessions opened from now on."""
        ...

    async def branch(self) -> str:
        """The git branch of the folder; empty where there is none."""
        ...

    async def open(self, session_id: str = "") -> Session:
        """A new session, or a stored one (unique prefix enough). Raises CtxchatError."""
        ...

    async def sessions(self) -> Sequence[SessionRow]: ...
    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        """What you and the model said last in a stored session, in its order."""
        ...

    async def journal_news(self, session_id: str, since: int = 0) -> JournalNews:
        """What came to a stored session's journal behind entry `since`, whoever works on it. Raises StorageError."""
        ...

    async def delete(self, session_id: str) -> None: ...
    async def fork(self, session_id: str, message_id: str = "") -> str:
        """A new session with everything up to that message or compaction (all without one); its id."""
        ...

    async def hand_off(self, session_id: str, title: str) -> str:
        """A new session, with nothing said yet, that goes on with the work of this one; its id."""
        ...

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """Messages of all sessions that hold these words, the best first, `marks` around them. Raises StorageError."""
        ...

    async def indexed(self) -> float:
        """The share of all messages that a search finds by now, the newest first: below 1.0 while the index is being made."""
        ...

    async def group(self, session_id: str, message_id: str) -> Group:
        """The group of a message as it was, from any session. Raises UsageError and StorageError."""
        ...

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        """Sessions of other agents that are not here yet: in a file or folder, or without one in their usual places."""
        ...

    async def first_found(self) -> Sequence[Importable]:
        """Those in the usual places, once for each person; nothing from then on."""
        ...

    def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
        """Import them, beside the chat; closing the generator ends it. Raises CtxchatError."""
        ...

    def following(self) -> AsyncGenerator[ImportNews, None]:
        """Import what is new or has grown in the usual places since the last time, beside the chat; nothing while another window
        or command is at it. Closing the generator ends it. Raises CtxchatError."""
        ...

    async def may_offer_following(self) -> bool:
        """Nobody was asked yet whether to do so from now on."""
        ...

    async def following_answered(self) -> None:
        """Somebody was, and is not asked again. Raises StorageError."""
        ...

    async def models(self) -> Sequence[FoundModel]: ...
    async def first_look(self) -> FirstLook:
        """What to ask where no model is set (once for each person), or to say."""
        ...

    async def mcp_servers(self) -> Sequence[ServerRow]:
        """The MCP servers of the settings, as they are."""
        ...

    async def switch_server(self, name: str) -> ServerRow:
        """On where it is off or has failed, else off; how it is then. Raises UsageError for one nobody has set up."""
        ...

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        """Start it anew with a person there to log in where it wants that; how it is then. Raises UsageError for one that takes
        no login."""
        ...

    async def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        """What each MCP server of the settings lists; nothing for one that is not up."""
        ...

    async def read_resource(self, server: str, uri: str) -> ToolReply:
        """A resource by its address. Raises UsageError for a server nobody has set up, and ToolError."""
        ...

    async def warm_up(self, model: str = "") -> None:
        """Start what is slow for this model (the one of the settings without a name), after the first paint."""
        ...

    async def close(self) -> None: ...
