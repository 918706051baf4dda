"""Stores ids of groups compactly, as ranges of indexes in the record: each compaction of a long session names nearly all groups
again, which this way takes a few numbers instead of one id per group. Knows nothing of what groups hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from operator import eq
from typing import cast, overload

Runs = tuple[int, ...]
"""Indexes in the record as a flat list of ranges: first, length, first, length, …"""


class GroupIds(Sequence[str]):
    """A sequence of ids that behaves like a tuple of them and is equal to it; becomes JSON by `enc_hook=list`.

    `record` has all ids of a record in order and may grow at its end; `places` maps ids to their indexes there, so that `in` need
    not search."""

    __slots__ = ("_length", "_places", "_record", "_runs")

    def __init__(self, record: Sequence[str], runs: Runs, places: Mapping[str, int] | None = None) -> None:
        self._record, self._runs, self._length, self._places = record, runs, sum(runs[1::2]), places

    def __iter__(self) -> Iterator[str]:
        return map(self._record.__getitem__, numbers(self._runs))

    def __contains__(self, name: object) -> bool:
        if self._places is None:
            return any(map(name.__eq__, self))
        place = self._places.get(cast("str", name), -1)
        return any(first <= place < first + many for first, many in pairs(self._runs))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self[at] for at in range(*place.indices(self._length)))
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
        """True when these ids begin with the others; always False unless both belong to one record."""
        if not isinstance(other, GroupIds) or other._record is not self._record:
            return False
        *before, many = other._runs
        mine = self._runs[: len(other._runs)]
        return mine[:-1] == tuple(before) and mine[-1] >= many

    def runs_in(self, record: Sequence[str]) -> Runs | None:
        """The ranges in this record; None where the ids belong to another record."""
        return self._runs if record is self._record else None


def searchable(names: Iterable[str]) -> Collection[str]:
    """The names as a collection in which many lookups are fast."""
    return names if isinstance(names, GroupIds) else frozenset(names)


def runs(places: Sequence[int]) -> Runs:
    """Indexes as ranges, in their order."""
    if places and places == list(range(places[0], places[0] + len(places))):
        return (places[0], len(places))
    found: list[int] = []
    for place in places:
        if found and place == found[-2] + found[-1]:
            found[-1] += 1
        else:
            found += (place, 1)
    return tuple(found)


def union(several: Iterable[Runs]) -> Runs:
    """The indexes that are in any of these, sorted."""
    found: list[int] = []
    for first, many in sorted(pair for some in several for pair in pairs(some)):
        if found and first <= found[-2] + found[-1]:
            found[-1] = max(found[-1], first + many - found[-2])
        else:
            found += (first, many)
    return tuple(found)


def difference(some: Runs, others: Runs) -> Runs:
    """The indexes of the first that are not in the second; both must be sorted."""
    found: list[int] = []
    for first, many in pairs(some):
        at = first
        for other, length in pairs(others):
            if at < other + length and other < first + many:
                found += (at, other - at) if at < other else ()
                at = other + length
        found += (at, first + many - at) if at < first + many else ()
    return tuple(found)


def numbers(flat: Runs) -> Iterator[int]:
    """The indexes one by one."""
    return chain.from_iterable(starmap(range, ((first, first + many) for first, many in pairs(flat))))


def pairs(flat: Runs) -> Iterator[tuple[int, int]]:
    """First index and length of each range."""
    return zip(flat[::2], flat[1::2], strict=True)
