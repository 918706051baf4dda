"""Finds the files of a project that the commands of its hooks and servers name, with a digest of each: a person who trusts the
commands trusts these files too.

The commands are untrusted text, read before anybody trusts it, so every search is limited.
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
"""A larger file is identified by its size, time of change and inode, not by its content."""

MAX_HASHED_BYTES_IN_ALL = 300_000_000
"""The most bytes hashed in all; files beyond that are identified like those that are too large."""

MAX_WORDS = 20_000
"""The most words in all commands that may be paths and are looked up."""

MAX_GLOB_ENTRIES = 5_000
"""The most directory entries that are read to match all glob patterns."""


class TooMuch(Exception):
    """There is more than can be examined, so the project cannot be trusted; the text says what is too much."""


class Marks:
    """Digests of files: of the content for those below the folder `root`, of the path for others. Each file is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, str] = {}
        self._left = MAX_HASHED_BYTES_IN_ALL

    def of(self, path: str | Path) -> str:
        """The digest of a file; empty for what is no file. Raises OSError."""
        real = os.path.realpath(path)
        if real not in self._known:
            self._known[real] = self._mark(Path(real))
        return self._known[real]

    def _mark(self, file: Path) -> str:
        """A digest of a file that changes when its content does; of a large one by its size and times. Empty for what is no
        file."""
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
    """The digests of files below `root` (a resolved path) that the settings `held` name, by the words that name them. Raises
    TooMuch."""
    words: dict[str, None] = {}
    globs = _Globs(root)
    for word in _command_words(held, environ):
        for each in (word, word.partition("=")[2], *(globs.matches(word) if set(word) & set("*?[") else ())):
            if each:
                words[each] = None
        if len(words) > MAX_WORDS:
            raise TooMuch("its commands have more words than can be looked at")
    digests: dict[str, str] = {}
    for word in words:
        for name in (word, *(f"{word}/{start}" for start in _ENTRY_FILES if _is_folder_in(root, word))):
            with suppress(OSError, ValueError):  # the word is no path, or one that cannot be read
                if _is_near(root, name) and (mark := marks.of(root / name)):
                    digests[name] = mark
    return digests


_ENTRY_FILES = ("__main__.py", "__init__.py", "index.js", "package.json")
"""Files that a program runs where it is given a folder."""


def _is_folder_in(root: Path, word: str) -> bool:
    """True for a word that names a folder in the project."""
    with suppress(ValueError):
        return os.path.isdir(root / word) and _is_near(root, word)  # noqa: PTH112
    return False


def _is_near(root: Path, name: str) -> bool:
    """Whether the file, or a link to it, is in the folder."""
    path = root / name
    return Path(os.path.realpath(path)).is_relative_to(root) or Path(os.path.normpath(path)).is_relative_to(root)


