"""The session itself: another one, a new one, a branch, its title, its model and mode, its Markdown."""

from __future__ import annotations

from asyncio import to_thread
from typing import get_args

from ctxchat.config import paths
from ctxchat.core.errors import CtxchatError
from ctxchat.core.permissions import Mode
from ctxchat.tui.host import Host
from ctxchat.tui.reading.text import clean, one_line
from ctxchat.tui.starting import get_ready

MODES: tuple[Mode, ...] = get_args(Mode)


async def sessions(host: Host, argument: str = "") -> None:
    """Open another one; where none could be opened before, the first."""
    from ctxchat.tui.screens.sessions import SessionsScreen

    session = None if host.work.trouble else host.work.open_session()
    chosen = argument or await host.ask(SessionsScreen(host.services, session))
    if chosen is not None and (session is None or chosen != session.id):
        await _switch(host, chosen)
    await host.chat.refresh_session()


async def new_session(host: Host, argument: str = "") -> None:
    """Start afresh; the draft comes along. Where none could be opened before, this is the first."""
    await _switch(host, "")


async def _switch(host: Host, session: str) -> None:
    first = bool(host.work.trouble)
    await host.work.switch(session)
    if first:
        await get_ready(host)


async def branch(host: Host, argument: str = "") -> None:
    """A copy of the session up to a message (all of it without one)."""
    await go_on_in(host, await host.services.fork(host.work.open_session().id, argument))


async def go_on_in(host: Host, branched: str) -> None:
    """Open a branch that was just made."""
    await host.work.switch(branched)
    host.chat.notice("info", "This is a branch. The session it came from is as it was.")


async def handoff(host: Host, argument: str = "") -> None:
    """Go on with the work in a fresh session: its first message, drafted, is shown to be mended, and sent there."""
    from ctxchat.tui.screens.handoff import HandoffScreen

    session = host.work.idle_session()
    text = await host.ask(HandoffScreen(session.handoff, argument, await session.handoff.draft(argument)))
    if text is None:
        return
    title = one_line(argument, 60) or clean(session.state.title)
    fresh = await host.services.hand_off(session.id, title)
    if not session.read_only:
        await session.handoff.done(fresh, title)
    await host.work.switch(fresh)
    host.work.say(text)


async def rename(host: Host, argument: str = "") -> None:
    """Give the session a title; without one, ask in the composer."""
    if not argument:
        host.chat.composer.set_draft("/rename " + clean(host.work.open_session().state.title))
        return
    await host.work.open_session().rename(one_line(argument, 120))
    host.chat.show_header()


async def agents(host: Host, argument: str = "") -> None:
    """Choose from the list, or by name; `usual` is the one without a name, unless an agent is called that."""
    from ctxchat.tui.screens.agents import AgentsScreen

    session = host.work.idle_session()
    before = session.setup.agent
    name = argument or await host.ask(AgentsScreen(host.settings, before))
    if name is None or name == before:
        return
    name = "" if name == "usual" and name not in host.settings.agents else name
    figures = await session.setup.switch_agent(name)
    who = f"The agent {one_line(name, 40)}" if name else "The usual agent"
    host.chat.changed(figures, f"{who} goes on from here, with {figures.model}, {session.mode}.")
    for notice in session.setup.notices:
        host.chat.notice("warning", notice)


async def permissions(host: Host, argument: str = "") -> None:
    """The rules in force in this session."""
    from ctxchat.tui.screens.permissions import PermissionsScreen

    gate = host.work.open_session().permissions
    await host.ask(PermissionsScreen(gate, host.load_settings, paths.config_dir()))


async def mode(host: Host, argument: str = "") -> None:
    """Set the named permission mode, or go to the next."""
    session = host.work.open_session()
    if argument and argument not in MODES:
        raise CtxchatError(f"There is no mode {one_line(argument, 40)}.", f"Modes: {', '.join(MODES)}.")
    step = MODES[(MODES.index(session.mode) + 1) % len(MODES)]
    session.mode = MODES[MODES.index(argument)] if argument in MODES else step
    host.chat.show_header()


async def export(host: Host, argument: str = "") -> None:
    """The record as Markdown with secrets masked, in the workspace unless a path is given, for the owner's eyes only. An existing
    file is left alone."""
    from ctxchat.core.secrets import masked
    from ctxchat.storage.files import write_private
    from ctxchat.tui.reading.export import as_markdown

    session = host.work.open_session()
    target = host.services.workspace / (argument or f"ctxchat-{session.id[:8]}.md")
    try:
        text = await to_thread(lambda: masked(as_markdown(session.state)))
        await to_thread(write_private, target.expanduser(), text.encode("utf-8", "replace"))
    except FileExistsError:
        raise CtxchatError(f"{target} is there already.", "Name another file: /export FILE") from None
    except OSError as problem:
        raise CtxchatError(f"{target}: {problem.strerror or problem}", "Name another file: /export FILE") from None
    host.chat.notice("info", f"Written to {target}")
