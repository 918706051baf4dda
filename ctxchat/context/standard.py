"""The providers every session has, in their order: what changes least comes first, so that a cached prefix reaches furthest.

The last of them, date and platform, is here."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from ctxchat.context.skills import Skills
from ctxchat.context.workspace import GitCommand, Workspace
from ctxchat.core.ports import ContextProvider
from ctxchat.core.prompt_files import PromptFile


class Identity:
    """ContextProvider `identity`. `today` is handed in so that tests can hold it still."""

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


class SettingsNotes:
    """ContextProvider `settings`: the notes a person wrote into the settings."""

    source_id = "settings"

    def __init__(self, notes: Sequence[str]) -> None:
        self._notes = tuple(notes)

    async def provide(self) -> str:
        """The notes, apart by an empty line."""
        return "\n\n".join(self._notes)


def standard_providers(
    root: Path, *, git: GitCommand | None = None, prompts: Callable[[], Sequence[PromptFile]] = tuple
) -> tuple[ContextProvider, ...]:
    """Skills (of those that `prompts` gives), the workspace's snapshot (with what `git` says, where it can be asked), then
    identity and date."""
    return (Skills(prompts), Workspace(root, git=git), Identity(root))
