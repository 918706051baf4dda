"""Adds up the heights of the transcript's entries, so that a line finds its entry fast in a conversation of any length."""

from __future__ import annotations

from collections.abc import Iterable

CHUNK_ITEMS = 256
"""Entries whose heights are summed up in advance."""


class Heights:
    """The height in lines of each entry, known or guessed. Sums over chunks of entries keep queries fast: a hundred thousand
    entries take a few hundred steps."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._sums: list[int] = []
        self._update_sums(0)

    def _update_sums(self, chunk: int) -> None:
        """Recompute the sums from this chunk on."""
        heights = self._heights
        self._sums[chunk:] = (
            sum(heights[i : i + CHUNK_ITEMS]) for i in range(chunk * CHUNK_ITEMS, len(heights), CHUNK_ITEMS)
        )

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """Lines of all entries together."""
        return sum(self._sums)

    def set_height(self, index: int, height: int) -> int:
        """Set the height of an entry; return by how many lines it grew."""
        more = height - self._heights[index]
        self._heights[index] = height
        self._sums[index // CHUNK_ITEMS] += more
        return more

    def splice(self, start: int, stop: int, heights: Iterable[int]) -> None:
        """Replace the heights from `start` up to, not including, `stop`."""
        self._heights[start:stop] = heights
        self._update_sums(start // CHUNK_ITEMS)

    def top(self, index: int) -> int:
        """The line an entry begins at; for the index behind the last entry, the line where everything ends."""
        chunk = index // CHUNK_ITEMS
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * CHUNK_ITEMS : index])

    def entry_at(self, y: int) -> tuple[int, int]:
        """The index of the entry at line `y`, and the line within it; the nearest entry where `y` is outside, (0, 0) if there are
        none."""
        if not self._heights or y < 0:
            return 0, 0
        left, chunk = y, 0
        while chunk < len(self._sums) and left >= self._sums[chunk]:
            left -= self._sums[chunk]
            chunk += 1
        if chunk == len(self._sums):
            return len(self._heights) - 1, max(0, self._heights[-1] - 1)
        index = chunk * CHUNK_ITEMS
        while left >= self._heights[index]:
            left -= self._heights[index]
            index += 1
        return index, left
