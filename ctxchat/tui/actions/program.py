"""The program around the session: settings, trust, theme, details, clipboard, editor, help, the end."""

from __future__ import annotations

from asyncio import to_thread

from ctxchat.core.errors import CtxchatError
from ctxchat.tui.host import Host
from ctxchat.tui.reading.text import one_line


async def settings(host: Host, argument: str = "") -> None:
    """Every option, with its origin."""
    from ctxchat.tui.screens.settings import SettingsScreen

    if await host.ask(SettingsScreen(host.load_settings, host.settings_file, host.work.session)):
        await _reread(host)


async def keys(host: Host, argument: str = "") -> None:
    """Every action with its keys."""
    from ctxchat.tui.screens.keys import KeysScreen

    if await host.ask(KeysScreen(host.load_settings, host.settings_file)):
        await _reread(host)


async def notices(host: Host, argument: str = "") -> None:
    """All that was said above the conversation and is still true."""
    from ctxchat.tui.screens.notices import NoticesScreen

    await host.ask(NoticesScreen(host.chat.banner.told))


async def secrets(host: Host, argument: str = "") -> None:
    """What was masked in this session."""
    from ctxchat.tui.screens.secrets import SecretsScreen

    session = host.work.open_session()
    if await host.ask(SecretsScreen(host.load_settings, host.settings_file, session, host.services.masking)):
        await _reread(host)


async def trust(host: Host, argument: str = "") -> None:
    """From now on this folder's own settings, as they are shown, may start programs and change permissions."""
    from ctxchat.config import paths, trust
    from ctxchat.tui.screens.trust import TrustScreen

    folder = host.services.workspace
    loaded = await to_thread(host.load_settings)
    if loaded.trusted:
        host.chat.notice("info", "The settings of this folder are trusted already, as they are.")
        return
    before = loaded.trust.lines if loaded.trust and loaded.trust.digest else None
    if not await host.ask(TrustScreen(folder, loaded.project.lines, before)):
        return
    try:
        await to_thread(trust.trust, paths.config_dir(), folder, loaded.project)
    except OSError as problem:
        raise CtxchatError(
            f"The trust could not be stored in {paths.config_dir()}: {problem.strerror or problem}.",
            "The settings of this folder do not count.",
        ) from problem
    host.chat.notice("info", "The settings of this folder count from now on, until they change.")
    await _reread(host)


async def theme(host: Host, argument: str = "") -> None:
    """Apply the named theme, or choose with a preview; the choice is kept in the person's settings."""
    from ctxchat.tui.screens.themes import ThemesScreen

    figures = host.work.session.figures if host.work.session else None
    name = argument or await host.ask(ThemesScreen(host.theme_names, figures))
    if not name:
        return
    if name not in host.theme_names:
        near = ", ".join(sorted(host.theme_names)[:12])
        raise CtxchatError(f"There is no theme {one_line(name, 40)}.", f"Themes: {near} …")
    host.wear(name)
    if host.edits and name != host.settings.theme:
        from ctxchat.config.write import set_value

        try:
            await to_thread(set_value, host.settings_file, "theme", name)
        except OSError as problem:
            raise CtxchatError(f"{host.settings_file}: {problem.strerror or problem}", "It holds for now.") from problem
        await host.edits.take()


async def _reread(host: Host) -> None:
    """What was just written counts at once, without waiting for the next look at the files."""
    if host.edits:
        await host.edits.take()


async def details(host: Host, argument: str = "") -> None:
    """Unfold all, or fold all."""
    host.chat.transcript.toggle_details()


async def copy(host: Host, argument: str = "") -> None:
    """The last answer to the clipboard."""
    answer = host.chat.feed.last_answer()
    if not answer:
        raise CtxchatError("There is no answer to copy yet.")
    host.copy_to_clipboard(answer)
    host.say_briefly("The last answer is on the clipboard.")


async def paste_image(host: Host, argument: str = "") -> None:
    """The image on the system's clipboard goes along with the message."""
    from ctxchat.tools.mentions import image
    from ctxchat.tui.unsent.clipboard import image_on_clipboard

    found = image("clipboard.png", await to_thread(image_on_clipboard))
    if found.kind != "image":
        raise CtxchatError(f"The image on the clipboard was {found.why}.")
    host.chat.composer.attached.add_images(found)


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
