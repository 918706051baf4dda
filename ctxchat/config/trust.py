"""The folders a person trusts: in those, a project's settings may start programs and change permissions."""

from __future__ import annotations

from pathlib import Path

from ctxchat.config.lists import add_to_list, read_list
from ctxchat.config.problems import Problem


def trusted_folders(config: Path) -> tuple[tuple[str, ...], Problem | None]:
    """The trusted folders, resolved, and what is wrong with the file that keeps them."""
    return read_list(_file(config), "folders")


def is_trusted(config: Path, folder: Path) -> bool:
    """True for exactly a folder that was trusted; what lies beneath one must be trusted itself."""
    return str(folder.resolve()) in trusted_folders(config)[0]


def trust(config: Path, folder: Path) -> None:
    """Trust a folder for good. Raises OSError."""
    add_to_list(_file(config), "folders", str(folder.resolve()))


def _file(config: Path) -> Path:
    return config / "trusted.toml"
