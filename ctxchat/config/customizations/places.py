"""Knows the folders that hold customizations, and reads files from them; a project's files only from within its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ctxchat.core.prompt_files import Origin
from ctxchat.repository_files import is_folder, listed, read_checked

MAX_FILE_BYTES = 200_000
"""The largest file that is read; a larger one is reported and left out."""

MAX_PARTS = 400
"""Skills, command files, agents and hooks that are read of a project, and as many of the person."""

MAX_FOLDERS = 300
"""Folders that are searched for Markdown files, below one customization folder."""

MAX_DEPTH = 4
"""Levels of folders that are searched for Markdown files."""


class CustomizationFolder(msgspec.Struct, frozen=True):
    """A folder with customizations such as `.claude`, of a project or the person. `made_for` names the format of its files:
    ctxchat's, Claude Code's, or the open standard for skills. A project's files must be `within` its folder after links are
    followed."""

    folder: Path
    origin: Origin
    made_for: Literal["ctxchat", "claude", "agents"]
    within: Path | None = None


class SourceFile(msgspec.Struct, frozen=True):
    """The content of a file. Where it cannot be read, `problem` says why and `text` is empty."""

    path: Path
    text: str = ""
    problem: str = ""


def project_places(workspace: Path) -> tuple[CustomizationFolder, ...]:
    """The folders of a project, ctxchat's first: of two customizations with one name the first one counts."""
    return (
        CustomizationFolder(workspace / ".ctxchat", "project", "ctxchat", workspace),
        CustomizationFolder(workspace / ".claude", "project", "claude", workspace),
        CustomizationFolder(workspace / ".agents", "project", "agents", workspace),
    )


def user_places(config: Path, environ: Mapping[str, str]) -> tuple[CustomizationFolder, ...]:
    """The folders of the person, ctxchat's first."""
    places = [CustomizationFolder(config, "user", "ctxchat")]
    home, claude = environ.get("HOME") or environ.get("USERPROFILE"), environ.get("CLAUDE_CONFIG_DIR")
    if claude or home:
        places.append(CustomizationFolder(Path(claude) if claude else Path(home or "") / ".claude", "user", "claude"))
    if home:
        places.append(CustomizationFolder(Path(home) / ".agents", "user", "agents"))
    return tuple(places)


def read_source(path: Path, place: CustomizationFolder) -> SourceFile:
    """A file as text. Never raises OSError."""
    file = read_checked(path, place.within, MAX_FILE_BYTES + 1)
    if file.problem:
        return SourceFile(path, problem=file.problem)
    if file.size > MAX_FILE_BYTES:
        return SourceFile(path, problem=f"is larger than {MAX_FILE_BYTES // 1000} kB")
    if b"\0" in file.data:
        return SourceFile(path, problem="is not a text file")
    return SourceFile(path, file.data.decode("utf-8-sig", errors="replace"))


def exists(path: Path) -> bool:
    """Whether the path exists, if only as a broken link."""
    return os.path.lexists(path)


def markdown_files(folder: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The Markdown files in a folder and its subfolders, each after the names of the subfolders that lead to it."""
    folders: list[tuple[tuple[str, ...], Path]] = [((), folder)]
    for names, subfolder in folders:
        for path in listed(subfolder):
            if path.suffix == ".md" and not is_folder(path):
                yield names, path
            elif (
                len(names) + 1 < MAX_DEPTH
                and len(folders) < MAX_FOLDERS
                and not path.name.startswith(".")
                and is_folder(path, linked=False)
            ):
                folders.append(((*names, path.name), path))
