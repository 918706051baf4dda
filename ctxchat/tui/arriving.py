"""A stored session has been opened: its parts are measured, and before anything is sent, room is offered where it is larger than
the window, and a choice where its model cannot be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import CompactionSuggested
from ctxchat.tui.screens.chat import ChatScreen

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


async def arrive(chat: ChatScreen, session: Session) -> None:
    """Measure and show it."""
    figures = await session.measure()
    chat.show_figures(figures)
    chat.show_header()
    chat.feed.weigh()
    await offer_room(chat, session)
    stored = bool(session.state.ledger.groups) and not session.read_only
    if stored and await session.setup.unreached() and not session.busy:
        await chat.unreached(session, waiting=False)


async def offer_room(chat: ChatScreen, session: Session) -> None:
    """The question whether to make room, where the session does not fit as it stands; why not, where that cannot help."""
    figures = session.figures
    if not figures.over or session.busy or session.read_only:
        return
    try:
        preview = await session.compaction.preview()
    except CtxchatError as problem:
        chat.announce(str(problem))
        return
    if preview.plan is None:
        chat.announce(f"This session is larger than the window. {preview.reason}".rstrip())
    elif not session.busy:
        suggested = CompactionSuggested(figures.used, figures.limit, figures.pressure, preview.after.used)
        await chat.questions.suggest(suggested)
