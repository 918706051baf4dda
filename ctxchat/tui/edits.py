"""Saved edits of settings and themes, while the program runs: noticed, read anew, put in force, and told in a sentence each.

Knows the host and the files to look at; what an option does is known where it is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ctxchat.config.files import Loaded
from ctxchat.config.news import news
from ctxchat.config.problems import Problem
from ctxchat.config.themes import Theme, load_themes
from ctxchat.config.watch import Watch
from ctxchat.core.errors import CtxchatError

EVERY = 5.0
"""Seconds between two looks at the files; who comes back from an editor to this terminal waits for none."""

MOST = 3
"""Problems that are told; how many more there are is said."""

MOST_LINES = 8
"""Changes that are told, likewise."""


class SettingsListener(Protocol):
    """Who puts settings in force, and tells the person."""

    async def put_in_force(self, loaded: Loaded) -> None:
        """Everything that can change in a running session."""
        ...

    def learn_themes(self, themes: dict[str, Theme]) -> None:
        """These themes are those there are; the one worn may have changed its colours."""
        ...

    def still(self, about: str, notices: Sequence[str]) -> None:
        """What was said at the start about `settings` or `themes` and is none of these is true no more."""
        ...

    def say(self, text: str, warning: bool = False) -> None:
        """Lines that go by themselves, in place of those said before."""
        ...


class Edits:
    """`loaded` are the settings in force, `load` reads them anew, `folder` is that of the person's settings."""

    def __init__(self, host: SettingsListener, load: Callable[[], Loaded], loaded: Loaded, folder: Path) -> None:
        self._host = host
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
                await self.take(wrong)

    async def take(self, wrong: Sequence[Problem] = ()) -> None:
        """Read the settings anew and put them in force; a broken file keeps the last good ones. `wrong` is to be told with
        what changed."""
        try:
            loaded = await asyncio.to_thread(self._load)
            await asyncio.to_thread(self._watch.add, loaded.files)
        except CtxchatError as problem:
            self._host.say(str(problem), warning=True)
            return
        before, self._loaded = self._loaded, loaded
        self._host.still("settings", loaded.notices)
        if loaded.broken:
            if loaded.broken != before.broken:
                stays = "Not in force: the last good settings stay."
                self._host.say("\n".join((*self._told(loaded.broken), stays)), warning=True)
            return
        lines = news(self._good, loaded).lines
        known = {p.text for p in self._good.problems}
        problems = self._told([*wrong, *(p for p in loaded.problems if p.text not in known)])
        mended, self._good = bool(before.broken), loaded
        await self._host.put_in_force(loaded)
        if mended and not lines:
            lines = ("The settings are whole again; nothing else changed.",)
        if lines or problems:
            self._host.say("\n".join((*problems, *few(lines))), warning=bool(problems))

    async def _take_themes(self) -> Sequence[Problem]:
        found = await asyncio.to_thread(load_themes, self._folder)
        self._host.learn_themes(found.themes)
        self._host.still("themes", [problem.text for problem in found.problems])
        return found.problems

    def _told(self, problems: Sequence[Problem]) -> tuple[str, ...]:
        """The first of them in a line each, their files by a short name."""
        told = tuple(brief(problem, self._folder) for problem in problems[:MOST])
        more = len(problems) - len(told)
        return (*told, f"and {more} more: `ctxchat config check` lists them") if more else told


def few(lines: Sequence[str]) -> tuple[str, ...]:
    """As many as fit a corner of the screen."""
    more = len(lines) - MOST_LINES
    return (*lines[:MOST_LINES], f"and {more} more") if more > 0 else tuple(lines)


def brief(problem: Problem, folder: Path) -> str:
    """A problem as it fits a corner of the screen: the file as seen from the settings folder."""
    file = Path(problem.file)
    name = str(file.relative_to(folder)) if file.is_relative_to(folder) else problem.file
    return msgspec.structs.replace(problem, file=name).brief
