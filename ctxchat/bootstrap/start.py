"""What a program knows before anything is opened or asked: its folder, what to tell the person, the sandbox. Quick to import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ctxchat.config import paths
from ctxchat.config.files import Loaded
from ctxchat.config.schema import Settings
from ctxchat.core.errors import UsageError
from ctxchat.tools.sandbox import Sandbox, find_sandbox

NO_MODEL = (
    "No model is set: answering with the offline assistant, which quotes your files. /model shows what else is there."
)


def workspace_of(given: str) -> Path:
    """The folder to work in, resolved. Raises UsageError when it is none."""
    try:
        folder = Path(given).expanduser() if given else Path.cwd()
    except FileNotFoundError as gone:
        raise UsageError("The folder you are in is no longer there.", "Go to another one.") from gone
    if not folder.is_dir():
        raise UsageError(f"{given}: there is no such folder.")
    return folder.resolve()


def notices_of(loaded: Loaded) -> Sequence[str]:
    """What a person should know at the start, a sentence each."""
    return loaded.notices if loaded.settings.model else (*loaded.notices, NO_MODEL)


def sandbox_of(settings: Settings) -> Sandbox:
    """What shell commands run in; tried out, which takes some ten milliseconds."""
    if not settings.permissions.sandbox:
        return Sandbox()
    return find_sandbox(hidden=(paths.data_dir(), paths.config_dir()))  # other sessions are nobody's business in there
