"""The formats there are, which of them a file has, by what is in it, and where agents keep theirs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from ctxchat.core.errors import UsageError
from ctxchat.importing import aider, claude_code, codex, gemini, opencode, pi, qwen
from ctxchat.importing.json_stream import Object, Progress, lines, silent
from ctxchat.importing.steps import Damaged, Step

ENDINGS = {".jsonl", ".json", ".md", ".db"}
"""How files are named that may hold sessions."""

SAMPLED_LINES = 40
"""Lines of a file by which its format is told."""


class Format(msgspec.Struct, frozen=True):
    """How one agent keeps its sessions. `files` are those in its usual places below a home folder; `is_ours` knows a file
    without being told, and `steps` reads it. `beside` are files that belong to one: of its sub-agents, to be read after it.
    `kept_for` says how long the agent keeps a session of the person with this home folder, empty where it deletes none by
    itself."""

    name: str
    label: str
    files: Callable[[Path], Iterator[Path]]
    is_ours: Callable[[Path], bool]
    steps: Callable[[Path, Progress], Iterator[Step]]
    beside: Callable[[Path], Iterable[Path]] = lambda file: ()
    kept_for: Callable[[Path], str] = lambda home: ""


def _of_lines(
    name: str,
    label: str,
    files: Callable[[Path], Iterator[Path]],
    is_ours: Callable[[Object], bool],
    steps: Callable[[Iterable[tuple[int, Object | Damaged]], Path], Iterator[Step]],
    beside: Callable[[Path], Iterable[Path]] = lambda file: (),
    kept_for: Callable[[Path], str] = lambda home: "",
) -> Format:
    def known(file: Path) -> bool:
        return any(not isinstance(line, Damaged) and is_ours(line) for _, line in islice(lines(file), SAMPLED_LINES))

    def read_lines(file: Path, progress: Progress = silent) -> Iterator[Step]:
        return steps(lines(file, progress), file)

    return Format(name, label, files, known, read_lines, beside, kept_for)


FORMATS = {
    form.name: form
    for form in (
        # before the one whose lines its own are like
        _of_lines(qwen.NAME, qwen.LABEL, qwen.files, qwen.is_ours, qwen.steps),
        _of_lines(
            claude_code.NAME,
            claude_code.LABEL,
            claude_code.files,
            claude_code.is_ours,
            claude_code.steps,
            claude_code.sub_agents,
            claude_code.kept_for,
        ),
        _of_lines(codex.NAME, codex.LABEL, codex.files, codex.is_ours, codex.steps),
        _of_lines(pi.NAME, pi.LABEL, pi.files, pi.is_ours, pi.steps),
        Format(gemini.NAME, gemini.LABEL, gemini.files, gemini.is_ours, gemini.steps, kept_for=gemini.kept_for),
        Format(opencode.NAME, opencode.LABEL, opencode.files, opencode.is_ours, opencode.steps),
        Format(aider.NAME, aider.LABEL, aider.files, aider.is_ours, aider.steps),
    )
}


def named(name: str) -> Format:
    """The format with this name. Raises UsageError."""
    if name not in FORMATS:
        raise UsageError(f"{name!r} is no agent ctxchat can import from.", f"These are: {', '.join(FORMATS)}.")
    return FORMATS[name]


def recognised(file: Path) -> Format | None:
    """The format of a file; None where it is none of these, or cannot be read."""
    with suppress(OSError):
        return next((form for form in FORMATS.values() if form.is_ours(file)), None)
    return None


def inside(folder: Path, form: Format | None = None) -> list[tuple[Format, Path]]:
    """The files in a folder, at any depth, that are sessions (of one format where it is named), those of sub-agents last."""
    known: list[tuple[Format, Path]] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in ENDINGS and path.is_file():
            has = recognised(path)
            if has and form in {None, has}:
                known.append((has, path))
    return sorted(known, key=lambda pair: pair[1].name.startswith("agent-"))


class FoundSessions(msgspec.Struct, frozen=True):
    """What one agent left in its usual places. `size` in bytes; `newest` in seconds since 1970."""

    form: Format
    files: tuple[Path, ...]
    size: int
    newest: float

    @property
    def folder(self) -> Path:
        """The nearest folder that holds them all."""
        return Path(os.path.commonpath([file.parent for file in self.files]))


def sessions_at(path: Path, most: int = 2_000) -> list[FoundSessions]:
    """What a file or folder holds, as far as so many files of it show; nothing where it cannot be read. Looks into files."""
    files = [path] if path.is_file() else islice((p for p in path.rglob("*") if p.suffix in ENDINGS), most)
    there: dict[str, list[Path]] = {}
    with suppress(OSError):
        for file in files:
            if file.is_file() and (form := recognised(file)):
                there.setdefault(form.name, []).append(file)
    return [sessions for name, known in there.items() if (sessions := _stated(FORMATS[name], known))]


def find_sessions(home: Path) -> list[FoundSessions]:
    """What there is on this machine, agents without any left out. Looks at names, sizes and times, into no file."""
    return [sessions for form in FORMATS.values() if (sessions := _stated(form, form.files(home)))]


def _stated(form: Format, files: Iterable[Path]) -> FoundSessions | None:
    stats: dict[Path, tuple[int, float]] = {}
    for path in files:
        with suppress(OSError):
            stat = path.stat()
            if stat.st_size:
                stats[path] = stat.st_size, stat.st_mtime
    if not stats:
        return None
    sizes, times = zip(*stats.values(), strict=True)
    return FoundSessions(form, tuple(stats), sum(sizes), max(times))
