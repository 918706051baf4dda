"""Reads memory files: standing instructions in `AGENTS.md`, from the repository's root down to the workspace and the folders in
which work is done, and the user's own. In a folder without one, the file of another agent counts (`CLAUDE.md`, `GEMINI.md`).

`@path` in a memory file imports another file. A file that cannot be read is reported and left out. This module knows no requests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from ctxchat.core.head import ContextBlock
from ctxchat.repository_files import read_checked

MEMORY_NAME = "AGENTS.md"
MEMORY_NAMES = (MEMORY_NAME, "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md")
"""Names of memory files; in each folder the first that exists counts."""

MEMORY_BYTES = 100_000
"""Bytes read of one file: longer instructions would leave too little room for the conversation."""

MAX_IMPORT_DEPTH = 5
"""Length of a chain of files that import one another."""

MAX_IMPORT_BYTES = 200_000
"""Bytes of all files together that one memory file imports."""

_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\`]|\\ )+)")
_CODE = re.compile(r"^(```+|~~~+).*?(?:^\1|\Z)|`[^`\n]*`", re.M | re.S)


class MemoryFiles(msgspec.Struct, frozen=True):
    """The texts of memory files as blocks: the user's own first, then from the repository's root to the workspace, then those of
    folders below, each followed by its imports. `problems` has the problem of a file by its source, as the rest of a sentence."""

    blocks: tuple[ContextBlock, ...]
    problems: dict[str, str]


def repository_root(root: Path) -> Path:
    """The nearest folder at or above `root` that holds a `.git`; `root` itself where there is none."""
    return next((p for p in (root, *root.parents) if (p / ".git").exists()), root)


def memory_file(folder: Path) -> Path | None:
    """The memory file of a folder, None where it has none."""
    return next((folder / name for name in MEMORY_NAMES if _is_there(folder / name)), None)


def folders_below(root: Path, paths: Sequence[str]) -> tuple[Path, ...]:
    """The folders from the workspace down to these paths, outer ones first; paths outside the workspace are ignored. A path that
    may be a folder counts as one: the disk is not read."""
    folders: dict[Path, None] = {}
    for path in paths:
        whole = Path(os.path.normpath(root / path))
        if whole.is_relative_to(root):
            parts = whole.relative_to(root).parts
            folders.update(dict.fromkeys(root.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)))
    return tuple(folders)


def load_memory(
    root: Path, user_file: Path | None = None, *, also: Sequence[Path] = (), below: Collection[Path] = ()
) -> MemoryFiles:
    """Read all memory files that apply in `root`. `also` are further ones of the user, `below` are folders in which work was
    done. Blocking; never raises OSError."""
    root = Path(os.path.realpath(root))
    top = repository_root(root)
    reading = _Reading(root)
    for path, name in ((user_file, "user memory"), *((path, _of_user(path)) for path in also)):
        if path and _is_there(path):
            reading.add_file(path, name, None)
    above = [folder for folder in (root, *root.parents) if folder == top or top in folder.parents]
    for folder in (*reversed(above), *below):
        if path := memory_file(folder):
            reading.add_file(path, _source(path, root), top)
    return MemoryFiles(tuple(reading.blocks), reading.problems)


class _Reading:
    """One reading of all files, each of which is added once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.blocks: list[ContextBlock] = []
        self.problems: dict[str, str] = {}
        self._taken: set[str] = set()

    def add_file(self, path: Path, source: str, within: Path | None) -> None:
        """Add a file and all that it imports; a project's file must be `within` its repository."""
        self._left = MAX_IMPORT_BYTES
        self._add(path, source, within, MEMORY_BYTES, 0)

    def _add(self, path: Path, source: str, within: Path | None, most: int, depth: int) -> None:
        real = os.path.realpath(path)
        if real in self._taken:
            return
        self._taken.add(real)
        file = read_text(path, most, within)
        if file.problem:
            self.problems[source] = file.problem
        text = file.text.strip()
        if text and file.problem:
            text += f"\n\n[{source} {file.problem}]"
        if text:
            self.blocks.append(ContextBlock(source, text))
        for imported in _imports(file.text, path.parent):
            name = _source(imported, self._root) if within else _of_user(imported)
            if depth == MAX_IMPORT_DEPTH:
                self.problems[name] = f"is not imported: more than {MAX_IMPORT_DEPTH} files import one another"
            elif self._left <= 0:
                self.problems[name] = f"is not imported: {source} imports more than {MAX_IMPORT_BYTES // 1000} kB"
            else:
                before = len(self.blocks)
                self._add(imported, name, within, min(MEMORY_BYTES, self._left), depth + 1)
                self._left -= sum(len(block.text.encode()) for block in self.blocks[before : before + 1])


def _imports(text: str, folder: Path) -> Iterator[Path]:
    """The existing files that a text imports by `@path` outside of code, relative to the folder of the file; `~` is the home
    folder."""
    for match in _IMPORT.finditer(_CODE.sub("", text)):
        for name in dict.fromkeys((match[1], match[1].rstrip(".,;:!?)]}'\""))):
            try:
                path = folder / Path(name.replace("\\ ", " ")).expanduser()
                if path.is_file():
                    yield path
                    break
            except (OSError, ValueError, RuntimeError):
                continue


def _of_user(path: Path) -> str:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - pathlib's raises where there is none
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _source(path: Path, root: Path) -> str:
    """The path of a file relative to the workspace: `AGENTS.md`, `../AGENTS.md`, `src/AGENTS.md`."""
    return os.path.relpath(os.path.normpath(path), root).replace(os.sep, "/")


def _is_there(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return True  # reading it reports the error


class TextFile(msgspec.Struct, frozen=True):
    """The text that could be read of a file, and its problem as the rest of a sentence, empty where there is none."""

    text: str
    problem: str = ""


def read_text(path: Path, max_bytes: int, within: Path | None = None) -> TextFile:
    """Read at most `max_bytes` of a file as text, cut between characters; a project's file must be `within` its folder. Blocking;
    never raises OSError."""
    file = read_checked(path, within, max_bytes + 1)
    if file.problem:
        return TextFile("", file.problem)
    if b"\0" in file.data[:8192]:
        return TextFile("", "is not a text file")
    huge = len(file.data) > max_bytes
    text = file.data[:max_bytes].decode("utf-8-sig", errors="ignore" if huge else "replace")
    long = f"is {max(file.size, max_bytes) // 1000} kB long; only its first {max_bytes // 1000} kB are used"
    return TextFile(text, long if huge else "")
