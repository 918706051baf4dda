"""Follows edits of settings and themes while the program runs: notices a saved file, reads it, applies it to the screen and the
session, and notifies the person of each change in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ctxchat.config.consistency import for_agent
from ctxchat.config.effective import Loaded, changes
from ctxchat.config.news import compare_settings
from ctxchat.config.problems import Problem
from ctxchat.config.schema import Settings
from ctxchat.config.themes import load_themes
from ctxchat.config.watch import Watch
from ctxchat.core.errors import CtxchatError
from ctxchat.presentation.usage_text import break_words
from ctxchat.tui.panels.panel import Confirm, Panel
from ctxchat.tui.panels.settings import price_of_edits
from ctxchat.tui.starting import servers_arrive, spoken
from ctxchat.tui.style.themed_app import textual_theme

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

POLL_INTERVAL_S = 5.0
"""Seconds between two checks of the files; when the terminal gets the focus back, they are checked at once."""

MAX_PROBLEMS = 3
"""Problems listed in one notification; a last line says how many more there are."""

MAX_LINES = 8
"""Changes listed in one notification, likewise."""


class Edits:
    """Watches the files of the settings and applies them when they change.

    `loaded` are the settings in force, `load` reads them again, `folder` holds the person's own settings.
    """

    def __init__(self, app: CtxchatApp, load: Callable[[], Loaded], loaded: Loaded, folder: Path) -> None:
        self._app = app
        self._load = load
        self._folder = folder
        self._loaded = loaded
        self._good = loaded  # the last settings that were read without a broken file
        self._watch = Watch((*loaded.files, folder / "trusted.toml", folder / "permissions.toml", folder / "themes"))
        self._checking = asyncio.Lock()

    async def glance(self) -> None:
        """Check the files once and apply what was saved. Does nothing while another check is running."""
        if self._checking.locked():
            return
        async with self._checking:
            changed = await asyncio.to_thread(self._watch.changed)
            themes = any(path.parent == self._folder / "themes" for path in changed)
            theme_problems = await self._take_themes() if themes else ()
            if changed:
                by_hand = not any(isinstance(screen, Panel) for screen in self._app.screen_stack)
                await self.reload_settings(theme_problems, by_hand=by_hand)

    async def reload_settings(self, wrong: Sequence[Problem] = (), *, by_hand: bool = False) -> None:
        """Read the settings again and apply them; with a broken file the last good ones stay. The problems in `wrong` are shown
        together with the changes. What was edited `by_hand` and has requests begin anew waits until the person was asked."""
        try:
            loaded = await asyncio.to_thread(self._load)
            await asyncio.to_thread(self._watch.add_places, loaded.files)
        except CtxchatError as problem:
            self._notify(str(problem), warning=True)
            return
        before, self._loaded = self._loaded, loaded
        self._keep_banner_notices("settings", loaded.notices)
        if loaded.broken:
            if loaded.broken != before.broken:
                stays = "Not applied: the last good settings stay."
                self._notify("\n".join((*self._problem_lines(loaded.broken), stays)), warning=True)
            return
        waiting = await self._put_off(loaded) if by_hand else {}
        session = self._app.controller.session
        lines = compare_settings(self._good, loaded, session.setup.deferred.settings if session else ()).lines
        shown_before = {p.text for p in self._good.problems}
        problems = self._problem_lines([*wrong, *(p for p in loaded.problems if p.text not in shown_before)])
        mended, self._good = bool(before.broken), loaded
        await self._put_in_force(loaded)
        if mended and not lines:
            lines = ("The settings are whole again; nothing else changed.",)
        if lines or problems:
            self._notify("\n".join((*problems, *few(lines))), warning=bool(problems))
        if waiting:
            self._app.run_worker(partial(self._ask_about, tuple(waiting)), group="asking", exit_on_error=False)

    async def _put_off(self, loaded: Loaded) -> Mapping[str, Any]:
        """Let the former values of changed options hold in this session until its next compaction, where requests would begin
        anew at a price. Returns these values by key."""
        session = self._app.controller.session
        if session is None or session.read_only:
            return {}
        changed = changes(self._good.settings, loaded.settings)
        held = dict(session.setup.deferred.settings)
        back = [key for key, _, value in changed if key in held and held[key] == value]
        waiting = {key: was for key, was, _ in changed if key not in held and price_of_edits(session, [key])}
        if back or waiting:
            kept = {key: value for key, value in held.items() if key not in back}
            await session.setup.defer_setup(settings={**kept, **waiting})
        return waiting

    async def _ask_about(self, keys: Sequence[str]) -> None:
        """Ask whether edits that wait for the next compaction are to count now, with what that costs."""
        app, session = self._app, self._app.controller.session
        if session is None:
            return
        price = price_of_edits(session, keys)
        answer = await app.ask(Confirm(f"Edited: {', '.join(keys)}. In force now?\n{price}", may_wait=True))
        held = session.setup.deferred.settings
        if answer is True and app.controller.session is session:
            await session.setup.defer_setup(settings={key: value for key, value in held.items() if key not in keys})
            await self._put_in_force(self._good)
        elif session.setup.deferred:
            app.chat.notice("info", f"With the next compaction: {session.setup.deferred.words}.")
        await app.chat.refresh_session()

    async def _take_themes(self) -> Sequence[Problem]:
        """Load the themes again; the problems in their files."""
        loaded_themes = await asyncio.to_thread(load_themes, self._folder)
        self._app.learn_themes([textual_theme(theme) for theme in loaded_themes.themes.values()])
        self._keep_banner_notices("themes", [problem.text for problem in loaded_themes.problems])
        return loaded_themes.problems

    async def _put_in_force(self, loaded: Loaded) -> None:
        """Apply keys, theme and display options to the screen, and the rest to the session through its `setup`: at once, or with
        its next message."""
        app, settings = self._app, loaded.settings
        app.use_keys(loaded.keys.keys)
        if settings.theme != app.settings.theme:
            app.wear(settings.theme)
        app.settings = settings
        app.services.adopt(loaded)
        for screen in app.screen_stack:
            if isinstance(screen, Panel):
                screen.reread(loaded)
        session = app.controller.session
        agent = session.setup.agent if session else None
        app.chat.follow(settings.interface, soft_mark(settings, agent))
        if session is None:
            return
        notices_before, break_before = session.setup.notices, break_words(session.context_usage)
        try:
            context_usage = await session.setup.adapt()
        except CtxchatError as problem:
            self._notify(str(problem), warning=True)
            return
        for notice in session.setup.notices:
            if notice not in notices_before:
                self._notify(notice, warning=True)
        if (words := break_words(context_usage)) and words != break_before:
            app.chat.notice("info", words)
        app.chat.show_figures(context_usage)
        app.chat.show_header()
        # In the background: a slow server must delay neither the notification of this edit nor the next edit.
        app.chat.run_worker(partial(servers_arrive, app), group="servers", exclusive=True, exit_on_error=False)

    def _keep_banner_notices(self, about: str, notices: Sequence[str]) -> None:
        """Remove the banner's notices `about` this subject, except these, which still apply."""
        self._app.chat.banner.only(about, [spoken(self._app, text) for text in notices])

    def _notify(self, text: str, warning: bool = False) -> None:
        """Show a notification in the corner, in place of earlier ones, for as long as it takes to read."""
        self._app.clear_notifications()
        severity = "warning" if warning else "information"
        self._app.notify(text, severity=severity, timeout=12 if warning else 6)

    def _problem_lines(self, problems: Sequence[Problem]) -> tuple[str, ...]:
        """The first `MAX_PROBLEMS` problems in a line each, with short file names, and how many more there are."""
        lines = tuple(brief(problem, self._folder) for problem in problems[:MAX_PROBLEMS])
        more = len(problems) - len(lines)
        return (*lines, f"and {more} more: `ctxchat config check` lists them") if more else lines


def few(lines: Sequence[str]) -> tuple[str, ...]:
    """The first `MAX_LINES` lines, and how many more there are."""
    more = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], f"and {more} more") if more > 0 else tuple(lines)


def brief(problem: Problem, folder: Path) -> str:
    """A problem in one short line, with its file relative to the settings folder."""
    file = Path(problem.file)
    name = str(file.relative_to(folder)) if file.is_relative_to(folder) else problem.file
    return msgspec.structs.replace(problem, file=name).brief


def soft_mark(settings: Settings, agent: str | None = None) -> float:
    """The share of the token limit from which a summary is prepared ahead, 0 for never; by the settings of this agent, where it
    has its own."""
    try:
        prepare = for_agent(settings, agent)[0].context.prepare
    except CtxchatError:
        prepare = settings.context.prepare
    return prepare.soft_mark if prepare.enabled else 0.0
