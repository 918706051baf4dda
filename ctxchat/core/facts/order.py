"""Ranks the exact facts by importance, so that important old ones are kept under a limit.

The rank depends on who brought a fact up, in how many turns, how recently, and how many similar facts came after it. Asks no
model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from math import log2
from typing import get_args

from ctxchat.core.expressions import expression
from ctxchat.core.facts.shared import FILES
from ctxchat.core.record import Fact, FactKind, Speaker
from ctxchat.core.tooluse import command_line

KINDS: tuple[FactKind, ...] = get_args(FactKind)
"""All kinds of facts, the most important first; also the order in which they are shown."""

SPEAKERS: dict[Speaker, float] = {"user": 3.0, "assistant": 2.0, "": 2.0, "tool": 0.0}
"""The worth of a fact by who brought it up. One point is worth as much as coming up in twice as many turns."""

_BARE_NUMBER_PENALTY = 3.0
"""The points that a number loses where no word says what it is about."""

_MAX_LATER_PENALTY = 2.0
"""The most points that a fact loses by later facts of its family (`_family`)."""

_ALONE = expression(r"[+-]?[$€£]?[\d.,_]+\s?[^\s\d]*")
_COUNTED = expression(r"\b(?=[0-9a-f]*\d)[0-9a-f]{4,}\b|\d[\d.,:]*")


def ranked(facts: Iterable[Fact]) -> dict[FactKind, list[Fact]]:
    """The facts by kind, within each kind those first that should be kept longest.

    Takes facts alternately from two orders: by worth (of equals the oldest first, so that what the last compaction kept stays),
    and by how recently they came up. Either order alone could lose the first fact of the other.
    """
    by_kind: dict[FactKind, list[Fact]] = {kind: [] for kind in KINDS}
    for fact in facts:
        by_kind[fact.kind].append(fact)
    return {kind: _by_turns(some) for kind, some in by_kind.items()}


def _by_turns(facts: Sequence[Fact]) -> list[Fact]:
    """The facts of one kind in the order described at `ranked`."""
    less = {f for f in facts if f.kind == "number" and _ALONE.fullmatch(f.key)}
    worth = {
        f: SPEAKERS[f.by] + log2(f.turns) - later - _BARE_NUMBER_PENALTY * (f in less) for f, later in _later(facts)
    }
    worthy = sorted(facts, key=lambda f: (-worth[f], f.seq))
    newest = sorted(facts, key=lambda f: (f not in less, f.by != "tool" or f.kind == "symbol", f.seq), reverse=True)
    return list(dict.fromkeys(f for f in chain(*zip_longest(worthy, newest)) if f))


def _later(facts: Sequence[Fact]) -> Iterable[tuple[Fact, float]]:
    """Each fact with what it loses by those of its family that came later: the twentieth run of one test command, the
    hundredth file of one folder and the old values of one quantity tell less than the newest."""
    families: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        families[_family(fact)].append(fact)
    for some in families.values():
        for place, fact in enumerate(sorted(some, key=lambda f: -f.seq), 1):
            yield fact, min(_MAX_LATER_PENALTY, log2(place) / 2)


def _family(fact: Fact) -> str:
    """The key that similar facts share: the folder of a file, the program of a command, a text without its numbers. Rules,
    decisions and symbols have none in common."""
    if fact.kind in {"rule", "decision", "symbol"}:
        return fact.key
    if fact.kind in FILES:
        return fact.key.rstrip("/").rpartition("/")[0]
    if fact.kind == "command":
        return command_line(fact.key).program
    return _COUNTED.sub("#", fact.key)
