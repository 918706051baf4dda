"""Sessions of other agents: offered where some are found or a path to some is dropped, imported when the person says so."""

from __future__ import annotations

from contextlib import aclosing
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from ctxchat.core.errors import CtxchatError
from ctxchat.importing.outcome import Imported, importable, summary
from ctxchat.tui.chat.offers import ImportLine, ImportOffer

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp


async def import_sessions(app: CtxchatApp, argument: str = "") -> None:
    """A file or folder; without one, all that is found is offered. `stop` ends the import under way."""
    if argument == "stop":
        if not app.chat.questions.stop_import():
            app.chat.notice("info", "No import is under way.")
    elif argument:
        await import_from(app, argument)
    elif found := await app.services.importable():
        await app.chat.questions.offer_import(ImportOffer(found))
    else:
        app.chat.notice("info", "No sessions of other agents were found that are not here yet.")


async def offer_path(app: CtxchatApp, path: str) -> None:
    """A path was dropped or pasted: where it holds sessions, ask whether they are to be imported. Else nothing is said."""
    if found := await app.services.importable(placed(app, path)):
        await app.chat.questions.offer_import(ImportOffer(found, path))


async def tell_found(app: CtxchatApp) -> None:
    """One line, the first time that sessions of other agents lie on this machine."""
    if found := await app.services.first_found():
        words = f"Found: {importable(found)}. /import brings them in, to search and go on with."
        app.chat.announce(words, "info", above=True)


def placed(app: CtxchatApp, path: str) -> Path:
    """A path as it was written, from the folder at work in."""
    return app.services.workspace / expanduser(path)  # noqa: PTH111  (pathlib's raises where nobody has that name)


async def import_from(app: CtxchatApp, path: str) -> None:
    """Import, beside the chat, what that path holds, or without one all that is found; with progress, until it is stopped."""
    if app.chat.questions.importing:
        raise CtxchatError("An import is under way.", "/import stop ends it; what it has brought in stays.")
    line = ImportLine(get_current_worker().cancel)
    await app.chat.questions.mount(line)
    told: list[Imported] = []
    end = "Import stopped: "
    try:
        async with aclosing(app.services.importing(placed(app, path) if path else None)) as news:
            async for each in news:
                if isinstance(each, Imported):
                    told.append(each)
                else:
                    line.show_progress(each, len(told))
        end = ""
    finally:
        line.remove()
        if told or not end:
            app.chat.notice("info", f"{end}{summary(told)}")
    for problem in dict.fromkeys(one.problem for one in told if one.problem):
        app.chat.notice("warning", problem)
