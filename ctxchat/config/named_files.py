"""The files of a folder that the commands of its hooks and servers name, each with a mark of what it is and holds: they belong to
what a person trusts. And such marks for any files.

What these commands are is foreign text, looked at before anybody trusts it: each search ends.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from ctxchat.config.variables import fill_variables, in_project

MAX_HASHED_BYTES = 50_000_000
"""Bytes of a file above which it is known by its size and the moment it last changed, not by what is in it."""

MAX_HASHED_BYTES_IN_ALL = 300_000_000
"""Likewise for those that come when all before them had as many."""

MAX_WORDS = 20_000
"""Words of all commands that may be paths, each of which is looked for."""

MAX_GLOB_ENTRIES = 5_000
"""Files and folders that are looked at for all globs."""


class TooMuch(Exception):
    """There is more than can be looked at, so nobody can trust it; the text says what."""


class Marks:
    """Marks of files; of those below the folder `root` by what is in them, each read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, str] = {}
        self._left = MAX_HASHED_BYTES_IN_ALL

    def of(self, path: str | Path) -> str:
        """Empty for what is no file. Of one outside it counts where it lies. Raises OSError."""
        real = os.path.realpath(path)
        if real not in self._known:
            self._known[real] = self._mark(Path(real))
        return self._known[real]

    def _mark(self, file: Path) -> str:
        if not os.path.isfile(file):  # noqa: PTH113 - never raises
            return ""
        if not file.is_relative_to(self._root):
            return hashlib.sha256(os.fsencode(file)).hexdigest()
        info = file.stat()
        if info.st_size > min(MAX_HASHED_BYTES, self._left):
            about = f"{info.st_size} {info.st_ctime_ns} {info.st_ino}"
            return hashlib.sha256(about.encode()).hexdigest()
        self._left -= info.st_size
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()


def named_files(root: Path, held: Mapping[str, Any], marks: Marks, environ: Mapping[str, str]) -> dict[str, str]:
    """Those below `root`, which is resolved, with their marks, by the words that name them. Raises TooMuch."""
    words: dict[str, None] = {}
    globs = _Globs(root)
    for word in _command_words(held, environ):
        for each in (word, word.partition("=")[2], *(globs.matches(word) if set(word) & set("*?[") else ())):
            if each:
                words[each] = None
        if len(words) > MAX_WORDS:
            raise TooMuch("its commands have more words than can be looked at")
    found: dict[str, str] = {}
    for word in words:
        for name in (word, *(f"{word}/{start}" for start in _STARTS if _is_folder_in(root, word))):
            with suppress(OSError, ValueError):  # no path at all, or one that cannot be looked at
                if _is_near(root, name) and (mark := marks.of(root / name)):
                    found[name] = mark
    return found


_STARTS = ("__main__.py", "__init__.py", "index.js", "package.json")
"""What is run of a folder that a program is handed."""


def _is_folder_in(root: Path, word: str) -> bool:
    with suppress(ValueError):
        return os.path.isdir(root / word) and _is_near(root, word)  # noqa: PTH112
    return False


def _is_near(root: Path, name: str) -> bool:
    """The file lies in the folder, or a link to it does."""
    place = root / name
    return Path(os.path.realpath(place)).is_relative_to(root) or Path(os.path.normpath(place)).is_relative_to(root)


