"""The session itself: another one, a new one, a branch, its title, its model and mode, its Markdown."""

from __future__ import annotations

from asyncio import to_thread
from time import time
from typing import TYPE_CHECKING, Literal, get_args

from ctxchat.config import paths
from ctxchat.core.errors import CtxchatError
from ctxchat.core.permissions import Mode
from ctxchat.presentation.cache_text import anew_words, first_words, thoughts_words
from ctxchat.presentation.text import clean, one_line
from ctxchat.tools.mentions import mentions
from ctxchat.tui.actions.importing import placed
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.starting import get_ready
from ctxchat.tui.unsent.draft import Draft

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

MODES: tuple[Mode, ...] = get_args(Mode)

NOTHING_ASKS = (
    "Nothing asks any more: the model changes files, runs commands and fetches pages by itself, and any text that it reads "
    "may talk it into that. Only rules that forbid still hold."
)


async def sessions(app: CtxchatApp, argument: str = "") -> None:
    """Open another one; where none could be opened before, the first."""
    from ctxchat.tui.panels.sessions import SessionsScreen

    session = None if app.controller.trouble else app.controller.open_session()
    chosen = argument or await app.ask(SessionsScreen(app.services, session))
    if chosen is not None and (session is None or chosen != session.id):
        await _switch(app, chosen)
    await app.chat.refresh_session()


async def new_session(app: CtxchatApp, argument: str = "") -> None:
    """Start afresh; the draft comes along. Where none could be opened before, this is the first."""
    await _switch(app, "")


async def may_leave(app: CtxchatApp) -> bool:
    """Whether the session may be left; asked where commands run in the background that end with it, and not twice."""
    from ctxchat.tui.panels.jobs import Leaving

    background = app.session.background if app.session else None
    ending = [row for row in background.rows if row.running and not row.goes_on] if background else []
    return not ending or isinstance(app.screen, Leaving) or bool(await app.ask(Leaving(ending)))


async def _switch(app: CtxchatApp, session: str) -> None:
    if not await may_leave(app):
        return
    first = bool(app.controller.trouble)
    await app.controller.switch(session)
    if first:
        await get_ready(app)


async def branch(app: CtxchatApp, argument: str = "") -> None:
    """A copy of the session up to a message (all of it without one)."""
    await go_on_in(app, await app.services.fork(app.controller.open_session().id, argument))


async def go_on_in(app: CtxchatApp, branched: str) -> None:
    """Open a branch that was just made."""
    if not await may_leave(app):
        app.chat.notice("info", "The branch is there, in /sessions; you are where you were.")
        return
    await app.controller.switch(branched)
    app.chat.notice("info", "You are in a branch now. The session it came from is as it was.")


async def handoff(app: CtxchatApp, argument: str = "") -> None:
    """Go on with the work in a fresh session: its first message, drafted, is shown to be mended, and sent there."""
    from ctxchat.tui.panels.handoff import HandoffScreen

    session = app.controller.idle_session()
    if not await may_leave(app):
        return
    text = await app.ask(HandoffScreen(session.handoff, argument, await session.handoff.draft(argument)))
    if text is None:
        return
    title = one_line(argument, 60)
    fresh = await app.services.hand_off(session.id, title)
    if not session.read_only:
        await session.handoff.record_handoff(fresh, title)
    await app.controller.switch(fresh)
    app.controller.send_draft(Draft(text, pasted=tuple(mentions(text))))  # it quotes what was said, mentions too


async def rename(app: CtxchatApp, argument: str = "") -> None:
    """Give the session a title; without one, ask in the composer."""
    if not argument:
        app.chat.composer.set_draft("/rename " + clean(app.controller.open_session().state.title))
        return
    await app.controller.open_session().rename(one_line(argument, 120))
    app.chat.show_header()


