"""What each command does. Plain functions over the app, so that the app stays thin; screens are imported when they are opened.

A function may wait for a screen (they run in workers) and raises CtxchatError for what a person can mend.
"""

from __future__ import annotations

from asyncio import to_thread
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ctxchat.core.access import Mode
from ctxchat.core.errors import CtxchatError
from ctxchat.core.sections import SECTIONS
from ctxchat.tui.text import clean, one_line

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

MODES: tuple[Mode, ...] = get_args(Mode)


async def free_up(app: CtxchatApp, argument: str = "") -> None:
    """The preview; what is ticked there is run."""
    from ctxchat.tui.screens.preview import PreviewScreen

    session = app.idle_session()
    preview = await session.preview(argument)
    if preview.plan is None:
        app.chat.notice("info", preview.reason or "Nothing to free.")
        return
    chosen = await app.push_screen_wait(PreviewScreen(session, preview))
    if chosen is not None:
        agreed, steps = chosen
        app.run_pass(session.free_up(agreed, steps))


async def compact(app: CtxchatApp, argument: str = "") -> None:
    """All steps at once, no questions."""
    session = app.idle_session()
    preview = await session.preview(argument)
    if preview.plan is None:
        app.chat.notice("info", preview.reason or "Nothing to free.")
        return
    app.run_pass(session.free_up(preview))


async def undo(app: CtxchatApp, argument: str = "") -> None:
    """Take back a change, the last one without an id."""
    figures = await app.idle_session().undo(argument)
    app.chat.changed(figures, "Undone: the messages are back in the view.")


async def context(app: CtxchatApp, argument: str = "") -> None:
    """Panel open or closed."""
    app.chat.toggle_panel()


async def archive(app: CtxchatApp, argument: str = "") -> None:
    """The history of compactions; a branch that was made there is opened."""
    from ctxchat.tui.screens.archive import ArchiveScreen

    made = await app.push_screen_wait(ArchiveScreen(app.open_session(), app.services, argument))
    await app.chat.refresh_session()
    if made:
        await app.switch_session(made)


async def xray(app: CtxchatApp, argument: str = "") -> None:
    """A row for each message, or for those of a section; Enter there comes back with a group to go to."""
    from ctxchat.tui.screens.xray import XrayScreen

    section = SECTIONS[SECTIONS.index(argument)] if argument in SECTIONS else None
    group = await app.push_screen_wait(XrayScreen(app.open_session(), section))
    await app.chat.refresh_session()
    if isinstance(group, str) and group:
        await app.chat.transcript.go_to(group)


async def search(app: CtxchatApp, argument: str = "") -> None:
    """Over everything ever said; an opened hit is a session id, or a session and a group."""
    from ctxchat.tui.screens.search import SearchScreen

    found = await app.push_screen_wait(SearchScreen(app.services, app.open_session(), argument))
    await app.chat.refresh_session()
    if not found:
        return
    session_id, group = found if isinstance(found, tuple) else (found, "")
    if session_id != app.open_session().id:
        await app.switch_session(session_id)
    if group:
        await app.chat.transcript.go_to(group)


async def sessions(app: CtxchatApp, argument: str = "") -> None:
    """Open another one."""
    from ctxchat.tui.screens.sessions import SessionsScreen

    chosen = argument or await app.push_screen_wait(SessionsScreen(app.services, app.open_session()))
    if chosen is not None and chosen != app.open_session().id:
        await app.switch_session(chosen)
    await app.chat.refresh_session()


async def new_session(app: CtxchatApp, argument: str = "") -> None:
    """Start afresh; the draft comes along."""
    await app.switch_session("")


async def branch(app: CtxchatApp, argument: str = "") -> None:
    """A copy of the session up to a message (all of it without one)."""
    fresh = await app.services.fork(app.open_session().id, argument)
    await app.switch_session(fresh)
    app.chat.notice("info", "This is a branch. The session it came from is as it was.")


