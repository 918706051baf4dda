"""What came of an import, as values and in words for people. Knows no format and no store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from ctxchat.core.quantities import count

ImportOutcome = Literal["new", "grown", "known", "empty", "failed"]


class Imported(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="session"):
    """What came of one session of a file. `id` is empty where nothing was stored; `grown`: it was here, and has more now;
    `known`: nothing in it is new. `damaged` names lines that could not be read, `no_place` counts what a session has no place
    for, by kind; `problem` says why it `failed`."""

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
    """How far an import is: bytes `read`, `of` all of its files."""

    read: int
    of: int


class Importable(msgspec.Struct, frozen=True):
    """Sessions of one agent that could be imported: `files` that are not here yet or have changed, `size` of these in bytes.
    `kept_for` is how long that agent keeps them, empty where it deletes none by itself."""

    agent: str
    files: int
    size: int
    kept_for: str = ""


def importable(found: Sequence[Importable]) -> str:
    """`412 sessions of Claude Code and 3 of Codex, 1.2 GB`."""
    parts = [
        f"{count(found[0].files, 'session')} of {found[0].agent}",
        *(f"{f.files:,} of {f.agent}" for f in found[1:]),
    ]
    named = " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), parts[-1]])
    return f"{named}, {size_words(sum(f.size for f in found))}"


def deleted_there(found: Sequence[Importable]) -> str:
    """`Claude Code deletes its sessions after 30 days.`; empty where no agent deletes any by itself."""
    parts = [(f.agent, f.kept_for) for f in found if f.kept_for]
    told = [f"{agent} deletes its sessions after {time}" for agent, time in parts[:1]]
    return " and ".join([*told, *(f"{agent} after {time}" for agent, time in parts[1:])]) + "." * bool(parts)


def brought_in(told: Sequence[Imported]) -> str:
    """`3 sessions of other agents brought in`, by those that are new here or have grown; empty where there is none."""
    many = sum(one.outcome in {"new", "grown"} for one in told)
    return f"{count(many, 'session')} of other agents brought in" if many else ""


def not_brought_in(told: Sequence[Imported]) -> str:
    """`2 sessions of other agents could not be brought in: …`, with what was wrong with the first; empty where all could be."""
    problems = [one.problem for one in told if one.problem]
    many = count(len(problems), "session")
    return f"{many} of other agents could not be brought in: {problems[0]}" if problems else ""


FOLLOW_INTERVAL_S = 300.0
"""Seconds between two looks for new sessions of other agents."""

FOLLOWING = (
    "While ctxchat is open, new and grown sessions of other agents are brought in: at its start, and every "
    f"{FOLLOW_INTERVAL_S / 60:.0f} minutes. Their files are only read; what was brought in stays when they are deleted."
)
"""What following them does."""

ImportNews = Imported | ReadSoFar
"""A line of `sessions import --events`."""


def summary(told: Sequence[Imported]) -> str:
    """`3 sessions imported, 2 sessions here already: 812 messages, 2 compactions.`"""
    by = {outcome: [one for one in told if one.outcome == outcome] for outcome in get_args(ImportOutcome)}
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
    what = [count(sum(one.messages for one in brought), "message")] if brought else []
    if compactions := sum(one.compactions for one in brought):
        what.append(count(compactions, "compaction"))
    if lost := sum(len(one.damaged) for one in told):
        what.append(f"{count(lost, 'damaged line')} left out")
    return ", ".join(parts) + (f": {', '.join(what)}." if what else ".")


def not_kept(told: Sequence[Imported]) -> dict[str, int]:
    """What a session has no place for, by kind."""
    kinds: dict[str, int] = {}
    for one in told:
        if one.outcome in {"new", "grown"}:
            for kind, many in one.no_place.items():
                kinds[kind] = kinds.get(kind, 0) + many
    return kinds


def size_words(size: int) -> str:
    """Bytes as `1.2 GB`, `3.4 MB` or `12 kB`."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{-(-size // 1000):,} kB"
