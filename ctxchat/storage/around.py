"""Reads the rows of a damaged table: those on damaged pages are left out, all others are found.

Rows whose values do not have their columns' types are left out as well: damage can show pages of another table here. This module
knows no table's meaning.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ctxchat.core.errors import StorageError

_STRIDE = 512  # keys read at once, and how many are tried beyond the highest known one
# lost keys in a row after which reading ends where the highest key is unknown: for each page of the file, and at most
_PER_PAGE, _FAR = 8, 10_240
_TYPES = {"TEXT": str, "INTEGER": int, "BLOB": bytes, "REAL": float}

Read = Callable[[str, Sequence[object]], Iterable[tuple[Any, ...]]]
"""A function that runs a query. Raises StorageError or sqlite3.DatabaseError where it meets damage."""


def rows(read: Read, columns: str, table: str) -> Iterator[tuple[Any, ...]]:
    """These columns of every row that can be read, in the order of their row ids."""
    return _read_around(read, columns, table, f"FROM {table} NOT INDEXED WHERE rowid", "rowid", _last(read, table))


def keyed(read: Read, columns: str, table: str, session: str) -> list[tuple[Any, ...]]:
    """These columns of one session's readable rows, in a table whose key is session and `place`, in the order of `place`."""
    return list(
        _read_around(read, columns, table, f"FROM {table} WHERE session = '{session}' AND place", "place", None)
    )


class RowsBySession:
    """The readable rows of damaged tables by session, for callers that read many sessions: a table is read once for all of them,
    at the first request, and held in memory. So do not ask for columns with long texts."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._found: dict[tuple[str, str], dict[str, list[tuple[Any, ...]]]] = {}

    def rows_of(self, session: str, columns: str, table: str) -> Sequence[tuple[Any, ...]]:
        """These columns of each readable row of a session."""
        if (columns, table) not in self._found:
            found: dict[str, list[tuple[Any, ...]]] = {}
            for owner, *row in rows(self._read, f"session, {columns}", table):
                found.setdefault(owner, []).append(tuple(row))
            self._found[columns, table] = found
        return self._found[columns, table].get(session, ())


def _read_around(
    read: Read, columns: str, table: str, where: str, key: str, last: int | None
) -> Iterator[tuple[Any, ...]]:
    """Read ranges of keys, halving the range where a read fails until single keys are left, and doubling it again after the
    damage. That takes one read for each lost key, and a few where damage begins. `last` is the highest key, None where it is
    unknown."""
    types = _types(read, columns, table)
    sql = f"SELECT {columns} {where} BETWEEN ? AND ? ORDER BY {key}"
    give_up_after = _STRIDE if last is not None else min(_FAR, _PER_PAGE * next(iter(read("PRAGMA page_count", ())))[0])
    first, size, lost = _next(read, where, key, 0), _STRIDE, 0
    while first is not None and (lost < give_up_after or first <= (last or 0)):
        try:
            rows = list(read(sql, (first, first + size - 1)))
        except (StorageError, sqlite3.DatabaseError):
            if size > 1:
                size //= 2
            else:
                first, lost = first + 1, lost + 1
            continue
        yield from (row for row in rows if tuple(map(type, row)) == types)
        lost = 0 if rows else lost + size
        first, size = _next(read, where, key, first + size), min(2 * size, _STRIDE)


def _types(read: Read, columns: str, table: str) -> tuple[type, ...]:
    """The Python types of these columns, as the table declares them."""
    declared = {name: _TYPES[kind] for _, name, kind, *_ in read(f"PRAGMA table_info({table})", ())}
    return tuple(declared.get(name, int) for name in columns.split(", "))  # `rowid` is declared nowhere


def _last(read: Read, table: str) -> int | None:
    """The highest row id, None where it cannot be read. Read from an index of the table, which has rows on damaged pages too."""
    index = "messages_by_seq" if table == "messages" else f"sqlite_autoindex_{table}_1"
    try:
        return next(iter(read(f"SELECT max(rowid) FROM {table} INDEXED BY {index}", ())))[0] or 0
    except (StorageError, sqlite3.DatabaseError):
        return None


def last_row(read: Read, table: str) -> int:
    """The highest row id of a table, 0 where it is empty; where it cannot be read, a number at least as high."""
    last = _last(read, table)
    if last is None:
        with suppress(StorageError, sqlite3.DatabaseError):
            last = next(iter(read(f"SELECT max(rowid) FROM {table} NOT INDEXED", ())))[0] or 0
    return last if last is not None else max(_FAR, _PER_PAGE * next(iter(read("PRAGMA page_count", ())))[0])


def _next(read: Read, where: str, key: str, at: int) -> int | None:
    """The first key not below `at`, None at the end; `at` itself where that cannot be read."""
    try:
        found = list(read(f"SELECT {key} {where} >= ? ORDER BY {key} LIMIT 1", (at,)))
    except (StorageError, sqlite3.DatabaseError):
        return at
    return found[0][0] if found else None
