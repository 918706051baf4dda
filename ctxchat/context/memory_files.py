"""Memory files: standing instructions in `AGENTS.md`, from the repository's root down to the workspace and on to the folders
where work has gone, and the user's own. Where a folder has none, what other agents read there counts (`CLAUDE.md`, `GEMINI.md`).

`@path` in one imports another file. Reads files, makes blocks; knows nothing of requests. A file that cannot be read is reported
and costs only itself.
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
"""In one folder the first that is there counts."""

MEMORY_BYTES = 100_000
"""More of one file is not read: standing instructions of that size would crowd out the conversation."""

MAX_IMPORT_DEPTH = 5
"""Files that import one another in a row."""

MAX_IMPORT_BYTES = 200_000
"""Bytes of all files together that one memory file imports."""

_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:[^\s\\`]|\\ )+)")
_CODE = re.compile(r"^(```+|~~~+).*?(?:^\1|\Z)|`[^`\n]*`", re.M | re.S)


class MemoryFiles(msgspec.Struct, frozen=True):
    """The texts as blocks, the user's own first and the one nearest to the workspace last, each followed by what it imports, then
    those of the folders below; and what is wrong with a file, by its source, as the rest of a sentence."""

    blocks: tuple[ContextBlock, ...]
    problems: dict[str, str]


def repository_root(root: Path) -> Path:
    """The nearest folder at or above `root` that holds a `.git`; `root` itself where there is none."""
    return next((p for p in (root, *root.parents) if (p / ".git").exists()), root)


def memory_file(folder: Path) -> Path | None:
    """The memory file of a folder, None where it has none."""
    return next((folder / name for name in MEMORY_NAMES if _there(folder / name)), None)


def folders_below(root: Path, paths: Sequence[str]) -> tuple[Path, ...]:
    """The folders from the workspace down to these paths, as calls named them, those above first; none for what lies elsewhere.
    A path that may be a folder is taken for one: nothing is looked at here."""
    found: dict[Path, None] = {}
    for path in paths:
        whole = Path(os.path.normpath(root / path))
        if whole.is_relative_to(root):
            parts = whole.relative_to(root).parts
            found.update(dict.fromkeys(root.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)))
    return tuple(found)


def load_memory(
    root: Path, user_file: Path | None = None, *, also: Sequence[Path] = (), below: Collection[Path] = ()
) -> MemoryFiles:
    """Every memory file that applies in `root`; `also` are further ones of the user, `below` folders that work has gone to.
    Blocking; never raises OSError."""
    root = Path(os.path.realpath(root))
    top = repository_root(root)
    reading = _Reading(root)
    for path, name in ((user_file, "user memory"), *((path, _of_user(path)) for path in also)):
        if path and _there(path):
            reading.add_file(path, name, None)
    above = [folder for folder in (root, *root.parents) if folder == top or top in folder.parents]
    for folder in (*reversed(above), *below):
        if path := memory_file(folder):
            reading.add_file(path, _source(path, root), top)
    return MemoryFiles(tuple(reading.blocks), reading.problems)


class _Reading:
    """One look at all files; each is taken once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.blocks: list[ContextBlock] = []
        self.problems: dict[str, str] = {}
        self._taken: set[str] = set()

    def add_file(self, path: Path, source: str, within: Path | None) -> None:
        """The file and all that it imports; a project's only from `within` its repository."""
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
    """The files that a text imports: `@path` outside of code, from the folder of the file or from home, where there is one."""
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
    """`AGENTS.md`, `../AGENTS.md`, `src/AGENTS.md`: its place as seen from the workspace."""
    return os.path.relpath(os.path.normpath(path), root).replace(os.sep, "/")


def _there(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return True  # let reading it say what is wrong


class TextFile(msgspec.Struct, frozen=True):
    """What could be read, and what was wrong, as the rest of a sentence (empty when nothing was)."""

    text: str
    problem: str = ""


def read_text(path: Path, max_bytes: int, within: Path | None = None) -> TextFile:
    """At most `max_bytes` of a file as text, `within` a folder of somebody else's; its head where it is huge. Never raises
    OSError; cuts fall on character boundaries. Blocks."""
    found = read_checked(path, within, max_bytes + 1)
    if found.problem:
        return TextFile("", found.problem)
    if b"\0" in found.data[:8192]:
        return TextFile("", "is not a text file")
    huge = len(found.data) > max_bytes
    text = found.data[:max_bytes].decode("utf-8-sig", errors="ignore" if huge else "replace")
    long = f"is {max(found.size, max_bytes) // 1000} kB long; only its first {max_bytes // 1000} kB are used"
    return TextFile(text, long if huge else "")
