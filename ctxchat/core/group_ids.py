"""Ids of groups kept as places in the record: each compaction of a long session names nearly all of it again, which costs a few
numbers so, and a name for each group in each compaction otherwise. Knows nothing of what groups hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from operator import eq
from typing import cast, overload

Runs = tuple[int, ...]
"""Places in the record as first, how many, first, how many, …"""


class GroupIds(Sequence[str]):
    """What a tuple of these ids would be, and equal to it; as JSON by `enc_hook=list`. `record` has the ids of a record by place
    and may grow at its end."""

    __slots__ = ("_length", "_record", "_runs")

    def __init__(self, record: Sequence[str], runs: Runs) -> None:
        self._record, self._runs, self._length = record, runs, sum(runs[1::2])

    def __iter__(self) -> Iterator[str]:
        spans = starmap(range, ((first, first + many) for first, many in pairs(self._runs)))
        return map(self._record.__getitem__, chain.from_iterable(spans))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self)[place]
        left = place + self._length if place < 0 else place
        for first, many in pairs(self._runs) if left >= 0 else ():
            if left < many:
                return self._record[first + left]
            left -= many
        raise IndexError(place)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, GroupIds) and other._record is self._record:
            return other._runs == self._runs
        if not isinstance(other, tuple | GroupIds):
            return NotImplemented
        ids = cast("Sequence[object]", other)
        return len(ids) == len(self) and all(map(eq, self, ids))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def begins_with(self, other: Sequence[str]) -> bool:
        """These begin with those; told only where both are places in one record."""
        if not isinstance(other, GroupIds) or other._record is not self._record:
            return False
        *before, many = other._runs
        mine = self._runs[: len(other._runs)]
        return mine[:-1] == tuple(before) and mine[-1] >= many


def runs(places: Sequence[int]) -> Runs:
    """Places as runs, their order kept."""
    if places and places == list(range(places[0], places[0] + len(places))):
        return (places[0], len(places))
    found: list[int] = []
    for place in places:
        if found and place == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += (place, 1)
    return tuple(found)


def pairs(flat: Runs) -> Iterator[tuple[int, int]]:
    """First and how many of each run."""
    return zip(flat[::2], flat[1::2], strict=True)
