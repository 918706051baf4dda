"""A tokenizer's table in a form that is looked up as it lies in its file. tiktoken makes a dictionary of all of it, which takes a
fifth of a second and 40 MB; for what a person types, and what goes with a first message, a few hundred of its entries are needed.

Counts exactly as tiktoken does, in some twice the time.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from zlib import crc32

MAX_RUN_BYTES = 1_000
"""Bytes of a run without a border that is counted here, in some 15 ms: merging costs the square of it. A sentence of Chinese
is a run."""

MAX_REMEMBERED_RUNS = 20_000
"""Runs whose count is remembered."""

_HEAD = struct.Struct("=I8sII")  # checksum of all behind it, what it is, places in the index, bytes of the pattern
_ENTRY = struct.Struct("<BHB")  # length, and the rank: its low and its high bits
_MAGIC = b"ctxtok 1"
_NO_RANK = 1 << 30  # a rank beyond all


def write_table(file: Path, pattern: str, ranks: Mapping[bytes, int]) -> None:
    """A table by what tiktoken knows of it: how a text is cut into runs, and the rank of each token. Private, and
    there whole or not at all. Raises OSError."""
    places = 1 << (2 * len(ranks) - 1).bit_length()
    cut = pattern.encode()
    cut += b" " * (-len(cut) % 4)
    index, entries, at = [0] * places, bytearray(), _HEAD.size + len(cut) + 4 * places
    for token, rank in ranks.items():
        place = crc32(token) & (places - 1)
        while index[place]:
            place = (place + 1) & (places - 1)
        index[place] = at + len(entries)
        entries += _ENTRY.pack(len(token), rank & 0xFFFF, rank >> 16) + token
    whole = bytearray(_HEAD.pack(0, _MAGIC, places, len(cut)) + cut + struct.pack(f"={places}I", *index) + entries)
    struct.pack_into("=I", whole, 0, crc32(memoryview(whole)[4:]))
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = file.with_suffix(f".{os.getpid()}")
    try:
        with open(beside, "xb", opener=partial(os.open, mode=0o600)) as half:
            half.write(whole)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


class TokenTable:
    """One such file. Raises OSError and ValueError for one that is not there or not whole."""

    def __init__(self, file: Path) -> None:
        # Not mapped: cut short by somebody else, that would end the program.
        self._data = file.read_bytes().ljust(_HEAD.size)
        checksum, magic, places, cut = _HEAD.unpack_from(self._data)
        if magic != _MAGIC or crc32(memoryview(self._data)[4:]) != checksum:
            raise ValueError("another form, or damaged")
        import regex  # what tiktoken cuts with, in Python

        start = _HEAD.size + cut
        pattern = self._data[_HEAD.size : start].decode().rstrip(" ")
        self._runs = regex.compile(pattern.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}"))
        self._index = memoryview(self._data)[start : start + 4 * places].cast("I")
        self._mask = places - 1
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int | None:
        """Tokens of a text; None where a run is too long to be merged here, or the text is none that can be encoded."""
        known, tokens = self._known, 0
        for run in self._runs.findall(text):
            counted = known.get(run)
            if counted is None:
                counted = self._merged(run)
                if counted is None:
                    return None
                if len(known) < MAX_REMEMBERED_RUNS:
                    known[run] = counted
            tokens += counted
        return tokens

    def _merged(self, run: str) -> int | None:
        """Tokens of a run: the pair of the lowest rank becomes one, the first of several, until there is none left."""
        try:
            whole = run.encode()
        except UnicodeEncodeError:  # half of a character
            return None
        if self._rank(whole) != _NO_RANK:
            return 1
        if len(whole) > MAX_RUN_BYTES:
            return None
        borders = list(range(len(whole) + 1))
        ranks = [self._rank(whole[at : at + 2]) for at in range(len(whole) - 1)]
        while ranks and (lowest := min(ranks)) != _NO_RANK:
            at = ranks.index(lowest)
            del borders[at + 1], ranks[at]
            for pair in (at - 1, at):
                if 0 <= pair < len(ranks):
                    ranks[pair] = self._rank(whole[borders[pair] : borders[pair + 2]])
        return len(borders) - 1

    def _rank(self, token: bytes) -> int:
        data, size = self._data, len(token)
        place = crc32(token) & self._mask
        while at := self._index[place]:
            if data[at] == size and data[at + 4 : at + 4 + size] == token:
                return data[at + 1] | data[at + 2] << 8 | data[at + 3] << 16
            place = (place + 1) & self._mask
        return _NO_RANK
