"""Looking: the panel, the archive, the messages as a table, search, the flight recorder."""

from __future__ import annotations

from ctxchat.core.sections import SECTIONS
from ctxchat.tui.actions.compaction import free_up_to
from ctxchat.tui.actions.sessions import go_on_in
from ctxchat.tui.host import Host
from ctxchat.tui.reading.figures_text import sentence
from ctxchat.tui.servers import tell


async def context(host: Host, argument: str = "") -> None:
    """Panel open or closed; with a word behind it (`read`), the gauge in sentences, for ears."""
    if argument:
        host.chat.notice("info", sentence(host.work.open_session().figures))
    else:
        host.chat.side.toggle()


async def archive(host: Host, argument: str = "") -> None:
    """The history of compactions; a branch that was made there is opened."""
    from ctxchat.tui.screens.archive import ArchiveScreen

    made = await host.ask(ArchiveScreen(host.work.open_session(), host.services, argument))
    await host.chat.refresh_session()
    if made:
        await go_on_in(host, made)


async def xray(host: Host, argument: str = "") -> None:
    """A row for each message, or for those of a section; there Enter comes back with a group to go to, `c` with one that
    everything is to be compacted up to."""
    from ctxchat.tui.screens.xray import UP_TO, XrayScreen

    section = SECTIONS[SECTIONS.index(argument)] if argument in SECTIONS else None
    group = await host.ask(XrayScreen(host.work.open_session(), section))
    await host.chat.refresh_session()
    if isinstance(group, str) and group.startswith(UP_TO):
        await free_up_to(host, group.removeprefix(UP_TO))
    elif isinstance(group, str) and group:
        host.chat.transcript.go_to(group)


async def search(host: Host, argument: str = "") -> None:
    """Over everything ever said; an opened hit is a session id, or a session and a group."""
    from ctxchat.tui.screens.search import SearchScreen

    found = await host.ask(SearchScreen(host.services, host.work.open_session(), argument))
    await host.chat.refresh_session()
    if not found:
        return
    session_id, group = found if isinstance(found, tuple) else (found, "")
    if session_id != host.work.open_session().id:
        await host.work.switch(session_id)
    if group:
        host.chat.transcript.go_to(group)


async def flight(host: Host, argument: str = "") -> None:
    """The fill over time and every pass; one that is chosen there is opened in the archive."""
    from ctxchat.tui.screens.flight import FlightScreen

    chosen = await host.ask(FlightScreen(host.work.open_session(), host.services))
    if chosen:
        await archive(host, chosen)


async def servers(host: Host, argument: str = "") -> None:
    """The MCP servers, to switch on and off."""
    from ctxchat.tui.screens.servers import ServersScreen

    session = host.work.open_session()
    await host.ask(ServersScreen(host.services, session, lambda: host.chat.show_figures(session.figures)))
    await tell(host)
