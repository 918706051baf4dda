"""How a search writes the paths it found: the names of several files of one folder below it, so that it is said once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

_HERE = "./"
_NOTE = re.compile(r"\[.*\]$|\s|$")
"""What a tool says of its own output, or no line of a search."""
_HIT = re.compile(r"\d{1,8}[ \t:-]|--$")
"""A hit (with a colon in records of older versions), a line around one, what parts them."""


def below_folders(paths: Sequence[str]) -> list[tuple[str, ...]]:
    """The lines that stand for each of these paths: where the next one lies in the same folder that folder, ending in `/`, and
    the name; only the name of those that follow; else the path itself. `./` stands before what would look like a hit
    (`2024-11-02.md`) and before a bare name that would be one of a folder."""
    found: list[tuple[str, ...]] = []
    below = False
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
    """The lines of such a search with each path whole, and no folders; all others as they are. `hits` stand below their path."""
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
