"""Commands for sessions of other agents: offers them where some are found or a path to some is pasted, and imports them on
request."""

from __future__ import annotations

from asyncio import to_thread
from contextlib import aclosing
from os.path import expanduser
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from ctxchat.core.errors import CtxchatError
from ctxchat.importing.outcome import (
    FOLLOWING,
    Imported,
    brought_in,
    deleted_there,
    importable,
    not_brought_in,
    summary,
)
from ctxchat.tui.chat.offers import ImportLine, ImportOffer
from ctxchat.tui.commands import shown_key

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp


async def import_sessions(app: CtxchatApp, argument: str = "") -> None:
    """Import a file or folder; without an argument, offer all sessions found. `stop` ends the running import."""
    if argument == "stop":
        if not app.chat.questions.stop_import():
            app.chat.notice("info", "No import is under way.")
    elif argument:
        await import_from(app, argument)
    elif found := await app.services.importable():
        follow = not app.settings.sessions.follow and await app.services.may_offer_following()
        await app.chat.questions.offer_import(ImportOffer(found, follow=follow))
    else:
        app.chat.notice("info", "No sessions of other agents were found that are not here yet.")


async def offer_path(app: CtxchatApp, path: str) -> None:
    """Offer to import the sessions at a pasted path; nothing happens where it holds none."""
    if found := await app.services.importable(placed(app, path)):
        await app.chat.questions.offer_import(ImportOffer(found, path))


async def tell_found(app: CtxchatApp) -> None:
    """Announce, once, that sessions of other agents were found, unless they are imported automatically."""
    if not app.settings.sessions.follow and (found := await app.services.first_found()):
        words = (
            f"Found: {importable(found)}. /import brings them in, to search and go on with, and new ones as they come, "
            f"where you want it. {deleted_there(found)}"
        )
        app.chat.announce(words.rstrip(), "info", above=True)


async def follow_from_now(wanted: bool, app: CtxchatApp, argument: str = "") -> None:
    """Store the answer to whether new sessions are to be imported automatically; the person is not asked again."""
    from ctxchat.config.write import set_value

    await app.services.following_answered()
    if wanted:
        try:
            await to_thread(set_value, app.settings_file, "sessions.follow", True)
        except OSError as problem:
            why = f"{app.settings_file}: {problem.strerror or problem}"
            raise CtxchatError(why, "New sessions are not brought in by themselves.") from problem
        app.chat.notice("info", f"{FOLLOWING} `ctxchat sessions import --no-follow` ends it.")


class FollowedSessions:
    """Imports new sessions of other agents automatically, where the settings say so, and announces each one once."""

    def __init__(self, app: CtxchatApp) -> None:
        self._app = app
        self._told: set[str] = set()  # ids of announced sessions: one that keeps growing is announced once

    async def look(self) -> float:
        """Import what is new; the seconds that took."""
        app, began = self._app, monotonic()
        if not app.settings.sessions.follow or app.chat.questions.importing:
            return 0.0
        imported: list[Imported] = []
        trouble = ""
        try:
            async with aclosing(app.services.following()) as news:
                async for each in news:
                    if isinstance(each, Imported):
                        imported.append(each)
            trouble = not_brought_in(imported)
        except CtxchatError as problem:
            trouble = str(problem)
        if imported or trouble:
            app.chat.banner.only("following", (trouble,))
        if trouble:
            app.chat.announce(trouble, about="following")
        fresh = [session for session in imported if session.id not in self._told]
        if words := brought_in(fresh):
            self._told.update(session.id for session in fresh)
            key = next(map(shown_key, app.keys.get("sessions", ())), "/sessions")
            app.chat.announce(f"{words}; {key} shows them.", "info")
        return monotonic() - began


def placed(app: CtxchatApp, path: str) -> Path:
    """A typed path, relative to the workspace."""
    return app.services.workspace / expanduser(path)  # noqa: PTH111  (pathlib's raises where nobody has that name)


async def import_from(app: CtxchatApp, path: str) -> None:
    """Import the sessions at `path`, or without one all that are found, in the background and with progress, until it is
    stopped."""
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
