"""Adds later results to lines of a summary that the messages kept beside it have made outdated; removes nothing.

A summariser reads up to the cut, but the work went on in the messages after it. Only what the record proves is added: that
exactly the command a line names ran again, and how it ended; that a file it names was removed or renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxchat.core.facts import Memory
from ctxchat.core.messages import Group
from ctxchat.core.record import Fact, Gone

LASTING = frozenset({"Goal", "Constraints and rules", "Exact identifiers"})
"""Sections of a summary that describe no state, so that they cannot become outdated."""

MAX_LINES = 12
"""The most lines that get an addition; where there are more, the last ones do."""

_NAMED = re.compile(r"`([^`\n]{2,300})`")
_FILE = re.compile(r"[\w./~@+-]*\w\.\w{1,6}")


def with_what_came_since(summary: str, kept: Iterable[Group], memory: Memory) -> str:
    """The summary with the results of the kept groups, in brackets after the lines that name the command or file."""
    runs: dict[str, Fact] = {}
    gone: dict[str, Gone] = {}
    for group in kept:
        found = memory.find_facts(group)
        runs.update((fact.key, fact) for fact in found.facts if fact.kind == "command" and fact.value)
        gone.update((each.key, each) for each in found.gone if each.kind == "file")
        for fact in found.facts:
            if fact.kind == "changed":  # a file that was written again is there again
                gone = {key: each for key, each in gone.items() if not _same_file(fact.key, key) or fact.seq < each.seq}
    if not runs and not gone:
        return summary
    section = ""
    lines = summary.split("\n")
    extended: dict[int, str] = {}
    for number, line in enumerate(lines):
        if line.startswith("#"):
            section = line.lstrip("# ").strip()
        elif section not in LASTING and (results := "; ".join(_later_results(line, runs, gone))):
            extended[number] = f"{line} [since then: {results}]"
    for number in list(extended)[-MAX_LINES:]:
        lines[number] = extended[number]
    return "\n".join(lines)


def _later_results(line: str, runs: dict[str, Fact], gone: dict[str, Gone]) -> Iterable[str]:
    """What happened later to the commands and files that a line names in backticks, by the latest runs and the files that are
    gone."""
    for named in dict.fromkeys(_NAMED.findall(line)):
        if run := runs.get(named.strip()):
            yield f"`{run.key}` ran in m{run.seq}, {run.value}"
        if _FILE.fullmatch(named):
            for each in (each for key, each in gone.items() if _same_file(key, named)):
                yield f"`{named}` is {each.now} now" if each.now else f"`{named}` was removed, m{each.seq}"


def _same_file(path: str, named: str) -> bool:
    """True when two paths name one file: they are equal, or one ends with the other and that has a folder in it, since a bare
    name may be another file's."""
    long, short = sorted((path, named), key=len, reverse=True)
    return long == short or ("/" in short and long.endswith(f"/{short.removeprefix('./')}"))
