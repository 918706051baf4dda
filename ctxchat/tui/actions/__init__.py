"""The functions behind commands, a module for each subject. They take the app and the command's argument; modules and screens
are imported when they are needed.

A function runs in a worker, so it may wait for a screen; it raises CtxchatError for a problem the person can solve.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ctxchat.config.keys import Action

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

Handler = Callable[["CtxchatApp", str], Awaitable[None]]
"""A command's function. Its second argument is the text after the slash command, empty for keys and the palette."""


def handler(command: Action) -> Handler:
    """The function that the table names for a command."""
    module, _, function = command.does.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)
