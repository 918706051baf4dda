"""One TOML file as a tree, or what is wrong with it. No byte sequence raises."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.config.problems import Problem
from ctxchat.repository_files import read_checked

MAX_FILE_BYTES = 262_144
"""A settings file above this is taken for something else."""

MAX_DOTS_A_LINE = 500
"""In one line: a key of thousands of parts would hold up the start for seconds."""


class Read(msgspec.Struct, frozen=True):
    """A file's text and tree; `tree` is None when it could not be read, and `problem` says why unless it is not there."""

    text: str = ""
    tree: dict[str, Any] | None = None
    problem: Problem | None = None


def read_toml(path: Path, within: Path | None = None) -> Read:
    """The file's tree; a missing file is no problem. One of a project lies `within` its folder, links followed."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            what = "is a folder" if stat.S_ISDIR(info.st_mode) else "is not a file"
            return _broken(path, what, "must be a TOML file")
        if info.st_size > MAX_FILE_BYTES:
            return _broken(path, f"is too large ({info.st_size:,} bytes)", f"at most {MAX_FILE_BYTES:,}")
        found = read_checked(path, within, MAX_FILE_BYTES)
        if found.problem:
            return _broken(
                path, found.problem, "check its permissions" if within is None else "must be a file of the project"
            )
    except (FileNotFoundError, NotADirectoryError):
        return Read()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return _broken(path, f"cannot be read ({why})", "check its permissions")
    return parse(found.data, str(path))


def parse(data: bytes, file: str) -> Read:
    """The tree of a file's bytes."""
    try:
        text = data[:MAX_FILE_BYTES].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Read(problem=Problem("is not UTF-8 text", allowed="save it as UTF-8", file=file, line=line))
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS_A_LINE:
            return Read(
                text,
                problem=Problem("has too many dots in one line", f"at most {MAX_DOTS_A_LINE}", file=file, line=number),
            )
    try:
        return Read(text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        return Read(text, problem=_syntax(str(error), text, file))
    except (ValueError, RecursionError):
        return Read(text, problem=Problem("holds a number or nesting beyond all measure", file=file))


def _syntax(message: str, text: str, file: str) -> Problem:
    what = re.sub(r"\s*\(at .*?\)$", "", message)
    what = "".join(c if c.isprintable() else "�" for c in what[:200])
    found = re.search(r"\(at line (\d+), column (\d+)\)$", message)
    line = int(found[1]) if found else text.count("\n") + 1
    return Problem(f"is not valid TOML: {what}", file=file, line=line)


def _broken(path: Path, what: str, allowed: str) -> Read:
    return Read(problem=Problem(what, allowed=allowed, file=str(path)))
