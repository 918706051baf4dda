"""Lines of a summary that the messages beside it overtake: what came since is added to them by code, and nothing is taken out.

A summariser reads up to the cut; what stays in view went on. Only what the record proves is said: that the very command a line
names ran again, and how it ended; that a file it names is gone, or has another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxchat.core.facts import Memory
from ctxchat.core.messages import Group
from ctxchat.core.record import Fact, Gone

LASTING = frozenset({"Goal", "Constraints and rules", "Exact identifiers"})
"""Sections of a summary that tell no state."""

MAX_LINES = 12
"""Lines that something is added to, the last ones."""

_NAMED = re.compile(r"`([^`\n]{2,300})`")
_FILE = re.compile(r"[\w./~@+-]*\w\.\w{1,6}")


def with_what_came_since(summary: str, kept: Iterable[Group], memory: Memory) -> str:
    """The summary with what the kept groups did to what its lines name, in brackets behind each such line."""
    runs: dict[str, Fact] = {}
    gone: dict[str, Gone] = {}
    for group in kept:
        found = memory.find_facts(group)
        runs.update((fact.key, fact) for fact in found.facts if fact.kind == "command" and fact.value)
        gone.update((one.key, one) for one in found.gone if one.kind == "file")
        for fact in found.facts:
            if fact.kind == "changed":
                gone = {key: one for key, one in gone.items() if not _same_file(fact.key, key) or fact.seq < one.seq}
    if not runs and not gone:
        return summary
    section = ""
    lines = summary.split("\n")
    came: dict[int, str] = {}
    for place, line in enumerate(lines):
        if line.startswith("#"):
            section = line.lstrip("# ").strip()
        elif section not in LASTING and (told := "; ".join(_later_results(line, runs, gone))):
            came[place] = f"{line} [since then: {told}]"
    for place in list(came)[-MAX_LINES:]:
        lines[place] = came[place]
    return "\n".join(lines)


def _later_results(line: str, runs: dict[str, Fact], gone: dict[str, Gone]) -> Iterable[str]:
    for words in dict.fromkeys(_NAMED.findall(line)):
        if run := runs.get(words.strip()):
            yield f"`{run.key}` ran in m{run.seq}, {run.value}"
        if _FILE.fullmatch(words):
            for one in (one for key, one in gone.items() if _same_file(key, words)):
                yield f"`{words}` is {one.now} now" if one.now else f"`{words}` was removed, m{one.seq}"


def _same_file(path: str, named: str) -> bool:
    """Two ways to name one file: the same, or one is the end of the other with a folder in it. A bare name may be another's."""
    long, short = sorted((path, named), key=len, reverse=True)
    return long == short or ("/" in short and long.endswith(f"/{short.removeprefix('./')}"))
