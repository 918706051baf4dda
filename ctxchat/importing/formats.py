"""The formats of sessions that can be imported: which one a file has, by its content, and where each agent keeps its
files."""

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

SUFFIXES = {".jsonl", ".json", ".md", ".db"}
"""Suffixes of files that may hold sessions."""

SAMPLED_LINES = 40
"""Lines of a file that are examined to detect its format."""


class Format(msgspec.Struct, frozen=True):
    """How one agent stores its sessions. `files` are those in its usual places below a home folder; `is_ours` detects a file by
    its content, `steps` reads it. `beside` gives the files of a session's sub-agents, to be read after it. `kept_for` says after
    how long the agent deletes a session, empty where it deletes none."""

    name: str
    label: str
    files: Callable[[Path], Iterator[Path]]
    is_ours: Callable[[Path], bool]
    steps: Callable[[Path, Progress], Iterator[Step]]
    beside: Callable[[Path], Iterable[Path]] = lambda file: ()
    kept_for: Callable[[Path], str] = lambda home: ""


def _json_lines_format(
    name: str,
    label: str,
    files: Callable[[Path], Iterator[Path]],
    is_ours: Callable[[Object], bool],
    steps: Callable[[Iterable[tuple[int, Object | Damaged]], Path], Iterator[Step]],
    beside: Callable[[Path], Iterable[Path]] = lambda file: (),
    kept_for: Callable[[Path], str] = lambda home: "",
) -> Format:
    """The format of an agent that writes JSON lines; `is_ours` detects it by one line."""

    def any_is_ours(file: Path) -> bool:
        return any(not isinstance(line, Damaged) and is_ours(line) for _, line in islice(lines(file), SAMPLED_LINES))

    def read_lines(file: Path, progress: Progress = silent) -> Iterator[Step]:
        return steps(lines(file, progress), file)

    return Format(name, label, files, any_is_ours, read_lines, beside, kept_for)


FORMATS = {
    form.name: form
    for form in (
        # before Claude Code, whose lines look like Qwen's
        _json_lines_format(qwen.NAME, qwen.LABEL, qwen.files, qwen.is_ours, qwen.steps),
        _json_lines_format(
            claude_code.NAME,
            claude_code.LABEL,
            claude_code.files,
            claude_code.is_ours,
            claude_code.steps,
            claude_code.sub_agents,
            claude_code.kept_for,
        ),
        _json_lines_format(codex.NAME, codex.LABEL, codex.files, codex.is_ours, codex.steps),
        _json_lines_format(pi.NAME, pi.LABEL, pi.files, pi.is_ours, pi.steps),
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


def files_in(folder: Path, form: Format | None = None) -> list[tuple[Format, Path]]:
    """The session files in a folder, at any depth, of one format where it is given; those of sub-agents last."""
    found: list[tuple[Format, Path]] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            recognised_as = recognised(path)
            if recognised_as and form in {None, recognised_as}:
                found.append((recognised_as, path))
    return sorted(found, key=lambda pair: pair[1].name.startswith("agent-"))  # Claude Code's names for them


class FoundSessions(msgspec.Struct, frozen=True):
    """Session files of one agent. `size` in bytes; `newest` in seconds since 1970."""

    form: Format
    files: tuple[Path, ...]
    size: int
    newest: float

    @property
    def folder(self) -> Path:
        """The nearest folder that holds them all."""
        return Path(os.path.commonpath([file.parent for file in self.files]))


def sessions_at(path: Path, most: int = 2_000) -> list[FoundSessions]:
    """The sessions in a file or folder, of which at most `most` files are looked at; what cannot be read is left out."""
    files = [path] if path.is_file() else islice((p for p in path.rglob("*") if p.suffix in SUFFIXES), most)
    there: dict[str, list[Path]] = {}
    with suppress(OSError):
        for file in files:
            if file.is_file() and (form := recognised(file)):
                there.setdefault(form.name, []).append(file)
    return [sessions for name, known in there.items() if (sessions := _with_sizes(FORMATS[name], known))]


def find_sessions(home: Path) -> list[FoundSessions]:
    """The sessions of each agent on this machine that has any. Looks at names, sizes and times only, not into files."""
    return [sessions for form in FORMATS.values() if (sessions := _with_sizes(form, form.files(home)))]


def _with_sizes(form: Format, files: Iterable[Path]) -> FoundSessions | None:
    """These files with their sizes and times; None where all are empty."""
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
