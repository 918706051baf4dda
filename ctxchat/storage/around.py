"""Rows of a table, read around pages that are damaged: what lies on such a page is left out, all else is found.

So are rows whose values are not of their columns' types: they are another table's, on a page out of place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ctxchat.core.errors import StorageError

_STRIDE = 512  # keys asked for at once, and how far is looked behind the last that is known
_PER_PAGE, _FAR = 8, 10_240  # lost keys in a row, for each page of the file and at most, where the last cannot be told
_TYPES = {"TEXT": str, "INTEGER": int, "BLOB": bytes, "REAL": float}

Read = Callable[[str, Sequence[object]], Iterable[tuple[Any, ...]]]
"""Runs a query. Raises StorageError or sqlite3.DatabaseError where it comes upon damage."""


def rows(read: Read, columns: str, table: str) -> Iterator[tuple[Any, ...]]:
    """These columns of every row that can be read, in the order of their row ids."""
    return _read_around(read, columns, table, f"FROM {table} NOT INDEXED WHERE rowid", "rowid", _last(read, table))


def keyed(read: Read, columns: str, table: str, session: str) -> list[tuple[Any, ...]]:
    """The same of one session's rows in a table that is kept by session and `place`, from its first place on."""
    return list(
        _read_around(read, columns, table, f"FROM {table} WHERE session = '{session}' AND place", "place", None)
    )


class BySession:
    """Rows found around damage, for whoever looks at many sessions: a table is gone through once for all of them, and not at all
    where nobody asks. As it is when it is first asked; columns with long texts are not for here."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._found: dict[tuple[str, str], dict[str, list[tuple[Any, ...]]]] = {}

    def rows_of(self, session: str, columns: str, table: str) -> Sequence[tuple[Any, ...]]:
        """These columns of each of its rows that can be read."""
        if (columns, table) not in self._found:
            found: dict[str, list[tuple[Any, ...]]] = {}
            for owner, *row in rows(self._read, f"session, {columns}", table):
                found.setdefault(owner, []).append(tuple(row))
            self._found[columns, table] = found
        return self._found[columns, table].get(session, ())


def _read_around(
    read: Read, columns: str, table: str, where: str, key: str, last: int | None
) -> Iterator[tuple[Any, ...]]:
    """Less is asked for until the damage is met, key by key where it lies, and more again behind it: that is one read for each
    key that is lost, and a few for each place where damage begins."""
    types = _types(read, columns, table)
    part = f"SELECT {columns} {where} BETWEEN ? AND ? ORDER BY {key}"
    far = _STRIDE if last is not None else min(_FAR, _PER_PAGE * next(iter(read("PRAGMA page_count", ())))[0])
    first, many, lost = _next(read, where, key, 0), _STRIDE, 0
    while first is not None and (lost < far or first <= (last or 0)):
        try:
            found = list(read(part, (first, first + many - 1)))
        except (StorageError, sqlite3.DatabaseError):
            if many > 1:
                many //= 2
            else:
                first, lost = first + 1, lost + 1
            continue
        yield from (row for row in found if tuple(map(type, row)) == types)
        lost = 0 if found else lost + many
        first, many = _next(read, where, key, first + many), min(2 * many, _STRIDE)


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


def last_row(read: Read, table: str) -> int:
    """The highest row id of a table, 0 where it is empty; where it cannot be told, one that is not below it."""
    last = _last(read, table)
    if last is None:
        with suppress(StorageError, sqlite3.DatabaseError):
            last = next(iter(read(f"SELECT max(rowid) FROM {table} NOT INDEXED", ())))[0] or 0
    return last if last is not None else max(_FAR, _PER_PAGE * next(iter(read("PRAGMA page_count", ())))[0])


def _next(read: Read, where: str, key: str, at: int) -> int | None:
    """The first key from there on, None at the end, the place itself where that cannot be told."""
    try:
        found = list(read(f"SELECT {key} {where} >= ? ORDER BY {key} LIMIT 1", (at,)))
    except (StorageError, sqlite3.DatabaseError):
        return at
    return found[0][0] if found else None