async def agents(app: CtxchatApp, argument: str = "") -> None:
    """Choose from the list, or by name; `usual` is the one without a name, unless an agent is called that."""
    from ctxchat.tui.panels.agents import AgentsScreen

    session = app.controller.idle_session()
    before = session.setup.agent
    name = argument or await app.ask(AgentsScreen(app.settings, before))
    if name is None:
        return
    name = "" if name == "usual" and name not in app.settings.all_agents else name
    if name == before:
        await put_off_no_more(app, "agent")
        return
    who = f"The agent {one_line(name, 40)}" if name else "The usual agent"
    own = app.settings.all_agents.get(name)
    wanted = (own and own.permissions) or app.settings.permissions.mode
    if wanted == "all" != session.permissions.mode and not await app.ask(
        Confirm(NOTHING_ASKS, danger=f"{who} works in mode all.")
    ):
        return
    left = app.settings.all_agents.get(before)
    keeps_model = own.model == session.context_usage.model if own and own.model else not (left and left.model)
    by = "" if keeps_model else (own and own.model) or app.settings.model
    if not await comes_now(app, f"{who} now?", by=by, agent=name):
        return
    context_usage = await session.setup.switch_agent(name)
    app.chat.changed(context_usage, f"{who} goes on from here, with {context_usage.model}, {session.permissions.mode}.")
    for notice in session.setup.notices:
        app.chat.notice("warning", notice)


async def comes_now(app: CtxchatApp, question: str, *, by: str = "", **change: str) -> bool:
    """Whether what has requests begin anew is to come now: asked with its price, where it has one; else it may be put off until
    the next compaction (`Setup.defer_setup`). Where another model answers then, `by` is its name."""
    session = app.controller.idle_session()
    if by:
        words = first_words(session.context_usage, await session.setup.price_with(by))
        price = " ".join(filter(None, (words, thoughts_words(session.setup.thoughts_lost_with(by)))))
    else:
        price = anew_words(session.context_usage, session.changes.rewrite_all(head=True), time())
    answer = not price or await app.ask(Confirm(f"{question}\n{price}", may_wait=True))
    if answer == "later":
        deferred = await session.setup.defer_setup(**change)
        app.chat.notice("info", f"With the next compaction: {deferred.words}.")
        await app.chat.refresh_session()
    return answer is True


async def put_off_no_more(app: CtxchatApp, what: Literal["agent", "effort", "model"]) -> None:
    """Go on as it is, where something else was to come with the next compaction."""
    setup = app.controller.idle_session().setup
    if getattr(setup.deferred, what) is not None:
        await setup.defer_setup(**{what: None})
        app.chat.notice("info", f"The {what} stays as it is.")
        await app.chat.refresh_session()


async def permissions(app: CtxchatApp, argument: str = "") -> None:
    """The rules in force in this session."""
    from ctxchat.tui.panels.permissions import PermissionsScreen

    approvals = app.controller.open_session().permissions
    await app.ask(PermissionsScreen(approvals, await to_thread(app.load_settings), paths.config_dir()))


async def mode(app: CtxchatApp, argument: str = "") -> None:
    """Set the named permission mode, or go to the next; the one in which nothing asks only once that is confirmed."""
    session = app.controller.open_session()
    if isinstance(app.screen, Confirm):
        return  # the key was pressed once more while it asks
    if argument and argument not in MODES:
        raise CtxchatError(f"There is no mode {one_line(argument, 40)}.", f"Modes: {', '.join(MODES)}.")
    before = session.permissions.mode
    wanted = MODES[MODES.index(argument) if argument else (MODES.index(before) + 1) % len(MODES)]
    if wanted == "all" != before:
        if not argument:  # the key goes on round: what stands at the composer while it asks is what a no leaves
            await session.setup.choose_mode(MODES[0])
            app.chat.show_header()
        if not await app.ask(Confirm(NOTHING_ASKS, danger="Mode all?")):
            return
    await session.setup.choose_mode(wanted)
    app.chat.show_header()


async def export(app: CtxchatApp, argument: str = "") -> None:
    """The record as Markdown with secrets masked, in the workspace unless a path is given, for the owner's eyes only. An existing
    file is left alone."""
    from ctxchat.core.secrets import masked
    from ctxchat.presentation.export import as_markdown
    from ctxchat.storage.private_files import write_private

    session = app.controller.open_session()
    target = placed(app, argument or f"ctxchat-{session.id[:8]}.md")
    try:
        text = await to_thread(lambda: masked(as_markdown(session.state)))
        await to_thread(write_private, target, text.encode("utf-8", "replace"))
    except FileExistsError:
        raise CtxchatError(f"{target} is there already.", "Name another file: /export FILE") from None
    except OSError as problem:
        raise CtxchatError(f"{target}: {problem.strerror or problem}", "Name another file: /export FILE") from None
    app.chat.notice("info", f"Written to {target}")
