"""Saved edits of settings and themes, while the program runs: noticed, read anew, put in force on the screen and in the
session, and told in a sentence each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctxchat.config.consistency import for_agent
from ctxchat.config.effective import Loaded
from ctxchat.config.news import compare_settings
from ctxchat.config.problems import Problem
from ctxchat.config.schema import Settings
from ctxchat.config.themes import load_themes
from ctxchat.config.watch import Watch
from ctxchat.core.errors import CtxchatError
from ctxchat.presentation.usage_text import break_words
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.starting import servers_arrive, spoken
from ctxchat.tui.style.themed_app import textual_theme

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

POLL_INTERVAL_S = 5.0
"""Seconds between two looks at the files; who comes back from an editor to this terminal waits for none."""

MAX_PROBLEMS = 3
"""Problems that are told; how many more there are is said."""

MAX_LINES = 8
"""Changes that are told, likewise."""


class Edits:
    """`loaded` are the settings in force, `load` reads them anew, `folder` is that of the person's settings."""

    def __init__(self, app: CtxchatApp, load: Callable[[], Loaded], loaded: Loaded, folder: Path) -> None:
        self._app = app
        self._load = load
        self._folder = folder
        self._loaded = loaded
        self._good = loaded  # the last without a broken file
        self._watch = Watch((*loaded.files, folder / "trusted.toml", folder / "permissions.toml", folder / "themes"))
        self._looking = asyncio.Lock()

    async def glance(self) -> None:
        """Look once, and act where something was saved. One look at a time."""
        if self._looking.locked():
            return
        async with self._looking:
            changed = await asyncio.to_thread(self._watch.changed)
            themes = any(path.parent == self._folder / "themes" for path in changed)
            wrong = await self._take_themes() if themes else ()
            if changed:
                await self.reload_settings(wrong)

    async def reload_settings(self, wrong: Sequence[Problem] = ()) -> None:
        """Read the settings anew and put them in force; a broken file keeps the last good ones. `wrong` is to be told with
        what changed."""
        try:
            loaded = await asyncio.to_thread(self._load)
            await asyncio.to_thread(self._watch.add_places, loaded.files)
        except CtxchatError as problem:
            self._notify(str(problem), warning=True)
            return
        before, self._loaded = self._loaded, loaded
        self._still("settings", loaded.notices)
        if loaded.broken:
            if loaded.broken != before.broken:
                stays = "Not applied: the last good settings stay."
                self._notify("\n".join((*self._problem_lines(loaded.broken), stays)), warning=True)
            return
        lines = compare_settings(self._good, loaded).lines
        known = {p.text for p in self._good.problems}
        problems = self._problem_lines([*wrong, *(p for p in loaded.problems if p.text not in known)])
        mended, self._good = bool(before.broken), loaded
        await self._put_in_force(loaded)
        if mended and not lines:
            lines = ("The settings are whole again; nothing else changed.",)
        if lines or problems:
            self._notify("\n".join((*problems, *few(lines))), warning=bool(problems))

    async def _take_themes(self) -> Sequence[Problem]:
        found = await asyncio.to_thread(load_themes, self._folder)
        self._app.learn_themes([textual_theme(theme) for theme in found.themes.values()])
        self._still("themes", [problem.text for problem in found.problems])
        return found.problems

    async def _put_in_force(self, loaded: Loaded) -> None:
        """Keys, theme, what is shown, and the session by its own `setup`: at once, or with its next message."""
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
        app.chat.follow(
            show_reasoning=settings.interface.show_reasoning,
            soft_mark=soft_mark(settings, agent),
            editing=settings.interface.editing,
        )
        if session is None:
            return
        before, told = session.setup.notices, break_words(session.context_usage)
        try:
            context_usage = await session.setup.adapt()
        except CtxchatError as problem:
            self._notify(str(problem), warning=True)
            return
        for notice in session.setup.notices:
            if notice not in before:
                self._notify(notice, warning=True)
        if (words := break_words(context_usage)) and words != told:
            app.chat.notice("info", words)
        app.chat.show_figures(context_usage)
        app.chat.show_header()
        # Beside the rest: a slow one must not hold up what is told of this edit, nor the next edit.
        app.chat.run_worker(partial(servers_arrive, app), group="servers", exclusive=True, exit_on_error=False)

    def _still(self, about: str, notices: Sequence[str]) -> None:
        """Of what was said at the start about this, only these are still true."""
        self._app.chat.banner.only(about, [spoken(self._app, text) for text in notices])

    def _notify(self, text: str, warning: bool = False) -> None:
        """In a corner, for as long as it takes to read; what was said before goes."""
        self._app.clear_notifications()
        severity = "warning" if warning else "information"
        self._app.notify(text, severity=severity, timeout=12 if warning else 6)

    def _problem_lines(self, problems: Sequence[Problem]) -> tuple[str, ...]:
        """The first of them in a line each, their files by a short name."""
        told = tuple(brief(problem, self._folder) for problem in problems[:MAX_PROBLEMS])
        more = len(problems) - len(told)
        return (*told, f"and {more} more: `ctxchat config check` lists them") if more else told


def few(lines: Sequence[str]) -> tuple[str, ...]:
    """As many as fit a corner of the screen."""
    more = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], f"and {more} more") if more > 0 else tuple(lines)


def brief(problem: Problem, folder: Path) -> str:
    """A problem as it fits a corner of the screen: the file as seen from the settings folder."""
    file = Path(problem.file)
    name = str(file.relative_to(folder)) if file.is_relative_to(folder) else problem.file
    return msgspec.structs.replace(problem, file=name).brief


def soft_mark(settings: Settings, agent: str | None = None) -> float:
    """From which share of the limit a summary is made ahead, 0 for never; as the agent has it."""
    try:
        prepare = for_agent(settings, agent)[0].context.prepare
    except CtxchatError:
        prepare = settings.context.prepare
    return prepare.soft_mark if prepare.enabled else 0.0
