"""Counts tokens with a tokenizer's table that stays in the form it has in its file, a hash table of tokens and their ranks.

tiktoken makes a dictionary of the whole table, which takes a fifth of a second and 40 MB; but what a person types, and a first
message, need only a few hundred of its entries. Counts exactly as tiktoken does, in about twice the time.

A run is a piece of text that is tokenized by itself: the tokenizer's pattern cuts a text into runs.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from zlib import crc32

MAX_RUN_BYTES = 1_000
"""The longest run that is counted here, in about 15 ms, since the time grows with its square. A sentence of Chinese is one
run."""

MAX_REMEMBERED_RUNS = 20_000
"""The most runs whose count is remembered."""

_HEAD = struct.Struct("=I8sII")  # checksum of everything behind it, magic, slots of the index, bytes of the pattern
_ENTRY = struct.Struct("<BHB")  # length of the token; its rank, the low 16 bits and the high 8
_MAGIC = b"ctxtok 1"
_NO_RANK = 1 << 30  # higher than every rank


def write_table(file: Path, pattern: str, ranks: Mapping[bytes, int]) -> None:
    """Write a table's file from what tiktoken has: the pattern that cuts a text into runs, and the rank of each token.

    The file has a head, the pattern, the index (each slot an offset into the file, 0 for none) and the entries. It is readable by
    the person only, and is written completely or not at all. Raises OSError.
    """
    slots = 1 << (2 * len(ranks) - 1).bit_length()
    encoded = pattern.encode()
    encoded += b" " * (-len(encoded) % 4)
    index, entries, first = [0] * slots, bytearray(), _HEAD.size + len(encoded) + 4 * slots
    for token, rank in ranks.items():
        slot = crc32(token) & (slots - 1)
        while index[slot]:
            slot = (slot + 1) & (slots - 1)
        index[slot] = first + len(entries)
        entries += _ENTRY.pack(len(token), rank & 0xFFFF, rank >> 16) + token
    head = _HEAD.pack(0, _MAGIC, slots, len(encoded))
    whole = bytearray(head + encoded + struct.pack(f"={slots}I", *index) + entries)
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
    """A table read from its file. Raises OSError where it is missing, ValueError where it is damaged or of another version."""

    def __init__(self, file: Path) -> None:
        # Read and not mapped into memory: if somebody truncated a mapped file, the program would be killed.
        self._data = file.read_bytes().ljust(_HEAD.size)
        checksum, magic, slots, pattern_bytes = _HEAD.unpack_from(self._data)
        if magic != _MAGIC or crc32(memoryview(self._data)[4:]) != checksum:
            raise ValueError("another form, or damaged")
        import regex  # its patterns are written like those of tiktoken's Rust library

        start = _HEAD.size + pattern_bytes
        pattern = self._data[_HEAD.size : start].decode().rstrip(" ")
        self._runs = regex.compile(pattern.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}"))
        self._index = memoryview(self._data)[start : start + 4 * slots].cast("I")
        self._mask = slots - 1
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int | None:
        """The tokens of a text; None where one of its runs is too long, or it cannot be encoded as UTF-8."""
        known, tokens = self._known, 0
        for run in self._runs.findall(text):
            counted = known.get(run)
            if counted is None:
                counted = self._count_run(run)
                if counted is None:
                    return None
                if len(known) < MAX_REMEMBERED_RUNS:
                    known[run] = counted
            tokens += counted
        return tokens

    def _count_run(self, run: str) -> int | None:
        """The tokens of a run, by byte-pair encoding: of all neighbours the pair with the lowest rank (the first of several) is
        merged into one token, again and again, until no pair is a token. None as in `count`."""
        try:
            whole = run.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        if self._rank(whole) != _NO_RANK:
            return 1
        if len(whole) > MAX_RUN_BYTES:
            return None
        borders = list(range(len(whole) + 1))
        pair_ranks = [self._rank(whole[start : start + 2]) for start in range(len(whole) - 1)]
        while pair_ranks and (lowest := min(pair_ranks)) != _NO_RANK:
            merged = pair_ranks.index(lowest)
            del borders[merged + 1], pair_ranks[merged]
            for pair in (merged - 1, merged):
                if 0 <= pair < len(pair_ranks):
                    pair_ranks[pair] = self._rank(whole[borders[pair] : borders[pair + 2]])
        return len(borders) - 1

    def _rank(self, token: bytes) -> int:
        """The rank of a token; `_NO_RANK` where these bytes are none."""
        data, size = self._data, len(token)
        slot = crc32(token) & self._mask
        while offset := self._index[slot]:
            if data[offset] == size and data[offset + 4 : offset + 4 + size] == token:
                return data[offset + 1] | data[offset + 2] << 8 | data[offset + 3] << 16
            slot = (slot + 1) & self._mask
        return _NO_RANK
