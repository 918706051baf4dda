"""What each command does. Plain functions over the `Host`, so that the app stays thin; screens are imported when they are opened.

A function may wait for a screen (they run in workers) and raises CtxchatError for what a person can mend.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import get_args

from ctxchat.agent.preview import Preview
from ctxchat.core.access import Mode
from ctxchat.core.errors import CtxchatError
from ctxchat.core.sections import SECTIONS
from ctxchat.tui.host import Host
from ctxchat.tui.text import clean, one_line

Action = Callable[[Host, str], Awaitable[None]]
"""What follows the slash command is its second argument; keys and the palette give an empty one."""

MODES: tuple[Mode, ...] = get_args(Mode)


# ── making room ──


async def free_up(host: Host, argument: str = "") -> None:
    """The preview; what is ticked there is run, with the summary as edited where that was asked for."""
    from ctxchat.tui.screens.preview import PreviewScreen

    preview = await _previewed(host, argument)
    if preview is None:
        return
    session = host.work.idle_session()
    agreed = await host.ask(PreviewScreen(session, preview))
    if agreed is None:
        return
    summary = await _edited(host, agreed.preview, agreed.steps) if agreed.edit else None
    if agreed.edit and summary is None:
        return
    host.work.run_pass(host.work.idle_session().free_up(agreed.preview, agreed.steps, summary=summary))


async def _edited(host: Host, preview: Preview, steps: tuple[str, ...]) -> str | None:
    from ctxchat.tui.screens.summary import SummaryScreen

    drafted = host.work.idle_session().draft_summary(preview, steps)
    return await host.ask(SummaryScreen(drafted, preview))


async def compact(host: Host, argument: str = "") -> None:
    """All steps at once, no questions; during a turn, as soon as no call is open."""
    if host.work.busy:
        host.work.agree("now", argument)
        return
    preview = await _previewed(host, argument)
    if preview is not None:
        host.work.run_pass(host.work.idle_session().free_up(preview))


async def _previewed(host: Host, instructions: str) -> Preview | None:
    """What could be freed; where that is nothing it is said, calmly."""
    preview = await host.work.idle_session().preview(instructions)
    if preview.plan is not None:
        return preview
    host.chat.notice("info", preview.reason or "Nothing to free.")
    host.notify(preview.reason or "Nothing to free.")  # seen also where the chat is scrolled up
    return None


async def reinsert(host: Host, argument: str) -> None:
    """The facts that a compaction lost, back at the end."""
    session = host.work.idle_session()
    lost = len(session.lost_facts(argument))
    figures = await session.reinsert(argument)
    host.chat.changed(figures, f"{lost} fact{'' if lost == 1 else 's'} put back at the end, as one note.")


# ── the record ──


async def undo(host: Host, argument: str = "") -> None:
    """Take back a change, the last one without an id."""
    figures = await host.work.idle_session().undo(argument)
    host.chat.changed(figures, "Undone: the messages are back in the view.")


async def context(host: Host, argument: str = "") -> None:
    """Panel open or closed."""
    host.chat.toggle_panel()


async def archive(host: Host, argument: str = "") -> None:
    """The history of compactions; a branch that was made there is opened."""
    from ctxchat.tui.screens.archive import ArchiveScreen

    made = await host.ask(ArchiveScreen(host.work.open_session(), host.services, argument))
    await host.chat.refresh_session()
    if made:
        await host.work.switch(made)


async def xray(host: Host, argument: str = "") -> None:
    """A row for each message, or for those of a section; Enter there comes back with a group to go to."""
    from ctxchat.tui.screens.xray import XrayScreen

    section = SECTIONS[SECTIONS.index(argument)] if argument in SECTIONS else None
    group = await host.ask(XrayScreen(host.work.open_session(), section))
    await host.chat.refresh_session()
    if isinstance(group, str) and group:
        await host.chat.transcript.go_to(group)


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
        await host.chat.transcript.go_to(group)


async def flight(host: Host, argument: str = "") -> None:
    """The fill over time and every pass; one that is chosen there is opened in the archive."""
    from ctxchat.tui.screens.flight import FlightScreen

    chosen = await host.ask(FlightScreen(host.work.open_session(), host.services))
    if chosen:
        await archive(host, chosen)


async def sessions(host: Host, argument: str = "") -> None:
    """Open another one."""
    from ctxchat.tui.screens.sessions import SessionsScreen

    chosen = argument or await host.ask(SessionsScreen(host.services, host.work.open_session()))
    if chosen is not None and chosen != host.work.open_session().id:
        await host.work.switch(chosen)
    await host.chat.refresh_session()


async def new_session(host: Host, argument: str = "") -> None:
    """Start afresh; the draft comes along."""
    await host.work.switch("")


async def branch(host: Host, argument: str = "") -> None:
    """A copy of the session up to a message (all of it without one)."""
    fresh = await host.services.fork(host.work.open_session().id, argument)
    await host.work.switch(fresh)
    host.chat.notice("info", "This is a branch. The session it came from is as it was.")


async def rename(host: Host, argument: str = "") -> None:
    """Give the session a title; without one, ask in the composer."""
    if not argument:
        host.chat.composer.set_draft("/rename " + clean(host.work.open_session().state.title))
        return
    await host.work.open_session().rename(one_line(argument, 120))
    host.chat.show_header()


async def models(host: Host, argument: str = "") -> None:
    """Choose from the list, or by name."""
    from ctxchat.tui.screens.models import ModelsScreen

    session = host.work.idle_session()
    name = argument or await host.ask(ModelsScreen(host.services, session))
    if isinstance(name, str) and name and name != session.figures.model:
        host.chat.changed(await session.switch_model(name), f"From here on {name} answers.")
    await host.chat.refresh_session()


async def mode(host: Host, argument: str = "") -> None:
    """Set the named permission mode, or go to the next."""
    session = host.work.open_session()
    if argument and argument not in MODES:
        raise CtxchatError(f"There is no mode {one_line(argument, 40)}.", f"Modes: {', '.join(MODES)}.")
    step = MODES[(MODES.index(session.mode) + 1) % len(MODES)]
    session.set_mode(MODES[MODES.index(argument)] if argument in MODES else step)
    host.chat.show_header()


async def settings(host: Host, argument: str = "") -> None:
    """Every option, with its origin."""
    from ctxchat.tui.screens.settings import SettingsScreen

    figures = host.work.session.figures if host.work.session else None
    if await host.ask(SettingsScreen(host.load_settings, host.settings_file, figures)):
        host.apply_settings(await to_thread(host.load_settings))


async def trust(host: Host, argument: str = "") -> None:
    """From now on this folder's own settings may start programs and change permissions."""
    from ctxchat.config import paths, trust
    from ctxchat.tui.screens.asking import Confirm

    folder = host.services.workspace
    if trust.is_trusted(paths.config_dir(), folder):
        host.chat.notice("info", "This folder is trusted already.")
    elif await host.ask(Confirm(f"Trust {folder}? Its own settings may then start programs and change permissions.")):
        try:
            await to_thread(trust.trust, paths.config_dir(), folder)
        except OSError as problem:
            raise CtxchatError(f"The trust could not be stored: {problem.strerror or problem}.") from problem
        host.chat.notice("info", "This folder is trusted from the next start on.")


