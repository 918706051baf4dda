"""Memory files: standing instructions in `AGENTS.md`, from the workspace up to its repository's root, and the user's own.

Reads files, makes inserts; knows nothing of requests. A file that cannot be read is reported and costs only itself.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from ctxchat.context.textfile import read_text
from ctxchat.core.view import Insert

MEMORY_NAME = "AGENTS.md"
MEMORY_BYTES = 100_000
"""More of one file is not read: standing instructions of that size would crowd out the conversation."""


class MemoryFiles(msgspec.Struct, frozen=True):
    """The inserts, the user's own first and the one nearest to the workspace last, and one sentence for each problem."""

    inserts: tuple[Insert, ...] = ()
    problems: tuple[str, ...] = ()


def repository_root(root: Path) -> Path:
    """The nearest folder at or above `root` that holds a `.git`; `root` itself where there is none."""
    return next((p for p in (root, *root.parents) if (p / ".git").exists()), root)


def find_memory(root: Path) -> tuple[Path, ...]:
    """The `AGENTS.md` files from the repository's root down to the workspace, in that order."""
    top = repository_root(root)
    folders = [p for p in (root, *root.parents) if p == top or top in p.parents]
    return tuple(f / MEMORY_NAME for f in reversed(folders) if _there(f / MEMORY_NAME))


def load_memory(root: Path, user_file: Path | None = None) -> MemoryFiles:
    """Every memory file that applies in `root`. Blocking; never raises OSError."""
    root = root.resolve()
    top = repository_root(root)
    inserts: list[Insert] = []
    problems: list[str] = []
    wanted = [("user memory", user_file)] if user_file and _there(user_file) else []
    wanted += [(_source(path, root), path) for path in find_memory(root)]
    for source, path in wanted:
        if path != user_file and not path.resolve().is_relative_to(top):
            problems.append(f"{source} points outside the repository and was left out.")
            continue
        file = read_text(path, MEMORY_BYTES)
        if file.problem:
            problems.append(f"{source} {file.problem}.")
        text = file.text.strip()
        if text and file.problem:
            text += f"\n\n[{source} {file.problem}]"
        if text:
            inserts.append(Insert(source, text))
    return MemoryFiles(tuple(inserts), tuple(problems))


async def memory(root: Path, user_file: Path | None = None) -> MemoryFiles:
    """Like load_memory, off the event loop."""
    return await asyncio.to_thread(load_memory, root, user_file)


def _source(path: Path, root: Path) -> str:
    """`AGENTS.md`, `../AGENTS.md`: its place as seen from the workspace."""
    above = len(root.parts) - len(path.parent.parts)
    return "../" * above + path.name


def _there(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return True  # let reading it say what is wrong
