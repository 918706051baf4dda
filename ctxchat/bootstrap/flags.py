"""What the command line says, as a value, and the settings in force with it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ctxchat.config import files
from ctxchat.core.errors import UsageError


class Flags(msgspec.Struct, frozen=True):
    """The common options as given; empty or 0 where they were not."""

    model: str = ""
    api_base: str = ""
    api_key_env: str = ""
    window: int = 0
    config: str = ""
    session: str = ""
    json: bool = False
    permissions: str = ""
    max_rounds: int = 0
    cwd: str = ""


def settings_from(flags: Flags, workspace: Path) -> files.Loaded:
    """The settings with the flags on top. Raises UsageError for a settings file that was named and is not there."""
    named = Path(flags.config).expanduser() if flags.config else None
    if named is not None and not named.is_file():
        raise UsageError(f"{flags.config}: there is no such settings file.", "Without --config your own is used.")
    given = {"model": flags.model, "permissions.mode": flags.permissions}
    return files.load(workspace, config=named, flags={key: value for key, value in given.items() if value})