async def theme(host: Host, argument: str = "") -> None:
    """Apply the named theme, or choose with a preview."""
    if not argument:
        host.search_themes()
    elif argument in host.theme_names:
        host.wear(argument)
    else:
        near = ", ".join(sorted(host.theme_names)[:12])
        raise CtxchatError(f"There is no theme {one_line(argument, 40)}.", f"Themes: {near} …")


async def details(host: Host, argument: str = "") -> None:
    """Unfold all, or fold all."""
    host.chat.transcript.toggle_details()


async def copy(host: Host, argument: str = "") -> None:
    """The last answer to the clipboard."""
    answer = host.chat.last_answer()
    if not answer:
        raise CtxchatError("There is no answer to copy yet.")
    host.copy_to_clipboard(answer)
    host.say_briefly("The last answer is on the clipboard.")


async def export(host: Host, argument: str = "") -> None:
    """The record as Markdown, in the workspace unless a path is given. An existing file is left alone."""
    from ctxchat.tui.export import as_markdown

    session = host.work.open_session()
    target = host.services.workspace / (argument or f"ctxchat-{session.id[:8]}.md")
    try:
        await to_thread(_write_new, target, as_markdown(session.state))
    except FileExistsError:
        raise CtxchatError(f"{target} is there already.", "Name another file: /export FILE") from None
    except OSError as problem:
        raise CtxchatError(f"{target}: {problem.strerror or problem}", "Name another file: /export FILE") from None
    host.chat.notice("info", f"Written to {target}")


def _write_new(target: Path, text: str) -> None:
    with target.expanduser().open("x", encoding="utf-8", errors="replace") as file:
        file.write(text)


async def editor(host: Host, argument: str = "") -> None:
    """The draft in the person's own editor."""
    host.chat.composer.edit_outside(host.editor_command())


async def stop(host: Host, argument: str = "") -> None:
    """Interrupt the turn or the pass."""
    host.work.interrupt()


async def help_(host: Host, argument: str = "") -> None:
    """Keys, commands, the gauge's letters."""
    from ctxchat.tui.screens.help import HelpScreen

    await host.ask(HelpScreen(host.keys))


async def quit_(host: Host, argument: str = "") -> None:
    """Close the session and leave."""
    await host.leave()


ACTIONS: Mapping[str, Action] = {
    "free": free_up,
    "compact": compact,
    "undo": undo,
    "context": context,
    "archive": archive,
    "xray": xray,
    "search": search,
    "flight": flight,
    "sessions": sessions,
    "new": new_session,
    "branch": branch,
    "rename": rename,
    "model": models,
    "mode": mode,
    "settings": settings,
    "trust": trust,
    "theme": theme,
    "details": details,
    "copy": copy,
    "export": export,
    "editor": editor,
    "stop": stop,
    "help": help_,
    "quit": quit_,
}
"""One for each name of the table in `commands`."""
