"""Looking: the panel, the archive, the messages as a table, memos, search, the flight recorder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ctxchat.core.errors import UsageError
from ctxchat.core.ledger import open_end
from ctxchat.core.sections import SECTIONS
from ctxchat.presentation.cache_text import cache_sentences
from ctxchat.presentation.spending_text import limit_lines, spending_lines, wanted_amount, wanted_limit
from ctxchat.presentation.usage_text import sentence
from ctxchat.tui.actions.compaction import free_up
from ctxchat.tui.actions.sessions import go_on_in, may_leave
from ctxchat.tui.starting import tell_servers

if TYPE_CHECKING:
    from ctxchat.core.limits import Limit
    from ctxchat.tui.app import CtxchatApp


async def context(app: CtxchatApp, argument: str = "") -> None:
    """Panel open or closed; with a word behind it (`read`), or where it has no room, the gauge in sentences."""
    if argument or not app.chat.side.fits:
        app.chat.notice("info", sentence(app.controller.open_session().context_usage))
    else:
        app.chat.side.toggle()


async def cache(app: CtxchatApp, argument: str = "") -> None:
    """Tell what the server's cache still holds of the next request."""
    app.chat.notice("info", cache_sentences(app.controller.open_session().context_usage, time.time()))


async def cost(app: CtxchatApp, argument: str = "") -> None:
    """Tell what the session has cost: for what, by model, day and turn."""
    app.chat.notice("info", "\n".join(spending_lines(app.controller.open_session().state)))


async def limit(app: CtxchatApp, argument: str = "") -> None:
    """Tell what is left of the spending limits, or set one for this session: `session 5` in US dollars, `session 200000 tokens`
    in tokens, 0 for none."""
    session = app.controller.open_session()
    if argument:
        scope, most, in_tokens = wanted_limit(argument)
        session.spending.raise_limit(scope, most, in_tokens=in_tokens)
    app.chat.notice("info", "\n".join(limit_lines(session.spending.in_force())))


async def aside(app: CtxchatApp, argument: str = "") -> None:
    """Ask something beside the conversation, also while a turn is under way."""
    from ctxchat.tui.panels.aside import AsideScreen

    await app.ask(AsideScreen(app.controller.open_session(), argument))


async def sub_agent(app: CtxchatApp, session_id: str) -> None:
    """Follow the work of a sub-agent."""
    from ctxchat.tui.panels.sub_agent import SubAgentScreen

    await app.ask(SubAgentScreen(app.services, session_id))


async def jump(app: CtxchatApp, argument: str = "") -> None:
    """Letters over all that can be clicked; those that are typed click it."""
    from ctxchat.tui.panels.jump import JumpScreen, click, targets_of

    found = targets_of(app.chat)
    if not found:
        app.say_briefly("Nothing here can be clicked.")
    elif (target := await app.ask(JumpScreen(found))) and not click(app.chat, target):
        app.say_briefly("It is not on screen any more.")


async def go_on_beyond(limit: Limit, most: float | None, app: CtxchatApp, argument: str = "") -> None:
    """The turn that a limit stopped goes on under another one: `most`, or what the person wrote."""
    session = app.controller.idle_session()
    if most is None:
        try:
            most = wanted_amount(argument)
        except UsageError:
            await app.chat.questions.stopped_by(limit)
            raise
    session.spending.raise_limit(limit.scope, most, in_tokens=limit.in_tokens)
    if open_end(session.state.ledger):
        app.controller.resume()


async def archive(app: CtxchatApp, argument: str = "") -> None:
    """The history of compactions; a branch that was made there is opened."""
    from ctxchat.tui.panels.archive import ArchiveScreen

    made = await app.ask(ArchiveScreen(app.controller.open_session(), app.services, argument))
    await app.chat.refresh_session()
    if made:
        await go_on_in(app, made)


async def xray(app: CtxchatApp, argument: str = "") -> None:
    """A row for each message, or for those of a section; there Enter comes back with a group to go to, `c` with one that
    everything is to be compacted up to."""
    from ctxchat.tui.panels.xray import UP_TO, XrayScreen

    section = SECTIONS[SECTIONS.index(argument)] if argument in SECTIONS else None
    group = await app.ask(XrayScreen(app.controller.open_session(), section))
    await app.chat.refresh_session()
    if isinstance(group, str) and group.startswith(UP_TO):
        await free_up(app, up_to=group.removeprefix(UP_TO))
    elif isinstance(group, str) and group:
        app.chat.transcript.go_to(group)


async def jobs(app: CtxchatApp, argument: str = "") -> None:
    """The commands that run in the background, to look at and to end."""
    from ctxchat.tui.panels.jobs import JobsScreen

    await app.ask(JobsScreen(app.controller.open_session()))


async def memos(app: CtxchatApp, argument: str = "") -> None:
    """Show the agent's memos; Enter goes to where one was written."""
    from ctxchat.tui.panels.memos import MemosScreen

    group = await app.ask(MemosScreen(app.controller.open_session()))
    await app.chat.refresh_session()
    if group:
        app.chat.transcript.go_to(group)


async def search(app: CtxchatApp, argument: str = "") -> None:
    """Over everything ever said; an opened hit is a session id, or a session and a group."""
    from ctxchat.tui.panels.search import SearchScreen

    found = await app.ask(SearchScreen(app.services, app.controller.open_session(), argument))
    await app.chat.refresh_session()
    if not found:
        return
    session_id, group = found if isinstance(found, tuple) else (found, "")
    if session_id != app.controller.open_session().id:
        if not await may_leave(app):
            return
        await app.controller.switch(session_id)
    if group:
        app.chat.transcript.go_to(group)


async def flight(app: CtxchatApp, argument: str = "") -> None:
    """The fill over time and every compaction; one that is chosen there is opened in the archive."""
    from ctxchat.tui.panels.flight import FlightScreen

    chosen = await app.ask(FlightScreen(app.controller.open_session(), app.services))
    if chosen:
        await archive(app, chosen)


async def servers(app: CtxchatApp, argument: str = "") -> None:
    """The MCP servers, to switch on and off."""
    from ctxchat.tui.panels.servers import ServersScreen

    session = app.controller.open_session()
    await app.ask(ServersScreen(app.services, session, lambda: app.chat.show_figures(session.context_usage)))
    await tell_servers(app)
