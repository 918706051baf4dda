"""How full the window was over a session: the fill at the end of each turn, and the compactions between. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Ledger

BARS = "▁▂▃▄▅▆▇█"
MARK = "▴"
BETWEEN_TURNS = frozenset({"manual", "model_switch", "offline"})
"""Compactions made when a turn had ended; others are made within one, before its fill is taken."""


class Point(msgspec.Struct, frozen=True):
    """Tokens in use at one moment; `mark` where a compaction had just been made."""

    used: int
    mark: bool = False


def fill_points(state: SessionState) -> tuple[Point, ...]:
    """The fills of a session, oldest first, and the drop of every compaction in force where it happened."""
    turns = state.ledger.turn
    first = turns - len(state.fills) + 1
    drops: dict[int, list[Point]] = {}
    for change in state.ledger.compactions:
        if record := change.record:
            turn = _turn_of(change, state.ledger) + (record.reason in BETWEEN_TURNS)
            turn = min(max(turn, first), turns + 1)
            drops.setdefault(turn, []).extend((Point(record.before.used), Point(record.after.used, mark=True)))
    points: list[Point] = []
    for turn, used in enumerate(state.fills, first):
        points += [*drops.pop(turn, ()), Point(used)]
    return (*points, *(p for late in drops.values() for p in late))


def _turn_of(change: Change, ledger: Ledger) -> int:
    """The turn a change was made in: the last one that had begun by then."""
    if not change.at:
        covered = {g for e in change.edits for g in e.covers}
        return max((g.turn for g in ledger.groups if g.id in covered), default=0)
    return max((g.turn for g in ledger.groups if g.kind == "user" and g.first.at <= change.at), default=0)


def squeezed(points: Sequence[Point], width: int) -> tuple[Point, ...]:
    """At most `width` points: neighbours become one, as high as the highest, marked where one of them is."""
    if len(points) <= width:
        return tuple(points)
    edges = [i * len(points) // width for i in range(width + 1)]
    runs = [points[a:b] for a, b in pairwise(edges)]
    return tuple(Point(max(p.used for p in run), any(p.mark for p in run)) for run in runs)


def bar(used: int, limit: int) -> str:
    """One column: an eighth of the limit a step, empty only for nothing."""
    if used <= 0 or limit <= 0:
        return " "
    return BARS[min(len(BARS), -(-used * len(BARS) // limit)) - 1]
