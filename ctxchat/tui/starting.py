"""What is there only after the first paint: the first session, who is to answer where no model is set, and the MCP servers; and
what is to be known of a stored session that was opened, before anything is sent."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import CompactionSuggested
from ctxchat.presentation.text import one_line
from ctxchat.tui.actions.importing import tell_found
from ctxchat.tui.chat.offers import FirstChoice

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tools.mcp.server import ServerRow
    from ctxchat.tui.app import CtxchatApp
    from ctxchat.tui.chat.screen import ChatScreen
    from ctxchat.tui.services import Services

NEW_TRIES_AGAIN = "/new tries again."

POLL_INTERVAL_S = 0.2
"""Seconds between two looks at servers on their way."""


async def open_first(app: CtxchatApp, session_id: str, notices: Sequence[str]) -> bool:
    """The session asked for, else a new one; False where there can be none, which is said with its remedy."""
    of_settings = app.services.notices
    for text in notices:
        app.chat.announce(spoken(app, text), about="settings" if text in of_settings else "themes")
    if session_id:
        try:
            await app.controller.switch(session_id)
            return True
        except CtxchatError as problem:
            app.chat.announce(str(problem))
    try:
        await app.controller.switch("")
        return True
    except Exception as problem:  # whatever it was: nobody is to write into nowhere
        known = isinstance(problem, CtxchatError)
        words = str(problem) if known else f"No session could be opened: {type(problem).__name__}: {problem}."
        app.chat.announce(f"{words} {NEW_TRIES_AGAIN}")
        app.controller.cannot_open(words)
        return False


def spoken(app: CtxchatApp, text: str) -> str:
    """A notice with its file as one speaks of it: `config.toml:3`, `.ctxchat/config.toml` of the folder at work in."""
    return text.replace(f"{app.settings_file.parent}/", "").replace(f"{app.services.workspace}/", "")


async def list_files(app: CtxchatApp) -> None:
    """The files of the folder: to be named in a message, and for the questions an empty chat offers."""
    from ctxchat.tui.unsent.workspace_files import examples

    files = await app.chat.composer.list_files()
    app.chat.empty.offer_questions(await to_thread(examples, files))


async def get_ready(app: CtxchatApp) -> None:
    """The model in force, the gauge, and the first choice of a model where none is set."""
    await app.services.warm_up()
    if session := app.controller.session:
        await arrive(app.chat, session)
    session = app.controller.session
    if app.chat.presenter.empty:
        offline = session is None or session.context_usage.model.startswith("offline/")
        own = session.id if session else ""
        earlier = any(row.messages and row.id != own for row in await app.services.sessions())
        app.chat.empty.offer_ways(has_model=not offline, has_sessions=earlier, in_tour=app.chat.guide is not None)
    if session is None or session.context_usage.model.startswith(
        "offline/"
    ):  # one with a model of its own goes on with it
        look = await app.services.first_look()
        if look.note:
            app.chat.no_model(look.note)
        if look.offers and session and not app.controller.busy:
            await app.chat.questions.choose_model(FirstChoice(look.offers))
    await servers_arrive(app)
    await tell_found(app)


# ── a stored session ──


async def arrive(chat: ChatScreen, session: Session) -> None:
    """Measure and show it."""
    context_usage = await session.measure()
    chat.show_figures(context_usage)
    chat.show_header()
    chat.presenter.refresh_tokens()
    await offer_room(chat, session)
    stored = bool(session.state.ledger.groups) and not session.read_only
    if stored and await session.setup.unreached() and not session.busy:
        await chat.unreached(session, waiting=False)


async def offer_room(chat: ChatScreen, session: Session) -> None:
    """The question whether to make room, where the session does not fit as it stands; why not, where that cannot help."""
    context_usage = session.context_usage
    if not context_usage.excess or session.busy or session.read_only:
        return
    try:
        preview = await session.preview()
    except CtxchatError as problem:
        chat.announce(str(problem))
        return
    if preview.plan is None:
        chat.announce(f"This session is larger than the window. {preview.reason}".rstrip())
    elif not session.busy:
        suggested = CompactionSuggested(
            context_usage.used, context_usage.limit, context_usage.pressure, preview.after.used
        )
        await chat.questions.suggest(suggested)


# ── MCP servers ──


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
        await asyncio.sleep(POLL_INTERVAL_S)


async def servers_arrive(app: CtxchatApp) -> None:
    """Let the tools of the servers on their way join as each is up, and name those that failed."""
    async with aclosing(coming_up(app.services)) as changes:
        async for rows in changes:
            await tell_servers(app)
            if any(row.state == "ready" for row in rows) and (session := app.controller.session):
                app.chat.show_figures(await session.setup.adapt())


async def tell_servers(app: CtxchatApp) -> None:
    """Name those that failed or are late, each once; what was said of others is true no more."""
    rows = await app.services.mcp_servers()
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
    app.chat.banner.only("servers", told)
    for text in told:
        app.chat.announce(text, about="servers")
