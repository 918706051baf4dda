"""Where customizations lie, and reading their files: a project's through the one checked reader, within its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ctxchat.core.prompt_files import Origin
from ctxchat.repository_files import is_folder, listed, read_checked

MAX_FILE_BYTES = 200_000
"""Bytes of one file that are read; a longer one is named and left out."""

MAX_PARTS = 400
"""Skills, command files, agents and hooks that are looked at in a project, and as many of the person's own."""

MAX_FOLDERS = 300
"""Folders of one place in which command files are looked for."""

MAX_DEPTH = 4
"""Folders below one another in which command files are looked for."""


class CustomizationFolder(msgspec.Struct, frozen=True):
    """A folder such as `.claude`, of a project or the person. `made_for` says whose form its files have: ours, Claude Code's, or
    that of the open standard for skills. A project's files lie `within` its folder, whatever links say."""

    folder: Path
    origin: Origin
    made_for: Literal["ctxchat", "claude", "agents"]
    within: Path | None = None


class SourceFile(msgspec.Struct, frozen=True):
    """A file that was read. `text` is empty where `problem` says why not."""

    path: Path
    text: str = ""
    problem: str = ""


def project_places(workspace: Path) -> tuple[CustomizationFolder, ...]:
    """A project's, ours first: of two of one name the first one counts."""
    return (
        CustomizationFolder(workspace / ".ctxchat", "project", "ctxchat", workspace),
        CustomizationFolder(workspace / ".claude", "project", "claude", workspace),
        CustomizationFolder(workspace / ".agents", "project", "agents", workspace),
    )


def user_places(config: Path, environ: Mapping[str, str]) -> tuple[CustomizationFolder, ...]:
    """The person's own, ours first."""
    places = [CustomizationFolder(config, "user", "ctxchat")]
    home, claude = environ.get("HOME") or environ.get("USERPROFILE"), environ.get("CLAUDE_CONFIG_DIR")
    if claude or home:
        places.append(CustomizationFolder(Path(claude) if claude else Path(home or "") / ".claude", "user", "claude"))
    if home:
        places.append(CustomizationFolder(Path(home) / ".agents", "user", "agents"))
    return tuple(places)


def read_source(path: Path, place: CustomizationFolder) -> SourceFile:
    """A file as text. Never raises OSError."""
    found = read_checked(path, place.within, MAX_FILE_BYTES + 1)
    if found.problem:
        return SourceFile(path, problem=found.problem)
    if found.size > MAX_FILE_BYTES:
        return SourceFile(path, problem=f"is larger than {MAX_FILE_BYTES // 1000} kB")
    if b"\0" in found.data:
        return SourceFile(path, problem="is not a text file")
    return SourceFile(path, found.data.decode("utf-8-sig", errors="replace"))


def exists(path: Path) -> bool:
    """Something is there, if only a link that leads nowhere."""
    return os.path.lexists(path)


def markdown_files(folder: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Markdown files in a folder and those below it, with the names of the folders between."""
    waiting: list[tuple[tuple[str, ...], Path]] = [((), folder)]
    for names, below in waiting:
        for path in listed(below):
            if path.suffix == ".md" and not is_folder(path):
                yield names, path
            elif (
                len(names) + 1 < MAX_DEPTH
                and len(waiting) < MAX_FOLDERS
                and not path.name.startswith(".")
                and is_folder(path, linked=False)
            ):
                waiting.append(((*names, path.name), path))
