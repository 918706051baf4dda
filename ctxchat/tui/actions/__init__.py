"""What each command does, by subject. Plain functions over the app, which stays thin; modules and screens are
imported when they are needed.

A function may wait for a screen (they run in workers) and raises CtxchatError for what a person can mend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ctxchat.config.keys import Action

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

Handler = Callable[["CtxchatApp", str], Awaitable[None]]
"""What follows the slash command is its second argument; keys and the palette give an empty one."""


def handler(command: Action) -> Handler:
    """The function that the table names for a command."""
    module, _, function = command.does.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)
