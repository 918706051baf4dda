"""MCP servers come up beside the chat: their tools join the session on screen as soon as they are there."""

from __future__ import annotations

from ctxchat.core.figures import Figures
from ctxchat.tui.host import Host
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.services import ChatSession


async def join(session: ChatSession) -> Figures:
    """The tools there are now, for the session; under a turn, with its next message."""
    return await session.setup.adapt()


async def arrive(host: Host) -> None:
    """Wait for the servers on their way, let their tools join, and name those that failed."""
    if not await host.services.servers():
        return
    await host.services.servers(wait=True)
    await tell(host)
    if session := host.work.session:
        host.chat.show_figures(await join(session))


async def tell(host: Host) -> None:
    """Name those that failed, each once; what was said of others is true no more."""
    rows = [row for row in await host.services.servers() if row.state == "failed"]
    told = [f"The MCP server {one_line(r.name, 40)} failed: {one_line(r.trouble, 200)} /mcp shows it." for r in rows]
    host.chat.banner.only("servers", told)
    for text in told:
        host.chat.announce(text, about="servers")
