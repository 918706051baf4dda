"""The files of a folder that a person would count: without what .gitignore leaves out, links not followed. Synchronous."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import msgspec
from pathspec import GitIgnoreSpec

from ctxchat.repository_files import read_checked
from ctxchat.tools.gitignore import GitIgnore, parse_gitignore

MAX_DEPTH = 300
"""Levels: nobody nests folders deeper but to make trouble, and each is a call within a call."""

SYSTEM = ("/dev", "/proc", "/sys")
"""Devices and views of the system: nothing in them is a file to work with."""

MAX_RULES_BYTES = 200_000
"""Of a file with ignore rules."""

Rules = tuple[tuple[str, GitIgnore], ...]
"""Ignore rules that hold in a folder, outermost first, each with the folder (ending in `/`) it counts from."""


class FolderEntry(msgspec.Struct, frozen=True):
    """Something in a folder. `path` is absolute; `kind` is file, folder, link or other; `size` in bytes, of files only."""

    path: str
    kind: str
    depth: int
    size: int = 0


def walk(top: str, *, hidden: bool = False, depth: int = 0) -> Iterator[FolderEntry]:
    """Everything under `top`, sorted, folders before what is in them, `depth` levels deep (0: all). Folders that cannot be read
    are passed over. `.git` is never shown; what is hidden only if asked for."""
    yield from _walk(top, rules_above(top), hidden, min(depth or MAX_DEPTH, MAX_DEPTH), 1)


def _walk(folder: str, rules: Rules, hidden: bool, depth: int, level: int) -> Iterator[FolderEntry]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    rules = (*rules, *own_rules(folder, any(entry.name == ".gitignore" for entry in entries)))
    for entry in entries:
        if entry.name == ".git" or (not hidden and entry.name.startswith(".")) or entry.path in SYSTEM:
            continue
        kind, size = _kind_and_size(entry)
        if ignored(entry.path, kind == "folder", rules):
            continue
        yield FolderEntry(entry.path, kind, level, size)
        if kind == "folder" and level < depth:
            yield from _walk(entry.path, rules, hidden, depth, level + 1)


def _kind_and_size(entry: os.DirEntry[str]) -> tuple[str, int]:
    try:
        if entry.is_symlink():
            return "link", 0
        if entry.is_dir():
            return "folder", 0
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return "other", 0
    return ("file", found.st_size) if stat.S_ISREG(found.st_mode) else ("other", 0)


def ignored(path: str, is_folder: bool, rules: Rules) -> bool:
    """The verdict of the innermost rule that matches."""
    for base, own in reversed(rules):
        said = own.ignores(path[len(base) :], is_folder)
        if said is not None:
            return said
    return False


def rules_above(top: str) -> Rules:
    """The rules from the root of the repository down to above `top`. None where `top` itself is ignored: whoever asks for the
    inside of such a folder wants to see it. None outside of a repository either: a home folder may ignore everything."""
    root = repository(top)
    if not root:
        return ()
    rules = _rules_in(Path(root, ".git", "info", "exclude"), root)
    folder = root
    for name in Path(top).relative_to(root).parts:
        rules = (*rules, *own_rules(folder, True))
        folder = os.path.join(folder, name)  # noqa: PTH118 - strings all the way, for speed
        if ignored(folder, True, rules):
            return ()
    return rules


def repository(top: str) -> str:
    """The folder of the git repository that `top` lies in, empty for none."""
    for folder in (Path(top), *Path(top).parents):
        if (folder / ".git").exists():
            return str(folder)
    return ""


def own_rules(folder: str, there: bool) -> Rules:
    """The rules of the folder's own .gitignore, if one is `there`."""
    return _rules_in(Path(folder, ".gitignore"), folder) if there else ()


def _rules_in(file: Path, base: str) -> Rules:
    if os.path.islink(file):  # noqa: PTH114 - never raises; as git does
        return ()
    found = read_checked(file, Path(base), MAX_RULES_BYTES)
    own = parse_gitignore(found.data.decode("utf-8", "replace").splitlines())
    return ((base.rstrip("/") + "/", own),) if own.rules else ()


def _spec(lines: list[str]) -> GitIgnoreSpec:
    """Rules line by line, so that a broken one costs itself and not the others."""
    good = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):
            continue
        good.append(line)
    return GitIgnoreSpec.from_lines(good)


def wants_hidden(pattern: str) -> bool:
    """True for a pattern that names something hidden: `.github/**`, `**/.env`."""
    return any(part.startswith(".") and part not in {".", ".."} for part in PurePosixPath(pattern).parts)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path, relative to where the glob counts from, matches it: `*.py` at any depth, `./a.py` in the folder itself,
    `src/**/*.{ts,tsx}`. Brackets and braces are a choice and, as names have them (`[id].tsx`), also themselves. Composed and
    decomposed letters are the same. Raises ValueError."""
    lines: list[str] = []
    pattern = unicodedata.normalize("NFC", pattern)
    for line in dict.fromkeys((*braces(pattern), pattern)):
        plain = re.sub(r"/(\./)+|/{2,}", "/", re.sub(r"^(\./+)+", "/", line))
        # Signs that mean something in an ignore file.
        plain = f"\\{plain}" if plain.startswith(("!", "#")) else plain
        plain = re.sub(r" +$", lambda blanks: "\\ " * len(blanks[0]), plain)
        lines += [plain, re.sub(r"[][]", r"\\\g<0>", plain)] if "[" in plain else [plain]
    spec = _spec(lines)
    if not len(spec):
        raise ValueError(f"{pattern} is no pattern")
    return lambda path: spec.match_file(path if path.isascii() else unicodedata.normalize("NFC", path))


def braces(pattern: str, most: int = 200) -> list[str]:
    """`{a,b}` written out, at most so many."""
    start = pattern.find("{")
    end = pattern.find("}", start)
    if start < 0 or end < 0:
        return [pattern]
    start = pattern.rfind("{", start, end)
    found: list[str] = []
    for choice in pattern[start + 1 : end].split(","):
        found += braces(pattern[:start] + choice + pattern[end + 1 :], most)
        if len(found) >= most:
            break
    return found[:most]
