"""Finds the workspace folder and the sandbox, which are needed before anything else. Quick to import."""

from __future__ import annotations

from pathlib import Path

from ctxchat.config import paths
from ctxchat.config.schema import Settings
from ctxchat.core.errors import UsageError
from ctxchat.tools.sandbox import Sandbox, find_sandbox


def workspace_of(given: str) -> Path:
    """The folder to work in, resolved. Raises UsageError if it is no folder."""
    try:
        folder = paths.expanded(given) if given else Path.cwd()
    except FileNotFoundError as gone:
        raise UsageError("The folder you are in is no longer there.", "Go to another one.") from gone
    if not folder.is_dir():
        raise UsageError(f"{given}: there is no such folder to work in.", "Name one that is there, or make it.")
    return folder.resolve()


def sandbox_of(settings: Settings, workspace: Path) -> Sandbox:
    """The sandbox that shell commands run in; tests it, which takes some ten milliseconds."""
    if not settings.permissions.sandbox:
        return Sandbox()
    data = paths.data_dir()
    return find_sandbox(
        str(workspace),
        network=settings.permissions.network,
        hidden=(data, paths.config_dir()),  # other sessions are nobody's business in there
        writable=tuple(map(Path, settings.permissions.writable)),
        readable=tuple(map(Path, settings.permissions.readable)),
        caches=data / "caches",
    )
