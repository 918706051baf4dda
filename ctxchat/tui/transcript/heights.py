"""Heights of things that stand under one another, and where each of them begins. Pure."""

from __future__ import annotations

from collections.abc import Iterable

CHUNK = 256


class Heights:
    """Lines of each thing, known or guessed. What is asked of a hundred thousand of them takes a few hundred steps."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._sums: list[int] = []
        self._add_up(0)

    def _add_up(self, chunk: int) -> None:
        found = self._heights
        self._sums[chunk:] = (sum(found[i : i + CHUNK]) for i in range(chunk * CHUNK, len(found), CHUNK))

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """Lines of all of them."""
        return sum(self._sums)

    def put(self, index: int, height: int) -> int:
        """It is so high; by how much that is more than before."""
        more = height - self._heights[index]
        self._heights[index] = height
        self._sums[index // CHUNK] += more
        return more

    def splice(self, start: int, stop: int, heights: Iterable[int]) -> None:
        """These in place of those from `start` up to `stop`."""
        self._heights[start:stop] = heights
        self._add_up(start // CHUNK)

    def top(self, index: int) -> int:
        """The line it begins at; for one behind the last the line everything ends at."""
        chunk = index // CHUNK
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * CHUNK : index])

    def at(self, y: int) -> tuple[int, int]:
        """Which one stands at a line, and which of its lines that is; the nearest where there is none. Empty: (0, 0)."""
        if not self._heights or y < 0:
            return 0, 0
        left, chunk = y, 0
        while chunk < len(self._sums) and left >= self._sums[chunk]:
            left -= self._sums[chunk]
            chunk += 1
        if chunk == len(self._sums):
            return len(self._heights) - 1, max(0, self._heights[-1] - 1)
        index = chunk * CHUNK
        while left >= self._heights[index]:
            left -= self._heights[index]
            index += 1
        return index, left
