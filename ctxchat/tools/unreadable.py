"""The files and folders that rules forbid to read, as they are on the disk now: a sandbox covers them. Looks at the disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from ctxchat.core.errors import ToolError
from ctxchat.core.guarded import folded
from ctxchat.core.patterns import covers_path, may_lie_below

MAX_COVERED = 300
"""Files and folders mounted one by one."""


def unreadable_paths(patterns: Sequence[str], workspace: str) -> tuple[str, ...]:
    """The paths that the patterns of deny rules cover, a folder where they cover all of it. Raises ToolError for too many."""
    found: list[str] = []
    for pattern in patterns:
        for path in _covered(pattern, workspace):
            found.append(path)
            if len(found) > MAX_COVERED:
                raise ToolError(
                    f"`deny read_file: {pattern}` covers more than {MAX_COVERED} files, too many to be kept from a command.",
                    "The command was not run. The user can forbid a whole folder instead.",
                )
    return tuple(dict.fromkeys(found))


def _covered(pattern: str, workspace: str) -> Iterator[str]:
    absolute = pattern.startswith("/")
    start = workspace if not absolute else re.split(r"[*\\]", pattern, maxsplit=1)[0].rpartition("/")[0] or "/"
    base = 0 if absolute else len(workspace.rstrip("/")) + 1
    may_match = _filter(pattern.removeprefix("./"))

    def covers(path: str) -> bool:
        if _is_plain(path) and not may_match(path[base:]):
            return False
        return covers_path(pattern, path, workspace, folding=True)

    waiting = [start]
    while waiting:
        for entry in _entries(waiting.pop()):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.is_symlink():
                continue  # where a link leads is looked at there
            if covers(entry.path) or (is_folder and covers(f"{entry.path}/any") and covers(f"{entry.path}/any/any")):
                yield entry.path
            elif is_folder and may_lie_below(pattern, entry.path, workspace):
                waiting.append(entry.path)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as opened:
            return list(opened)
    except OSError:
        return []


def _is_plain(path: str) -> bool:
    return path.isascii() and not re.search(r"[. ](/|$)", path)


def _filter(pattern: str) -> Callable[[str], object]:
    """Quick, and never wrong where it says no: whether an ASCII path whose names end in no dot or blank may be covered."""
    pieces = re.findall(r"\\.?|\*\*/|\*+|[^\\*]+", "/".join(map(folded, pattern.split("/"))), re.DOTALL)
    signs = {"**/": "(?:.*/)?", "*": "[^/]*"}
    lines = (signs.get(one) or (".*" if one[0] == "*" else re.escape(one.removeprefix("\\"))) for one in pieces)
    return re.compile("".join(lines), re.IGNORECASE | re.DOTALL).fullmatch
