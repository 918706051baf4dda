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
    turns, filled = state.ledger.turn, filled_turns(state)
    first = filled[0] if filled else turns + 1
    drops: dict[int, list[Point]] = {}
    for change in state.ledger.compactions:
        if record := change.record:
            turn = _turn_of(change, state.ledger) + (record.reason in BETWEEN_TURNS)
            turn = min(max(turn, first), turns + 1)
            drops.setdefault(turn, []).extend((Point(record.before.used), Point(record.after.used, mark=True)))
    points: list[Point] = []
    fills = dict(zip(filled, state.fills, strict=True))
    for turn in sorted({*fills, *drops}):
        points += [*drops.get(turn, ()), *([Point(fills[turn])] if turn in fills else [])]
    return tuple(points)


def filled_turns(state: SessionState) -> tuple[int, ...]:
    """The turns that `state.fills` belong to: a turn that was stopped has none. Of a state that does not say, the last ones."""
    if len(state.filled) == len(state.fills):
        return state.filled
    return tuple(range(state.ledger.turn - len(state.fills) + 1, state.ledger.turn + 1))


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
