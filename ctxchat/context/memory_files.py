"""Memory files: standing instructions in `AGENTS.md`, from the workspace up to its repository's root, and the user's own.

Reads files, makes inserts; knows nothing of requests. A file that cannot be read is reported and costs only itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ctxchat.context.textfile import read_text
from ctxchat.core.head import ContextBlock

MEMORY_NAME = "AGENTS.md"
MEMORY_BYTES = 100_000
"""More of one file is not read: standing instructions of that size would crowd out the conversation."""


class MemoryFiles(msgspec.Struct, frozen=True):
    """The texts as blocks, the user's own first and the one nearest to the workspace last; and what is wrong with a file, by its
    source, as the rest of a sentence."""

    blocks: tuple[ContextBlock, ...]
    problems: dict[str, str]


def repository_root(root: Path) -> Path:
    """The nearest folder at or above `root` that holds a `.git`; `root` itself where there is none."""
    return next((p for p in (root, *root.parents) if (p / ".git").exists()), root)


def load_memory(root: Path, user_file: Path | None = None) -> MemoryFiles:
    """Every memory file that applies in `root`. Blocking; never raises OSError."""
    root = Path(os.path.realpath(root))
    top = repository_root(root)
    blocks: list[ContextBlock] = []
    problems: dict[str, str] = {}
    folders = [folder for folder in (root, *root.parents) if folder == top or top in folder.parents]
    wanted = [("user memory", user_file)] if user_file else []
    wanted += [(_source(folder / MEMORY_NAME, root), folder / MEMORY_NAME) for folder in reversed(folders)]
    for source, path in wanted:
        if not _there(path):
            continue
        file = read_text(path, MEMORY_BYTES, None if path == user_file else top)
        if file.problem:
            problems[source] = file.problem
        text = file.text.strip()
        if text and file.problem:
            text += f"\n\n[{source} {file.problem}]"
        if text:
            blocks.append(ContextBlock(source, text))
    return MemoryFiles(tuple(blocks), problems)


def _source(path: Path, root: Path) -> str:
    """`AGENTS.md`, `../AGENTS.md`: its place as seen from the workspace."""
    above = len(root.parts) - len(path.parent.parts)
    return "../" * above + path.name


def _there(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return True  # let reading it say what is wrong
