"""Rows of a table, read around pages that are damaged: what lies on such a page is left out, all else is found.

So are rows whose values are not of their columns' types: they are another table's, on a page out of place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ctxchat.core.errors import StorageError

_STRIDE = 512  # row ids asked for at once
_BARREN = 20  # strides in a row that give nothing, where the end of the table cannot be told
_TYPES = {"TEXT": str, "INTEGER": int, "BLOB": bytes, "REAL": float}

Read = Callable[[str, Sequence[object]], Iterable[tuple[Any, ...]]]
"""Runs a query. Raises StorageError or sqlite3.DatabaseError where it comes upon damage."""


def rows(read: Read, columns: str, table: str) -> Iterator[tuple[Any, ...]]:
    """These columns of every row that can be read, in the order of their row ids."""
    types, where, barren = _types(read, columns, table), f"FROM {table} NOT INDEXED WHERE rowid", 0
    last = _last(read, table)
    first: int | None = _next(read, where, 0)
    while first is not None and barren < (_BARREN if last is None or first <= last else 1):
        found = False
        for row in _between(
            read, f"SELECT {columns} {where} BETWEEN ? AND ? ORDER BY rowid", first, first + _STRIDE - 1
        ):
            found = True
            if tuple(map(type, row)) == types:
                yield row
        barren = 0 if found else barren + 1
        first = _next(read, where, first + _STRIDE)


def keyed(read: Read, columns: str, table: str, session: str) -> list[tuple[Any, ...]]:
    """The same of one session's rows in a table that is kept by session and `place`, from its first place on."""
    found: list[tuple[Any, ...]] = []
    types, barren, first = _types(read, columns, table), 0, 0
    where = f"FROM {table} WHERE session = '{session}' AND place"
    while barren < _BARREN:
        part = list(
            _between(read, f"SELECT {columns} {where} BETWEEN ? AND ? ORDER BY place", first, first + _STRIDE - 1)
        )
        found += (row for row in part if tuple(map(type, row)) == types)
        barren = 0 if part else barren + 1
        first += _STRIDE
    return found


def _types(read: Read, columns: str, table: str) -> tuple[type, ...]:
    """What the table is said to hold in these columns."""
    declared = {name: _TYPES[kind] for _, name, kind, *_ in read(f"PRAGMA table_info({table})", ())}
    return tuple(declared.get(name, int) for name in columns.split(", "))  # `rowid` is declared nowhere


def _last(read: Read, table: str) -> int | None:
    """The highest row id by an index of the table, which knows of rows on damaged pages too; None where that cannot be told."""
    index = "messages_by_seq" if table == "messages" else f"sqlite_autoindex_{table}_1"
    try:
        return next(iter(read(f"SELECT max(rowid) FROM {table} INDEXED BY {index}", ())))[0] or 0
    except (StorageError, sqlite3.DatabaseError):
        return None


def _next(read: Read, where: str, at: int) -> int | None:
    """The first row id from there on, None at the end, the place itself where that cannot be told."""
    try:
        found = list(read(f"SELECT rowid {where} >= ? ORDER BY rowid LIMIT 1", (at,)))
    except (StorageError, sqlite3.DatabaseError):
        return at
    return found[0][0] if found else None


def _between(read: Read, sql: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    try:
        yield from list(read(sql, (first, last)))
    except (StorageError, sqlite3.DatabaseError):
        if first < last:
            middle = (first + last) // 2
            yield from _between(read, sql, first, middle)
            yield from _between(read, sql, middle + 1, last)
