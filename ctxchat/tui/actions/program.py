"""The program around the session: settings, trust, theme, details, clipboard, editor, help, the end."""

from __future__ import annotations

from asyncio import to_thread
from typing import TYPE_CHECKING

from ctxchat.core.errors import CtxchatError
from ctxchat.presentation.text import one_line
from ctxchat.presentation.usage_text import count
from ctxchat.tui.actions.sessions import may_leave

if TYPE_CHECKING:
    from pathlib import Path

    from ctxchat.tui.app import CtxchatApp


async def settings(app: CtxchatApp, argument: str = "") -> None:
    """Every option, with its origin."""
    from ctxchat.tui.panels.settings import SettingsScreen

    loaded = await to_thread(app.load_settings)
    if await app.ask(SettingsScreen(loaded, app.load_settings, app.settings_file, app.controller.session)):
        await _reread(app)


async def keys(app: CtxchatApp, argument: str = "") -> None:
    """Every action with its keys."""
    from ctxchat.tui.panels.keys import KeysScreen

    if await app.ask(KeysScreen(await to_thread(app.load_settings), app.load_settings, app.settings_file)):
        await _reread(app)


async def notices(app: CtxchatApp, argument: str = "") -> None:
    """Show all notices that are still true."""
    from ctxchat.tui.panels.notices import NoticesScreen

    await app.ask(NoticesScreen(app.chat.banner.told))


async def secrets(app: CtxchatApp, argument: str = "") -> None:
    """Show the secrets that were masked in this session."""
    from ctxchat.tui.panels.secrets import SecretsScreen

    session, loaded = app.controller.open_session(), await to_thread(app.load_settings)
    if await app.ask(SecretsScreen(loaded, app.load_settings, app.settings_file, session, app.services.masking)):
        await _reread(app)


async def trust(app: CtxchatApp, argument: str = "") -> None:
    """Show the folder's own settings, and trust them if the person agrees: then they may start programs and change
    permissions."""
    from ctxchat.config import paths, trust
    from ctxchat.tui.panels.trust import TrustScreen

    folder = app.services.workspace
    loaded = await to_thread(app.load_settings)
    if loaded.trusted:
        app.chat.notice("info", "The settings of this folder are trusted already, as they are.")
        return
    before = loaded.trust.lines_beside(loaded.project.lines) if loaded.trust and loaded.trust.digest else None
    if not await app.ask(TrustScreen(folder, loaded.project.lines, before)):
        return
    try:
        await to_thread(trust.trust, paths.config_dir(), folder, loaded.project)
    except OSError as problem:
        raise CtxchatError(
            f"It could not be stored that this folder is trusted, in {paths.config_dir()}: {problem.strerror or problem}.",
            "The settings of this folder do not count.",
        ) from problem
    app.chat.notice("info", "The settings of this folder count from now on, until they change.")
    await _reread(app)


async def keep_line(app: CtxchatApp, typed: str) -> None:
    """Add a line to a memory file for later sessions: `# words` to this folder's, `#me words` to the person's own."""
    from ctxchat.tools.conversation import append_line
    from ctxchat.tools.conversation import one_line as memory_line

    folder, mine = app.services.workspace, typed.startswith("#me ")
    path = await to_thread(_memory_path, folder, mine)
    line = f"- {memory_line(typed.partition(' ')[2])}"
    try:
        new = await to_thread(append_line, path, line, 0o600 if mine else 0o644)
    except OSError as problem:
        raise CtxchatError(f"{path}: {problem.strerror or problem}", "Nothing was kept.") from problem
    name = str(path) if mine else str(path.relative_to(folder))
    app.chat.notice("info", f"Kept in {name}." if new else f"{name} says so already.")


def _memory_path(folder: Path, mine: bool) -> Path:
    """The memory file that a line is added to. Raises CtxchatError if the project's file is a link to somewhere else."""
    from ctxchat.config.paths import config_dir
    from ctxchat.context.memory_files import MEMORY_NAME, memory_file

    if mine:
        return config_dir() / MEMORY_NAME
    path = memory_file(folder) or folder / MEMORY_NAME
    if not path.resolve().is_relative_to(folder.resolve()):
        raise CtxchatError(
            f"{path.name} is a link that leads out of this folder.", "`#me …` keeps it in your own memory."
        )
    return path