async def rename(app: CtxchatApp, argument: str = "") -> None:
    """Give the session a title; without one, ask in the composer."""
    if not argument:
        app.chat.composer.set_draft("/rename " + clean(app.open_session().state.title))
        return
    await app.open_session().rename(one_line(argument, 120))
    app.chat.show_header()


async def models(app: CtxchatApp, argument: str = "") -> None:
    """Choose from the list, or by name."""
    from ctxchat.tui.screens.models import ModelsScreen

    session = app.idle_session()
    name = argument or await app.push_screen_wait(ModelsScreen(app.services, session))
    if isinstance(name, str) and name and name != session.figures.model:
        app.chat.changed(await session.switch_model(name), f"From here on {name} answers.")
    await app.chat.refresh_session()


async def mode(app: CtxchatApp, argument: str = "") -> None:
    """Set the named permission mode, or go to the next."""
    session = app.open_session()
    if argument and argument not in MODES:
        raise CtxchatError(f"There is no mode {one_line(argument, 40)}.", f"Modes: {', '.join(MODES)}.")
    step = MODES[(MODES.index(session.mode) + 1) % len(MODES)]
    session.set_mode(MODES[MODES.index(argument)] if argument in MODES else step)
    app.chat.show_header()


async def settings(app: CtxchatApp, argument: str = "") -> None:
    """Every option, with its origin."""
    from ctxchat.tui.screens.settings import SettingsScreen

    figures = app.session.figures if app.session else None
    if await app.push_screen_wait(SettingsScreen(app.load_settings, app.settings_file, figures)):
        app.apply_settings(await to_thread(app.load_settings))


async def theme(app: CtxchatApp, argument: str = "") -> None:
    """Apply the named theme, or choose with a preview."""
    if not argument:
        app.search_themes()
    elif argument in app.available_themes:
        app.theme = argument
    else:
        near = ", ".join(sorted(app.available_themes)[:12])
        raise CtxchatError(f"There is no theme {one_line(argument, 40)}.", f"Themes: {near} …")


async def details(app: CtxchatApp, argument: str = "") -> None:
    """Unfold all, or fold all."""
    app.chat.transcript.toggle_details()


async def copy(app: CtxchatApp, argument: str = "") -> None:
    """The last answer to the clipboard."""
    answer = app.chat.transcript.last_answer()
    if not answer:
        raise CtxchatError("There is no answer to copy yet.")
    app.copy_to_clipboard(answer)
    app.notify("The last answer is on the clipboard.", markup=False, timeout=3)


async def export(app: CtxchatApp, argument: str = "") -> None:
    """The record as Markdown, in the workspace unless a path is given. An existing file is left alone."""
    from ctxchat.tui.export import as_markdown

    session = app.open_session()
    target = app.services.workspace / (argument or f"ctxchat-{session.id[:8]}.md")
    try:
        await to_thread(_write_new, target, as_markdown(session.state))
    except FileExistsError:
        raise CtxchatError(f"{target} is there already.", "Name another file: /export FILE") from None
    except OSError as problem:
        raise CtxchatError(f"{target}: {problem.strerror or problem}", "Name another file: /export FILE") from None
    app.chat.notice("info", f"Written to {target}")


def _write_new(target: Path, text: str) -> None:
    with target.expanduser().open("x", encoding="utf-8", errors="replace") as file:
        file.write(text)


async def editor(app: CtxchatApp, argument: str = "") -> None:
    """The draft in the person's own editor."""
    app.chat.composer.edit_outside(app.editor_command())


async def stop(app: CtxchatApp, argument: str = "") -> None:
    """Interrupt the turn or the pass."""
    app.interrupt()


async def help_(app: CtxchatApp, argument: str = "") -> None:
    """Keys, commands, the gauge's letters."""
    from ctxchat.tui.screens.help import HelpScreen

    await app.push_screen_wait(HelpScreen(app.keys))


async def quit_(app: CtxchatApp, argument: str = "") -> None:
    """Close the session and leave."""
    await app.leave()
