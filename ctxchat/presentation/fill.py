"""Draws how full the window was over a session, with its compactions: as a line of small bars, and as the flight recorder's
chart. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Ledger
from ctxchat.presentation.compactions import CompactionEntry, compaction_entries

BARS = "▁▂▃▄▅▆▇█"
MARK = "▴"
BETWEEN_TURNS = frozenset({"manual", "model_switch", "offline"})
"""Triggers of compactions made after a turn; others are made within one, before its fill is recorded."""


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
    """The turn in which a change was made: the last one that had begun before it."""
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
    """One bar in steps of an eighth of the limit; empty only for 0."""
    if used <= 0 or limit <= 0:
        return " "
    return BARS[min(len(BARS), -(-used * len(BARS) // limit)) - 1]


EIGHTHS = " ▁▂▃▄▅▆▇█"
DONE, UNDONE, REFUSED = "▴", "▵", "×"
"""Characters under the chart for a compaction that was made, one undone since, and one rejected or failed."""


class FlightPoint(msgspec.Struct, frozen=True):
    """Tokens in use at the end of a turn, or around a compaction. `turn` is 0 where it is not known; `compactions` are ids,
    `sign` the weightiest of their marks."""

    used: int
    turn: int = 0
    compactions: tuple[str, ...] = ()
    sign: str = ""


def moments(state: SessionState) -> tuple[FlightPoint, ...]:
    """The measured moments of the session, oldest first."""
    after = {one.id: fills for one, fills in zip(state.compactions, state.endings, strict=False)}
    waiting: dict[int, list[FlightPoint]] = {}
    for one in reversed(compaction_entries(state)):
        waiting.setdefault(after.get(one.id, _fills_before(one, state)), []).extend(_of_pass(one))
    found = waiting.pop(0, [])
    for place, (turn, used) in enumerate(zip(filled_turns(state), state.fills, strict=True), 1):
        found += [FlightPoint(used, turn), *waiting.pop(place, [])]
    return (*found, *(m for late in waiting.values() for m in late))


def fitting(flight: Sequence[FlightPoint], width: int) -> tuple[FlightPoint, ...]:
    """At most `width` moments: neighbours become one, as high as the highest of them, with all their compactions."""
    if len(flight) <= width:
        return tuple(flight)
    edges = [i * len(flight) // max(1, width) for i in range(max(1, width) + 1)]
    return tuple(_merged_point(flight[a:b]) for a, b in pairwise(edges))


def column(used: int, top: int, height: int) -> str:
    """A bar of `height` characters from the bottom up, an eighth of one a step; empty only for nothing."""
    eighths = max(1, used * height * 8 // top) if used > 0 and top > 0 else 0
    eighths = min(eighths, height * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(height)


def _of_pass(one: CompactionEntry) -> list[FlightPoint]:
    before, after = one.record.before.used, one.record.after.used
    if one.record.outcome != "compacted":
        return [FlightPoint(before, compactions=(one.id,), sign=REFUSED)] if before else []
    return [FlightPoint(before), FlightPoint(after, compactions=(one.id,), sign=DONE if one.in_force else UNDONE)]


def _fills_before(one: CompactionEntry, state: SessionState) -> int:
    """For a compaction without an ending (of an older journal): behind the turn that began last before it."""
    at = one.record.at
    begun = [g.turn for g in state.ledger.groups if g.kind == "user" and g.first.at and at and g.first.at <= at]
    turn = max(begun, default=state.ledger.turn)
    return bisect_left(filled_turns(state), turn)


def _merged_point(run: Sequence[FlightPoint]) -> FlightPoint:
    signs = {m.sign for m in run}
    return FlightPoint(
        max(m.used for m in run),
        next((m.turn for m in run if m.turn), 0),
        tuple(p for m in run for p in m.compactions),
        next((s for s in (REFUSED, DONE, UNDONE) if s in signs), ""),
    )
