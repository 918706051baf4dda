"""Which of the exact facts matter most, so that old and important ones stay under a cap.

Goes by who brought a fact up, in how many turns, how lately, and what has come after it; by no model's judgement.
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
"""Every kind once, the dearest first; also the order on the page."""

SPEAKERS: dict[Speaker, float] = {"user": 3.0, "assistant": 2.0, "": 2.0, "tool": 0.0}
"""What it is worth who said or did it. One step more is worth as much as coming up in twice as many turns."""

_BARE_NUMBER_PENALTY = 3.0
"""What a number loses that has no word with it that says what it is about."""

_MAX_LATER_PENALTY = 2.0
"""The most that a fact loses by later ones of its family."""

_ALONE = expression(r"[+-]?[$€£]?[\d.,_]+\s?[^\s\d]*")
_COUNTED = expression(r"\b(?=[0-9a-f]*\d)[0-9a-f]{4,}\b|\d[\d.,:]*")


def ranked(facts: Iterable[Fact]) -> dict[FactKind, list[Fact]]:
    """Facts by kind, within each those first that should stay longest.

    Two orders by turns: what is worth most (of equals the eldest, so that what stood in the last compaction still stands), and
    what was seen last. Each alone would let the other's first fact go.
    """
    by_kind: dict[FactKind, list[Fact]] = {kind: [] for kind in KINDS}
    for fact in facts:
        by_kind[fact.kind].append(fact)
    return {kind: _by_turns(some) for kind, some in by_kind.items()}


def _by_turns(facts: Sequence[Fact]) -> list[Fact]:
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
    """What facts of one sort have in common; a rule, a decision and a symbol are each one of a kind."""
    if fact.kind in {"rule", "decision", "symbol"}:
        return fact.key
    if fact.kind in FILES:
        return fact.key.rstrip("/").rpartition("/")[0]
    if fact.kind == "command":
        return command_line(fact.key).program
    return _COUNTED.sub("#", fact.key)