class _Globs:
    """What globs match below a folder, as bash reads them, as long as that is not too much."""

    def __init__(self, root: Path) -> None:
        self._root, self._left = root, MAX_GLOB_ENTRIES

    def matches(self, word: str) -> Iterator[str]:
        """Raises TooMuch."""
        if os.path.isabs(word) or ".." in word.split("/"):  # noqa: PTH117
            return
        found = [""]
        for part in word.split("/"):
            if set(part) & set("*?["):
                pattern = re.compile(_translated(part))
                found = [f"{at}{name}/" for at in found for name in self._names(at) if pattern.fullmatch(name)]
            else:
                found = [f"{at}{part}/" for at in found]
        yield from (each.rstrip("/") for each in found)

    def _names(self, folder: str) -> Iterator[str]:
        with suppress(OSError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    raise TooMuch("a glob in its commands leads to more than can be looked at")
                yield entry.name


def _translated(pattern: str) -> str:
    """Stars take anything, also a dot in front: what a shell is told to do with that nobody knows."""
    return "".join(
        ".*" if sign == "*" else "." if sign in "?[" else re.escape(sign) for sign in _CLASS.sub("?", pattern)
    )


_CLASS = re.compile(r"\[[^\]]*\]")

_BUILD_FILES = {
    **dict.fromkeys(["make", "gmake"], ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(["npm", "npx", "pnpm", "yarn", "bun"], ("package.json",)),
    **dict.fromkeys(["just"], ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(["tox", "nox"], ("tox.ini", "noxfile.py")),
    "pre-commit": (".pre-commit-config.yaml",),
}
"""Where a program that is told no file finds out what to run."""

_OUTSIDE_FILES = {
    **dict.fromkeys(["uv", "uvx", "poetry", "pdm", "hatch"], ("pyproject.toml", "uv.lock", ".venv/bin/python")),
    **dict.fromkeys(["docker", "docker-compose", "podman"], ("compose.yaml", "compose.yml", "docker-compose.yml")),
    **dict.fromkeys(["pnpx", "bunx", "node"], ("package.json",)),
    "deno": ("deno.json", "deno.jsonc"),
    "cargo": ("Cargo.toml", "build.rs", "src/main.rs"),
    "go": ("go.mod", "main.go"),
}
"""Likewise for servers, which run outside of the sandbox."""

_OUTSIDE_PROGRAMS = {
    **dict.fromkeys(["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"], "node_modules/.bin"),
    **dict.fromkeys(["uv", "uvx", "poetry", "pdm", "hatch"], ".venv/bin"),
}
"""Where a program that runs others looks for them first; for servers."""

_GOING = frozenset({"cd", "pushd", "-C", "--directory", "--prefix", "--cwd", "--project", "-f", "--file"})
_MAX_GONE = 20
"""Folders that one command goes to, and programs it runs others by."""


def _command_words(held: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[str]:
    for hook in held.get("hooks", ()):
        yield from _path_words(in_project(str(hook.get("command", "")), "."), outside=False)
    for server in held.get("mcp", {}).values():
        yield from _server_words(cast("Mapping[str, Any]", fill_variables(server, environ)))


def _server_words(server: Mapping[str, Any]) -> Iterator[str]:
    """Its command with what it is started by, its variables among that, from the folder it is started in."""
    command = [str(server.get("command", "")), *map(str, server.get("args", ()))]
    values = [str(value) for value in server.get("env", {}).values()]
    words = dict.fromkeys(
        word for text in (shlex.join(command), *command, *values) for word in _path_words(text, outside=True)
    )
    for value in values:  # where programs may be looked for, or libraries
        words |= dict.fromkeys(each for part in value.split(":") for each in (part, f"{part}/{command[0]}"))
    yield from words
    if folder := str(server.get("cwd", "")):
        yield from (f"{folder}/{word}" for word in words)


def _path_words(command: str, *, outside: bool) -> Iterable[str]:
    """What may be a path in it, whatever a shell makes of its signs, also below a folder it goes to, and what its programs look
    for by themselves."""
    pieces = re.split(r"[\s;&|()<>{}'\"`]+", command) + re.split(r"[\s;&|()<>{}`]+", re.sub(r"['\"\\]", "", command))
    with suppress(ValueError):
        pieces = [*shlex.split(command), *pieces]
    pieces = [part for piece in pieces for part in (piece, *piece.split("="))]
    gone = dict.fromkeys(named for program, named in pairwise(pieces) if program in _GOING)
    found = [*pieces, *(file for piece in pieces for file in _BUILD_FILES.get(piece, ()))]
    if outside:
        gone |= dict.fromkeys(folder for piece in pieces if (folder := _OUTSIDE_PROGRAMS.get(piece)))
        found += [file for piece in pieces for file in _OUTSIDE_FILES.get(piece, ())]
    for program, named in pairwise(pieces):
        found += [f"{named.replace('.', '/')}{end}" for end in _MODULE] if program == "-m" else []
    once = dict.fromkeys(found)
    return [*once, *(f"{folder}/{word}" for folder in _first(list(gone)) for word in once)]


def _first(folders: Sequence[str]) -> Sequence[str]:
    if len(folders) > _MAX_GONE:
        raise TooMuch("one of its commands goes to more folders than can be looked at")
    return folders


_MODULE = (".py", "/__init__.py", "/__main__.py")
