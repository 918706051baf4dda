"""The form in which search tools write paths: a folder that has several files is written once, on a line of its own, and the
files' names below it, which saves tokens. Writes that form and reads it back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

_HERE = "./"
_NOTE = re.compile(r"\[.*\]$|\s|$")
"""Matches a remark of a tool about its output, and a line that is no path."""

_HIT = re.compile(r"\d{1,8}[ \t:-]|--$")
"""Matches a hit (with a colon in records of older versions), a line of context around one, and the line between two hits."""


def below_folders(paths: Sequence[str]) -> list[tuple[str, ...]]:
    """The lines to write for each of these paths.

    For the first of several in the same folder: the folder, ending in `/`, and the name; for the others in it: the name. For a
    path alone in its folder: the path. `./` stands in front of what would look like a hit (`2024-11-02.md`), and of a bare name
    that would otherwise count as one in the folder above it.
    """
    found: list[tuple[str, ...]] = []
    below = False  # a bare name would belong to the folder that was written last
    for folder, several in groupby(paths, lambda path: path[: path.rfind("/") + 1]):
        names = [path[len(folder) :] for path in several]
        if folder and len(names) > 1 and not any(map(_HIT.match, names)):
            found += [(_apart(folder), names[0]), *((name,) for name in names[1:])]
            below = True
        else:
            start = folder or (_HERE if below else "")
            found += [(_apart(start + name),) for name in names]
            below = below and not folder
    return found


def whole_paths(lines: Sequence[str], *, hits: bool) -> Iterator[str]:
    """The lines of a search's output with whole paths and without the lines of folders; other lines unchanged. `hits`: the output
    is that of a search in files, where hits stand below their path."""
    folder = ""
    for line in lines:
        if _NOTE.match(line) or (hits and _HIT.match(line)):
            yield line
        elif line.endswith("/"):
            folder = line.removeprefix(_HERE)
        else:
            folder = "" if "/" in line else folder
            path = folder + line.removeprefix(_HERE)
            yield _apart(path) if hits else path


def _apart(path: str) -> str:
    """The path, so written that it does not look like a hit."""
    return _HERE + path if _HIT.match(path) else path
