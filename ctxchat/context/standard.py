"""Defines the context providers that every session has: date and platform, skills, and notes from the settings. They are ordered
so that those which change least come first, which keeps the cached prefix long."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from ctxchat.context.workspace import GitCommand, Workspace
from ctxchat.core.ports import ContextProvider
from ctxchat.core.prompt_files import PromptFile, skills_index


class Identity:
    """The context provider `identity`: date, platform and workspace. `today` returns the current date."""

    source_id = "identity"

    def __init__(self, root: Path, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self._root = root
        self._today = today

    async def provide(self) -> str:
        """Three lines; the date is ISO 8601 with its weekday, in local time."""
        today = self._today()
        lines = (
            f"Date: {today.isoformat()} ({_WEEKDAYS[today.weekday()]})",
            f"Platform: {platform.system() or 'unknown'} {platform.machine()}".rstrip(),
            f"Workspace: {self._root.name or self._root}",
        )
        return "\n".join(lines)


# strftime("%A") would follow the locale of the terminal.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Skills:
    """The context provider `skills`. `prompts` returns those in force now."""

    source_id = "skills"

    def __init__(self, prompts: Callable[[], Sequence[PromptFile]]) -> None:
        self._prompts = prompts

    async def provide(self) -> str:
        """One line for each skill; empty when there are none."""
        return skills_index(self._prompts())


class SettingsNotes:
    """The context provider `settings`: the notes that a person wrote into the settings."""

    source_id = "settings"

    def __init__(self, notes: Sequence[str]) -> None:
        self._notes = tuple(notes)

    async def provide(self) -> str:
        """The notes, separated by empty lines."""
        return "\n\n".join(self._notes)


def standard_providers(
    root: Path, *, git: GitCommand | None = None, prompts: Callable[[], Sequence[PromptFile]] = tuple
) -> tuple[ContextProvider, ...]:
    """The providers in their order: skills (those that `prompts` returns), the snapshot of the workspace (asking `git` where that
    is given), identity and date."""
    return (Skills(prompts), Workspace(root, git=git), Identity(root))
