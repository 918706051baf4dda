"""Sessions brought in beside a chat: nobody who writes meanwhile waits, and nothing half is left of one that fails."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Record, Sealed
from ctxchat.core.tokens import rough_count
from ctxchat.storage import archive, origins, sessions
from ctxchat.storage.database import FILE, Database
from ctxchat.storage.origins import SessionListing, SessionOrigin
from tests.storage.samples import user

ORIGIN = SessionOrigin("agent:1", "/f", 1, 1)


def talk(many: int) -> list[Record]:
    return [Sealed((user(number, f"word{number} of the talk", number),)) for number in range(1, many + 1)]


def bring(database: Database, many: int) -> tuple[str, bool]:
    return origins.bring(database, ORIGIN, lambda _: talk(many), lambda: SessionListing(many))


def test_others_write_while_a_session_is_made_ready(tmp_path: Path) -> None:
    with (
        Database(tmp_path) as chat,
        closing(sqlite3.connect(tmp_path / FILE, timeout=0, isolation_level=None)) as other,
    ):
        counted: list[str] = []
        seen: list[int] = []

        def count(text: str) -> int:
            """Asked for every message: now and then somebody writes who would not wait at all, and looks what is there."""
            counted.append(text)
            if len(counted) % 100 == 0:
                other.execute("INSERT OR REPLACE INTO meta VALUES ('chat', ?)", (text,))
                seen.append(other.execute("SELECT count(*) FROM messages").fetchone()[0])
            return rough_count(text)

        with Database(tmp_path, count=count) as importer:
            session, new = bring(importer, 900)
            assert new and seen == 9 * [0]
            assert bring(importer, 950) == (session, False)
            assert seen[9:] == 9 * [900]
        assert sessions.row(chat, session).messages == 950
        assert sessions.row(chat, session).title == "word1 of the talk"
        while chat.take_in_more():
            pass
        assert archive.search(chat, "word950") and chat.check() == []
    assert not list(tmp_path.glob(f"{origins.ASIDE}*"))


def test_one_that_fails_leaves_nothing_and_comes_in_whole_later(tmp_path: Path) -> None:
    def cut_short(_: str) -> Iterator[Record]:
        yield from talk(500)
        raise OSError("the disk went away")

    with Database(tmp_path) as database:
        with pytest.raises(StorageError):
            origins.bring(database, ORIGIN, cut_short, lambda: SessionListing(500))
        assert not sessions.rows(database) and not list(tmp_path.glob(f"{origins.ASIDE}*"))
        session, new = bring(database, 600)
        assert new and sessions.row(database, session).messages == 600
        assert database.check() == []


def test_what_a_kill_has_left_goes_with_a_later_import(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        left, under_way = tmp_path / f"{origins.ASIDE}old", tmp_path / f"{origins.ASIDE}new"
        for file in (left, under_way):
            file.write_bytes(b"rows")
        os.utime(left, (0, 0))
        bring(database, 2)
        assert not left.exists() and under_way.exists()
