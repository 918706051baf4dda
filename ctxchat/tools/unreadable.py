"""The files and folders that rules forbid to read, as they are on the disk now: a sandbox covers them. Looks at the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ctxchat.core.errors import ToolError
from ctxchat.core.patterns import covers_path, may_lie_below

MAX_COVERED = 300
"""Files and folders mounted one by one."""


def unreadable_paths(patterns: Sequence[str], workspace: str) -> tuple[str, ...]:
    """The paths that the patterns of deny rules cover, a folder where they cover all of it. Raises ToolError for too many."""
    found: list[str] = []
    for pattern in patterns:
        for path in _covered(pattern, _start(pattern, workspace), workspace):
            found.append(path)
            if len(found) > MAX_COVERED:
                raise ToolError(
                    f"`deny read_file: {pattern}` covers more than {MAX_COVERED} files, too many to be kept from a command.",
                    "The command was not run. The user can forbid a whole folder instead.",
                )
    return tuple(dict.fromkeys(found))


def _start(pattern: str, workspace: str) -> str:
    """The folder from which on paths have to be looked at."""
    return workspace if not pattern.startswith("/") else pattern.split("*", 1)[0].rpartition("/")[0] or "/"


def _covered(pattern: str, folder: str, workspace: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.is_symlink() or not may_lie_below(pattern, entry.path, workspace):
            continue  # where a link leads is looked at there
        if covers_path(pattern, entry.path, workspace, folding=True) or (
            is_folder and all(covers_path(pattern, f"{entry.path}{below}", workspace, folding=True) for below in _ANY)
        ):
            yield entry.path
        elif is_folder:
            yield from _covered(pattern, entry.path, workspace)


_ANY = ("/any", "/any/any")
