"""The beginning: the first session, what is slow, and who is to answer where no model is set. All of it after the first paint."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence

from ctxchat.core.errors import CtxchatError
from ctxchat.tui import servers
from ctxchat.tui.actions.importing import tell_found
from ctxchat.tui.arriving import arrive
from ctxchat.tui.host import Host
from ctxchat.tui.widgets.first_choice import FirstChoice

AGAIN = "/new tries again."


async def open_first(host: Host, session_id: str, notices: Sequence[str]) -> bool:
    """The session asked for, else a new one; False where there can be none, which is said with its remedy."""
    of_settings = host.services.notices
    for text in notices:
        host.chat.announce(spoken(host, text), about="settings" if text in of_settings else "themes")
    if session_id:
        try:
            await host.work.switch(session_id)
            return True
        except CtxchatError as problem:
            host.chat.announce(str(problem))
    try:
        await host.work.switch("")
        return True
    except Exception as problem:  # whatever it was: nobody is to write into nowhere
        known = isinstance(problem, CtxchatError)
        words = str(problem) if known else f"No session could be opened: {type(problem).__name__}: {problem}."
        host.chat.announce(f"{words} {AGAIN}")
        host.work.cannot_open(words)
        return False


def spoken(host: Host, text: str) -> str:
    """A notice with its file as one speaks of it: `config.toml:3`, `.ctxchat/config.toml` of the folder at work in."""
    return text.replace(f"{host.settings_file.parent}/", "").replace(f"{host.services.workspace}/", "")


async def list_files(host: Host) -> None:
    """The files of the folder: to be named in a message, and for the questions an empty chat offers."""
    from ctxchat.tui.unsent.workspace_files import examples, files_of

    files = await to_thread(files_of, host.services.workspace)
    host.chat.composer.prompt.files = files
    host.chat.empty.offer(await to_thread(examples, files))


async def get_ready(host: Host) -> None:
    """The model in force, the gauge, and the first choice of a model where none is set."""
    await host.services.warm_up()
    if session := host.work.session:
        await arrive(host.chat, session)
    look = await host.services.first_look()
    if look.note:
        host.chat.announce(look.note, about="model")
    session = host.work.session
    if look.offers and session and session.figures.model.startswith("offline/") and not host.work.busy:
        await host.chat.questions.choose_model(FirstChoice(look.offers))
    await servers.arrive(host)
    await tell_found(host)
