"""Reads a TOML file into a tree, or says what is wrong with it. No content raises an error."""

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
"""The largest file that is read: settings are never larger."""

MAX_DOTS_A_LINE = 500
"""Dots allowed in one line: parsing a key of thousands of parts takes seconds."""


TOO_MANY_DOTS = Problem("has too many dots in one line", allowed=f"at most {MAX_DOTS_A_LINE}")

TOO_DEEP = Problem("holds a number or nesting beyond all measure", allowed="write a smaller one")

REMEDIES = {
    "Expected '='": "write key = value",
    "Invalid statement": "a line is key = value, a [table] or a # comment",
    "Invalid initial character for a key part": "a key is letters, digits, - and _, or stands in quotes",
    "Unescaped '\\'": "write \\\\ for a backslash, or put the text in single quotes",
    "Unclosed array": "a comma between two values, ] after the last",
    "Unclosed inline table": "a comma between two pairs, } after the last",
    "at the end of a table declaration": "write [table]",
    "at the end of an array declaration": "write [[table]]",
    "Expected newline or end of document": "one setting a line, text in quotes",
    "Illegal character": "close text with the quote that it began with, on the same line",
    "Unterminated string": "close text with the quote that it began with",
    "Expected \"'": "close text with the quote that it began with",
    "Cannot": "it stands there twice: keep one",
    "Duplicate": "it stands there twice: keep one",
    "already": "it stands there twice: keep one",
    "Invalid value": "text in quotes, a number, true, false, or [a, list]",
}
"""Remedies by a part of tomllib's message; the first that fits counts."""


class Read(msgspec.Struct, frozen=True):
    """The content of a file. `tree` is None where it could not be read: `problem` says why, and is None for a missing file."""

    text: str = ""
    tree: dict[str, Any] | None = None
    problem: Problem | None = None


def read_toml(path: Path, within: Path | None = None) -> Read:
    """Read a file; a missing one is no problem. A project's file must be `within` its folder after links are followed."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            what = "is a folder" if stat.S_ISDIR(info.st_mode) else "is not a file"
            return _broken(path, what, "must be a TOML file")
        if info.st_size > MAX_FILE_BYTES:
            return _broken(path, f"is too large ({info.st_size:,} bytes)", f"at most {MAX_FILE_BYTES:,}")
        file = read_checked(path, within, MAX_FILE_BYTES)
        if file.problem:
            return _broken(
                path, file.problem, "check its permissions" if within is None else "must be a file of the project"
            )
    except (FileNotFoundError, NotADirectoryError):
        return Read()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return _broken(path, f"cannot be read ({why})", "check its permissions")
    return parse(file.data, str(path))


def parse(data: bytes, file: str) -> Read:
    """Parse the content of the file named `file`."""
    try:
        text = data[:MAX_FILE_BYTES].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Read(problem=Problem("is not UTF-8 text", allowed="save it as UTF-8", file=file, line=line))
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MAX_DOTS_A_LINE:
            return Read(text, problem=msgspec.structs.replace(TOO_MANY_DOTS, file=file, line=number))
    try:
        return Read(text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        return Read(text, problem=syntax_problem(str(error), text, file))
    except (ValueError, RecursionError):
        return Read(text, problem=msgspec.structs.replace(TOO_DEEP, file=file))


def syntax_problem(message: str, text: str, file: str) -> Problem:
    """The problem for an error message of tomllib about a text, with its line and a remedy."""
    what = re.sub(r"\s*\(at [^()]*\)$", "", message)
    what = "".join(c if c.isprintable() else "�" for c in what[:200])
    remedy = next(
        (remedy for part, remedy in REMEDIES.items() if part in what), "`ctxchat config path` names an example"
    )
    return Problem(
        f"is not valid TOML: {what}", allowed=remedy, file=file, line=error_line(message) or text.count("\n") + 1
    )


def error_line(message: str) -> int:
    """The line in an error message of tomllib, from 1; 0 where it names the end of the text."""
    match = re.search(r"\(at line (\d+), column \d+\)$", message)
    return int(match[1]) if match else 0


def _broken(path: Path, what: str, allowed: str) -> Read:
    return Read(problem=Problem(what, allowed=allowed, file=str(path)))
