"""Defines the results of an import, and describes them in sentences for people. Knows no format and no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from ctxchat.core.quantities import count

ImportOutcome = Literal["new", "grown", "known", "empty", "failed"]


class Imported(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="session"):
    """The result for one session of a file. The `outcome` is `grown` for a session that was imported before and has more now, and
    `known` for one with nothing new. `id` is empty where nothing was stored. `damaged` names lines that could not be read,
    `no_place` counts content that a session cannot represent, by kind; `problem` says why the import `failed`."""

    file: str
    agent: str
    outcome: ImportOutcome
    id: str = ""
    messages: int = 0
    compactions: int = 0
    branches: int = 0
    damaged: tuple[str, ...] = ()
    no_place: dict[str, int] = {}
    problem: str = ""


class ReadSoFar(msgspec.Struct, frozen=True, tag_field="type", tag="progress"):
    """The progress of an import: bytes `read`, `of` the bytes of all its files."""

    read: int
    of: int


class Importable(msgspec.Struct, frozen=True):
    """The sessions of one agent that could be imported: the number of `files` that are new or have changed, and their `size` in
    bytes. `kept_for` is how long that agent keeps sessions, empty where it deletes none by itself."""

    agent: str
    files: int
    size: int
    kept_for: str = ""


def importable(found: Sequence[Importable]) -> str:
    """What could be imported: `412 sessions of Claude Code and 3 of Codex, 1.2 GB`."""
    parts = [
        f"{count(found[0].files, 'session')} of {found[0].agent}",
        *(f"{f.files:,} of {f.agent}" for f in found[1:]),
    ]
    named = " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), parts[-1]])
    return f"{named}, {size_words(sum(f.size for f in found))}"


def deleted_there(found: Sequence[Importable]) -> str:
    """When agents delete sessions: `Claude Code deletes its sessions after 30 days.`; empty where none does."""
    parts = [(f.agent, f.kept_for) for f in found if f.kept_for]
    first = [f"{agent} deletes its sessions after {time}" for agent, time in parts[:1]]
    return " and ".join([*first, *(f"{agent} after {time}" for agent, time in parts[1:])]) + "." * bool(parts)


def brought_in(results: Sequence[Imported]) -> str:
    """`3 sessions of other agents brought in`, the number of new and grown sessions; empty where there are none."""
    imported = sum(result.outcome in {"new", "grown"} for result in results)
    return f"{count(imported, 'session')} of other agents brought in" if imported else ""


def not_brought_in(results: Sequence[Imported]) -> str:
    """`2 sessions of other agents could not be brought in: …`, with the problem of the first; empty where none failed."""
    problems = [result.problem for result in results if result.problem]
    sessions = count(len(problems), "session")
    return f"{sessions} of other agents could not be brought in: {problems[0]}" if problems else ""


FOLLOW_INTERVAL_S = 300.0
"""Seconds between searches for new sessions of other agents."""

FOLLOWING = (
    "While ctxchat is open, new and grown sessions of other agents are brought in: at its start, and every "
    f"{FOLLOW_INTERVAL_S / 60:.0f} minutes. Their files are only read; what was brought in stays when they are deleted."
)
"""Explains to people what following other agents does."""

ImportNews = Imported | ReadSoFar
"""A line of `sessions import --events`."""


def summary(results: Sequence[Imported]) -> str:
    """The results in a sentence: `3 sessions imported, 2 sessions here already: 812 messages, 2 compactions.`"""
    by = {outcome: [result for result in results if result.outcome == outcome] for outcome in get_args(ImportOutcome)}
    brought = [*by["new"], *by["grown"]]
    parts = [f"{count(len(by['new']), 'session')} imported"] if by["new"] or not by["grown"] else []
    if by["grown"]:
        parts.append(f"{count(len(by['grown']), 'session')} had grown")
    if by["known"]:
        parts.append(f"{count(len(by['known']), 'session')} here already")
    if by["empty"]:
        parts.append(f"{count(len(by['empty']), 'session')} in which nothing was said")
    if by["failed"]:
        parts.append(f"{count(len(by['failed']), 'session')} failed")
    what = [count(sum(result.messages for result in brought), "message")] if brought else []
    if compactions := sum(result.compactions for result in brought):
        what.append(count(compactions, "compaction"))
    if lost := sum(len(result.damaged) for result in results):
        what.append(f"{count(lost, 'damaged line')} left out")
    return ", ".join(parts) + (f": {', '.join(what)}." if what else ".")


def not_kept(results: Sequence[Imported]) -> dict[str, int]:
    """How much content of the imported sessions could not be represented, by kind."""
    kinds: dict[str, int] = {}
    for result in results:
        if result.outcome in {"new", "grown"}:
            for kind, number in result.no_place.items():
                kinds[kind] = kinds.get(kind, 0) + number
    return kinds


def size_words(size: int) -> str:
    """A number of bytes as `1.2 GB`, `3.4 MB` or `12 kB`."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{-(-size // 1000):,} kB"