class _Globs:
    """Matches glob patterns below a folder as bash does, up to `MAX_GLOB_ENTRIES` entries in all."""

    def __init__(self, root: Path) -> None:
        self._root, self._left = root, MAX_GLOB_ENTRIES

    def matches(self, word: str) -> Iterator[str]:
        """The paths that a pattern matches. Raises TooMuch."""
        if os.path.isabs(word) or ".." in word.split("/"):  # noqa: PTH117
            return
        matched = [""]
        for part in word.split("/"):
            if set(part) & set("*?["):
                pattern = re.compile(_translated(part))
                matched = [
                    f"{folder}{name}/" for folder in matched for name in self._names(folder) if pattern.fullmatch(name)
                ]
            else:
                matched = [f"{folder}{part}/" for folder in matched]
        yield from (each.rstrip("/") for each in matched)

    def _names(self, folder: str) -> Iterator[str]:
        """The names in a folder; empty where it cannot be read. Raises TooMuch."""
        with suppress(OSError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0:
                    raise TooMuch("a glob in its commands leads to more than can be looked at")
                yield entry.name


def _translated(pattern: str) -> str:
    """The regular expression for a pattern. A star also matches a leading dot, which depends on the settings of a shell."""
    return "".join(
        ".*" if char == "*" else "." if char in "?[" else re.escape(char) for char in _CLASS.sub("?", pattern)
    )


_CLASS = re.compile(r"\[[^\]]*\]")

_BUILD_FILES = {
    **dict.fromkeys(["make", "gmake"], ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(["npm", "npx", "pnpm", "yarn", "bun"], ("package.json",)),
    **dict.fromkeys(["just"], ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(["tox", "nox"], ("tox.ini", "noxfile.py")),
    "pre-commit": (".pre-commit-config.yaml",),
}
"""Files that tell a program what to run where no file is named in its command, by the program."""

_OUTSIDE_FILES = {
    **dict.fromkeys(["uv", "uvx", "poetry", "pdm", "hatch"], ("pyproject.toml", "uv.lock", ".venv/bin/python")),
    **dict.fromkeys(["docker", "docker-compose", "podman"], ("compose.yaml", "compose.yml", "docker-compose.yml")),
    **dict.fromkeys(["pnpx", "bunx", "node"], ("package.json",)),
    "deno": ("deno.json", "deno.jsonc"),
    "cargo": ("Cargo.toml", "build.rs", "src/main.rs"),
    "go": ("go.mod", "main.go"),
}
"""Such files of further programs. They count for servers only, which run outside of the sandbox."""

_OUTSIDE_PROGRAMS = {
    **dict.fromkeys(["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"], "node_modules/.bin"),
    **dict.fromkeys(["uv", "uvx", "poetry", "pdm", "hatch"], ".venv/bin"),
}
"""The folder in which a program first looks for the programs that it runs; counts for servers only."""

_FOLDER_OPTIONS = frozenset({"cd", "pushd", "-C", "--directory", "--prefix", "--cwd", "--project", "-f", "--file"})
_MAX_FOLDERS = 20
"""The most folders that one command may change to or run programs from."""


def _command_words(held: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[str]:
    """The words in commands of hooks and servers that may name a file."""
    for hook in held.get("hooks", ()):
        yield from _path_words(in_project(str(hook.get("command", "")), "."), outside=False)
    for server in held.get("mcp", {}).values():
        yield from _server_words(cast("Mapping[str, Any]", fill_variables(server, environ)))


def _server_words(server: Mapping[str, Any]) -> Iterator[str]:
    """The words in a server's command, arguments and variables that may be paths, also relative to the folder it is started
    in."""
    command = [str(server.get("command", "")), *map(str, server.get("args", ()))]
    values = [str(value) for value in server.get("env", {}).values()]
    words = dict.fromkeys(
        word for text in (shlex.join(command), *command, *values) for word in _path_words(text, outside=True)
    )
    for value in values:  # a variable may list folders of programs or libraries
        words |= dict.fromkeys(each for part in value.split(":") for each in (part, f"{part}/{command[0]}"))
    yield from words
    if folder := str(server.get("cwd", "")):
        yield from (f"{folder}/{word}" for word in words)


def _path_words(command: str, *, outside: bool) -> Iterable[str]:
    """The words of a command that may be paths, whatever a shell makes of its special characters; the files that its programs
    read by themselves; and all of these below each folder that it changes to. `outside` says that it runs outside of the
    sandbox."""
    pieces = re.split(r"[\s;&|()<>{}'\"`]+", command) + re.split(r"[\s;&|()<>{}`]+", re.sub(r"['\"\\]", "", command))
    with suppress(ValueError):
        pieces = [*shlex.split(command), *pieces]
    pieces = [part for piece in pieces for part in (piece, *piece.split("="))]
    folders = dict.fromkeys(argument for program, argument in pairwise(pieces) if program in _FOLDER_OPTIONS)
    words = [*pieces, *(file for piece in pieces for file in _BUILD_FILES.get(piece, ()))]
    if outside:
        folders |= dict.fromkeys(folder for piece in pieces if (folder := _OUTSIDE_PROGRAMS.get(piece)))
        words += [file for piece in pieces for file in _OUTSIDE_FILES.get(piece, ())]
    for program, argument in pairwise(pieces):
        words += [f"{argument.replace('.', '/')}{end}" for end in _MODULE] if program == "-m" else []
    unique = dict.fromkeys(words)
    return [*unique, *(f"{folder}/{word}" for folder in _limited(list(folders)) for word in unique)]


def _limited(folders: Sequence[str]) -> Sequence[str]:
    """The folders. Raises TooMuch where they are too many."""
    if len(folders) > _MAX_FOLDERS:
        raise TooMuch("one of its commands goes to more folders than can be looked at")
    return folders


_MODULE = (".py", "/__init__.py", "/__main__.py")
