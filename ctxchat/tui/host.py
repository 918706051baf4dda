"""What a command may do to the program: the app as `actions` sees it, so that neither has to import the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from textual.screen import Screen
from textual.theme import Theme

from ctxchat.config.files import Loaded
from ctxchat.config.schema import Settings
from ctxchat.tui.commands import Keys
from ctxchat.tui.edits import Edits
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.services import Services
from ctxchat.tui.work import Work

Result = TypeVar("Result")
Severity = Literal["information", "warning", "error"]


class Host(Protocol):
    """The running app."""

    services: Services
    chat: ChatScreen
    work: Work
    keys: Keys
    settings: Settings
    load_settings: Callable[[], Loaded]
    settings_file: Path
    edits: Edits | None

    async def ask(self, screen: Screen[Result]) -> Result | None:
        """Open a screen over the chat; what it comes back with."""
        ...

    def notify(self, message: str, *, severity: Severity = "information", timeout: float | None = None) -> None:
        """News in a corner, wherever the chat is scrolled to."""
        ...

    def clear_notifications(self) -> None: ...
    def use_keys(self, keys: Keys) -> None:
        """These keys from now on."""
        ...

    def learn_themes(self, themes: Sequence[Theme]) -> None:
        """These themes are those there are."""
        ...

    @property
    def screen_stack(self) -> Sequence[Screen[Any]]:
        """The chat, and what lies over it."""
        ...

    @property
    def theme_names(self) -> Collection[str]:
        """The themes there are."""
        ...

    def wear(self, theme: str) -> None:
        """Another theme."""
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
