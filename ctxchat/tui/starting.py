"""The part of the start that runs after the first paint: opens the first session, offers a model where none is set, follows the
MCP servers until they are up, and measures a stored session that was opened."""

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
"""Seconds between two checks of servers that are starting."""


async def open_first(app: CtxchatApp, session_id: str, notices: Sequence[str]) -> bool:
    """Open the session asked for, else a new one; False where none can be opened, which the banner says with its remedy."""
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
    except Exception as problem:  # whatever the error: messages must not be accepted without a session
        known = isinstance(problem, CtxchatError)
        words = str(problem) if known else f"No session could be opened: {type(problem).__name__}: {problem}."
        app.chat.announce(f"{words} {NEW_TRIES_AGAIN}")
        app.controller.cannot_open(words)
        return False


def spoken(app: CtxchatApp, text: str) -> str:
    """A notice with short file names: relative to the settings folder (`config.toml:3`) or the workspace
    (`.ctxchat/config.toml`)."""
    return text.replace(f"{app.settings_file.parent}/", "").replace(f"{app.services.workspace}/", "")


async def list_files(app: CtxchatApp) -> None:
    """List the files of the workspace, for mentions in messages and for the example questions of an empty chat."""
    from ctxchat.tui.unsent.workspace_files import examples

    files = await app.chat.composer.list_files()
    app.chat.empty.offer_questions(await to_thread(examples, files))


async def get_ready(app: CtxchatApp) -> None:
    """Warm the model up, measure the session, offer a choice of models where none is set, and follow the MCP servers until they
    are up."""
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
    ):  # a session with a model of its own keeps it
        look = await app.services.first_look()
        if look.note:
            app.chat.no_model(look.note)
        if look.offers and session and not app.controller.busy:
            await app.chat.questions.choose_model(FirstChoice(look.offers))
    await servers_arrive(app)
    await tell_found(app)


# ── a stored session ──


async def arrive(chat: ChatScreen, session: Session) -> None:
    """Measure a session that was opened and show its context usage; offer what it needs before a message can be sent."""
    context_usage = await session.measure()
    chat.show_figures(context_usage)
    chat.show_header()
    chat.presenter.refresh_tokens()
    await offer_room(chat, session)
    stored = bool(session.state.ledger.groups) and not session.read_only
    if stored and await session.setup.unreached() and not session.busy:
        await chat.unreached(session, waiting=False)


async def offer_room(chat: ChatScreen, session: Session) -> None:
    """Suggest a compaction where the session does not fit its window; where none can help, say why."""
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
    """Yield the servers' states, and again after each change, until none is starting."""
    last_rows: Sequence[ServerRow] | None = None
    while True:
        rows = await services.mcp_servers()
        if rows != last_rows:
            yield rows
        if all(row.state != "starting" for row in rows):
            return
        last_rows = rows
        await asyncio.sleep(POLL_INTERVAL_S)


async def servers_arrive(app: CtxchatApp) -> None:
    """Add the tools of each starting server as soon as it is ready, and announce the servers that failed."""
    async with aclosing(coming_up(app.services)) as changes:
        async for rows in changes:
            await tell_servers(app)
            if any(row.state == "ready" for row in rows) and (session := app.controller.session):
                app.chat.show_figures(await session.setup.adapt())


async def tell_servers(app: CtxchatApp) -> None:
    """Announce the servers that failed or are late, each once, and remove announcements that no longer apply."""
    rows = await app.services.mcp_servers()
    announcements = [
        f"The MCP server {one_line(r.name, 40)} failed: {one_line(r.trouble, 200)} /mcp shows it."
        for r in rows
        if r.state == "failed"
    ]
    announcements += [
        f"The MCP server {one_line(r.name, 40)} has not answered yet; its tools are missing until it comes."
        for r in rows
        if r.late
    ]
    app.chat.banner.only("servers", announcements)
    for text in announcements:
        app.chat.announce(text, about="servers")