async def theme(app: CtxchatApp, argument: str = "") -> None:
    """Apply the named theme, or choose with a preview; the choice is kept in the person's settings."""
    from ctxchat.tui.panels.themes import ThemesScreen

    context_usage = app.controller.session.context_usage if app.controller.session else None
    name = argument or await app.ask(ThemesScreen(app.theme_names, context_usage))
    if not name:
        return
    if name not in app.theme_names:
        names = sorted(app.theme_names)
        listed = ", ".join(names[:12]) + (" …" if names[12:] else "")
        raise CtxchatError(f"There is no theme {one_line(name, 40)}.", f"Themes: {listed}.")
    app.wear(name)
    if app.edits and name != app.settings.theme:
        from ctxchat.config.write import set_value

        try:
            await to_thread(set_value, app.settings_file, "theme", name)
        except OSError as problem:
            raise CtxchatError(
                f"{app.settings_file}: {problem.strerror or problem}", "It is in use until ctxchat ends."
            ) from problem
        await app.edits.reload_settings()


async def _reread(app: CtxchatApp) -> None:
    """Read the settings files again at once, after one was written."""
    if app.edits:
        await app.edits.reload_settings()


async def details(app: CtxchatApp, argument: str = "") -> None:
    """Unfold all, or fold all."""
    app.chat.transcript.toggle_details()


async def copy(app: CtxchatApp, argument: str = "") -> None:
    """The last answer to the clipboard."""
    answer = app.chat.presenter.last_answer()
    if not answer:
        raise CtxchatError("There is no answer to copy yet.")
    app.copy_to_clipboard(answer)
    app.say_briefly("The last answer is on the clipboard.")


async def copy_block(app: CtxchatApp, argument: str = "") -> None:
    """Letters over all that can be copied; the text of the one that is typed goes to the clipboard."""
    from ctxchat.tui.panels.jump import JumpScreen, Target

    transcript = app.chat.transcript
    corner = transcript.scrollable_content_region.offset
    found = [Target(corner + at, text) for at, text in transcript.texts_in_sight()]
    if not found:
        app.say_briefly("There is nothing here to copy.")
    elif target := await app.ask(JumpScreen(found)):
        text = str(target.press)
        app.copy_to_clipboard(text)
        app.say_briefly(f"{count(text.count(chr(10)) + 1, 'line')} on the clipboard.")


async def paste_image(app: CtxchatApp, argument: str = "") -> None:
    """The image on the system's clipboard goes along with the message."""
    from ctxchat.tools.mentions import image
    from ctxchat.tui.unsent.clipboard import image_on_clipboard

    found = image("clipboard.png", await to_thread(image_on_clipboard))
    if found.kind != "image":
        raise CtxchatError(f"The image on the clipboard was {found.why}.")
    app.chat.composer.attached.add_images(found)


async def editor(app: CtxchatApp, argument: str = "") -> None:
    """The draft in the person's own editor."""
    app.chat.composer.edit_outside(app.editor_command())


async def open_place(app: CtxchatApp, argument: str) -> None:
    """A line of a file, as `src/app.py:10` names it, in the person's own editor."""
    from ctxchat.tui.unsent.outside_editor import file_at, visit

    name, _, line = argument.rpartition(":")
    file = await to_thread(file_at, app.services.workspace, name)
    if file is None:
        raise CtxchatError(f"{one_line(name, 80)}: there is no such file here.")
    visit(file, int(line), app.editor_command(), app.suspend)
    app.refresh(layout=True)


async def tour(app: CtxchatApp, argument: str = "") -> None:
    """The tour in this terminal, in a made-up project; then this session again."""
    from ctxchat.tui.unsent.outside_editor import take_tour

    take_tour(app.suspend)
    app.refresh(layout=True)


async def stop(app: CtxchatApp, argument: str = "") -> None:
    """Interrupt the turn or the compaction."""
    app.controller.interrupt()


async def help_(app: CtxchatApp, argument: str = "") -> None:
    """Keys, commands, the gauge's letters."""
    from ctxchat.tui.panels.help import HelpScreen

    await app.ask(HelpScreen(app.keys))


async def quit_(app: CtxchatApp, argument: str = "") -> None:
    """Close the session and leave; asked first where commands run in the background that would end, and not twice."""
    if await may_leave(app):
        await app.leave()
