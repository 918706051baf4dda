"""MCP servers come up beside the chat: their tools join the session on screen as soon as they are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from ctxchat.core.figures import Figures
from ctxchat.tui.host import Host
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.services import Services

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tools.mcp.server import ServerRow

GLANCE = 0.2
"""Seconds between two looks at servers on their way."""


async def join(session: Session) -> Figures:
    """The tools there are now, for the session; under a turn, with its next message."""
    return await session.setup.adapt()


async def coming_up(services: Services) -> AsyncGenerator[Sequence[ServerRow], None]:
    """The servers as they are, and again whenever that has changed, until none is on its way."""
    told: Sequence[ServerRow] | None = None
    while True:
        rows = await services.mcp_servers()
        if rows != told:
            yield rows
        if all(row.state != "starting" for row in rows):
            return
        told = rows
        await asyncio.sleep(GLANCE)


async def arrive(host: Host) -> None:
    """Let the tools of the servers on their way join as each is up, and name those that failed."""
    async with aclosing(coming_up(host.services)) as changes:
        async for rows in changes:
            await tell(host)
            if any(row.state == "ready" for row in rows) and (session := host.work.session):
                host.chat.show_figures(await join(session))


async def tell(host: Host) -> None:
    """Name those that failed or are late, each once; what was said of others is true no more."""
    rows = await host.services.mcp_servers()
    told = [
        f"The MCP server {one_line(r.name, 40)} failed: {one_line(r.trouble, 200)} /mcp shows it."
        for r in rows
        if r.state == "failed"
    ]
    told += [
        f"The MCP server {one_line(r.name, 40)} has not answered yet; its tools are missing until it comes."
        for r in rows
        if r.late
    ]
    host.chat.banner.only("servers", told)
    for text in told:
        host.chat.announce(text, about="servers")
