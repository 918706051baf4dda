"""The protocol of services the interface needs beside a conversation: opening sessions, searching the record, models, servers.
`ctxchat.bootstrap` implements it; a conversation is an `agent.session.Session`. Knows no widget.
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
    """Everything the interface needs beside the conversation."""

    @property
    def workspace(self) -> Path:
        """The folder the agent works in, resolved."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """Problems at the start (a broken setting, theme, data folder) for the banner: sentences with their remedy."""
        ...

    @property
    def sandboxed(self) -> bool:
        """Whether shell commands run in a sandbox."""
        ...

    @property
    def masking(self) -> Masking:
        """The masking of secrets, with a count of what was masked since the start."""
        ...

    def adopt(self, loaded: Loaded) -> None:
        """Use these edited settings for sessions opened from now on."""
        ...

    async def branch(self) -> str:
        """The git branch of the workspace; empty where there is none."""
        ...

    async def open(self, session_id: str = "") -> Session:
        """Open a new session, or a stored one (a unique prefix of its id is enough). Raises CtxchatError."""
        ...

    async def sessions(self) -> Sequence[SessionRow]: ...
    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        """The last messages of the person and the model in a stored session, oldest first."""
        ...

    async def journal_news(self, session_id: str, since: int = 0) -> JournalNews:
        """The entries of a stored session's journal after entry `since`, also while another process writes it. Raises
        StorageError."""
        ...

    async def delete(self, session_id: str) -> None: ...
    async def fork(self, session_id: str, message_id: str = "") -> str:
        """Create a session with everything up to that message or compaction (all of it without an id); the new session's id."""
        ...

    async def hand_off(self, session_id: str, title: str) -> str:
        """Create an empty session that continues the work of this one; its id."""
        ...

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """Messages of all sessions that contain these words, best match first, with `marks` around each match. Raises
        StorageError."""
        ...

    async def indexed(self) -> float:
        """The share of all messages in the search index, below 1.0 while it is being built; the newest messages are indexed
        first."""
        ...

    async def group(self, session_id: str, message_id: str) -> Group:
        """The group of a message as it was recorded, from any session. Raises UsageError and StorageError."""
        ...

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        """Sessions of other agents that were not imported yet, in a file or folder; without a path, in the agents' usual
        folders."""
        ...

    async def first_found(self) -> Sequence[Importable]:
        """The importable sessions in the usual folders, once for each person; empty from then on."""
        ...

    def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
        """Import the sessions that `importable` lists, in the background; closing the generator stops it. Raises CtxchatError."""
        ...

    def following(self) -> AsyncGenerator[ImportNews, None]:
        """Import sessions in the usual folders that are new or have grown since the last time, in the background; nothing while
        another window or command does so. Closing the generator stops it. Raises CtxchatError."""
        ...

    async def may_offer_following(self) -> bool:
        """Whether the person was not asked yet if new sessions of other agents are to be imported from now on."""
        ...

    async def following_answered(self) -> None:
        """Record that the person answered that question and is not to be asked again. Raises StorageError."""
        ...

    async def models(self) -> Sequence[FoundModel]: ...
    async def first_look(self) -> FirstLook:
        """The models to offer if none is set (once for each person), or a note to show."""
        ...

    async def mcp_servers(self) -> Sequence[ServerRow]:
        """The MCP servers of the settings, with their present state."""
        ...

    async def switch_server(self, name: str) -> ServerRow:
        """Start a server that is off or has failed, else stop it; its new state. Raises UsageError for an unknown name."""
        ...

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        """Restart a server so that the person can log in if it requires that; its new state. Raises UsageError for one without a
        login."""
        ...

    async def resources(self) -> Mapping[str, Sequence[OfferedResource]]:
        """The resources that each MCP server of the settings lists; none for a server that is not running."""
        ...

    async def read_resource(self, server: str, uri: str) -> ToolReply:
        """Read a resource by its address. Raises UsageError for an unknown server, and ToolError."""
        ...

    async def warm_up(self, model: str = "") -> None:
        """Load the slow parts for this model (without a name, the one of the settings), after the first paint."""
        ...

    async def close(self) -> None: ...
