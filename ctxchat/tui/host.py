"""What a command may do to the program: the app as `actions` sees it, so that neither has to import the other."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol, TypeVar

from textual.screen import Screen

from ctxchat.config.files import Loaded
from ctxchat.tui.commands import Keys
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.services import Services
from ctxchat.tui.work import Work

Result = TypeVar("Result")


class Host(Protocol):
    """The running app."""

    services: Services
    chat: ChatScreen
    work: Work
    keys: Keys
    load_settings: Callable[[], Loaded]
    settings_file: Path

    async def ask(self, screen: Screen[Result]) -> Result | None:
        """Open a screen over the chat; what it comes back with."""
        ...

    def notify(self, message: str) -> None:
        """News in a corner, wherever the chat is scrolled to."""
        ...

    def apply_settings(self, loaded: Loaded) -> None:
        """Edited settings, without a new start."""
        ...

    @property
    def theme_names(self) -> Collection[str]:
        """The themes there are."""
        ...

    def wear(self, theme: str) -> None:
        """Another theme."""
        ...

    def search_themes(self) -> None:
        """Choose a theme with a preview."""
        ...

    def copy_to_clipboard(self, text: str) -> None: ...
    def say_briefly(self, text: str) -> None:
        """A sentence that goes by itself."""
        ...

    def editor_command(self) -> str:
        """The editor of the settings; empty for the environment's."""
        ...

    async def leave(self) -> None:
        """Stop what runs, give the session free, go."""
        ...
