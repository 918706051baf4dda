"""Sessions brought in beside a chat: nobody who writes meanwhile waits, and nothing half is left of one that fails."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Record, Sealed
from ctxchat.core.tokens import rough_count
from ctxchat.storage import archive, inspection, loading, origins, sessions
from ctxchat.storage.database import FILE, Database
from ctxchat.storage.origins import SessionListing, SessionOrigin
from ctxchat.storage.private_files import ASIDE
from tests.storage.samples import user

ORIGIN = SessionOrigin("agent:1", "/f", 1, 1)


def conversation(many: int, of: str = "of the talk") -> list[Record]:
    return [Sealed((user(number, f"word{number} {of}", number),)) for number in range(1, many + 1)]


def long_talk() -> list[Record]:
    """Of several megabytes."""
    return conversation(LONG, "and so on, " * 200)


def bring(database: Database, many: int) -> tuple[str, bool]:
    return origins.import_session(database, ORIGIN, lambda _: conversation(many), lambda: SessionListing(many))


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
        while chat.index_pending():
            pass
        assert archive.search(chat, "word950") and chat.check() == []
    assert not list(tmp_path.rglob(ASIDE))


def test_one_that_fails_leaves_nothing_and_comes_in_whole_later(tmp_path: Path) -> None:
    def cut_short(_: str) -> Iterator[Record]:
        yield from conversation(500)
        raise OSError("the disk went away")

    with Database(tmp_path) as database:
        with pytest.raises(StorageError):
            origins.import_session(database, ORIGIN, cut_short, lambda: SessionListing(500))
        assert not sessions.rows(database) and not list(tmp_path.rglob(ASIDE))
        session, new = bring(database, 600)
        assert new and sessions.row(database, session).messages == 600
        assert database.check() == []


LONG = 1_500
"""Messages of a session that is copied in pieces."""

KILLED = f"""
import sys
from pathlib import Path
from ctxchat.storage import origins, session_files
from ctxchat.storage import private_files
from ctxchat.storage.database import Database
from tests.storage.test_origins import ORIGIN, long_talk
with Database(Path(sys.argv[1])) as database:
    def records(session):
        session_files.attach(private_files.session_folder(database.folder, session), "shot.png", b"pixels")
        return long_talk()
    origins.import_session(database, ORIGIN, records, lambda: origins.SessionListing({LONG}))
"""


def test_a_long_one_is_copied_in_pieces_and_a_kill_leaves_nothing(tmp_path: Path) -> None:
    with (
        Database(tmp_path) as chat,
        closing(sqlite3.connect(tmp_path / FILE, timeout=30, isolation_level=None)) as other,
    ):
        kept = sessions.create(chat, records=conversation(3))
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
        while True:  # hold the store between two of its pieces
            other.execute("BEGIN IMMEDIATE")
            there = other.execute("SELECT count(*) FROM journal WHERE session <> ?", (kept,)).fetchone()[0]
            if there:
                break
            other.execute("ROLLBACK")
            assert process.poll() is None
        assert there < LONG
        process.kill()
        process.wait()
        other.execute("ROLLBACK")
        assert [row.id for row in sessions.rows(chat)] == [kept]
        assert inspection.inspect(chat).faults == ()
        while chat.index_pending():
            pass
        assert {hit.session for hit in archive.search(chat, "word3")} == {kept}
    with Database(tmp_path) as later:
        for table in ("journal", "groups", "messages", "covers", "doomed"):
            sql = f"SELECT count(*) FROM {table}" + (
                "" if table in {"doomed", "covers"} else f" WHERE session <> '{kept}'"
            )
            assert later.query(sql) == [(0,)], table
        assert not [folder for folder in (tmp_path / "sessions").iterdir() if folder.name != kept]
        assert later.check() == []
        session, new = bring(later, LONG)
        assert new and sessions.row(later, session).messages == LONG
        assert later.check() == []


def test_one_under_way_is_left_alone_by_others_that_start(tmp_path: Path) -> None:
    with Database(tmp_path) as database:

        def going_on() -> None:
            with Database(tmp_path) as other:
                assert sessions.rows(other) == [] and inspection.inspect(other).faults == ()

        session, _ = origins.import_session(
            database, ORIGIN, lambda _: long_talk(), lambda: SessionListing(LONG), going_on
        )
        assert sessions.row(database, session).messages == LONG
        assert len(loading.load_state(database, session).state.ledger.groups) == LONG


def test_stopped_between_two_pieces_it_leaves_nothing(tmp_path: Path) -> None:
    steps = iter(range(3))

    def going_on() -> None:
        if next(steps) == 2:
            raise KeyboardInterrupt

    with Database(tmp_path) as database:
        with pytest.raises(KeyboardInterrupt):
            origins.import_session(database, ORIGIN, lambda _: long_talk(), lambda: SessionListing(LONG), going_on)
        assert database.query("SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM doomed)") == [(0,)]
        assert not any((tmp_path / "sessions").iterdir()) and database.check() == []


@pytest.mark.parametrize("change", [0, 1, 40, 59])
def test_of_one_that_has_grown_only_what_differs_is_written(tmp_path: Path, change: int) -> None:
    with Database(tmp_path) as database:
        session, _ = bring(database, 60)
        while database.index_pending():
            pass
        before = dict(database.query("SELECT seq, id FROM messages"))
        newer = conversation(90)
        newer[change] = Sealed((user(change + 1, "said otherwise", change + 1),))
        again, new = origins.import_session(database, ORIGIN, lambda _: newer, lambda: SessionListing(90))
        assert (again, new) == (session, False)
        after = dict(database.query("SELECT seq, id FROM messages"))
        assert {seq for seq, row in after.items() if before.get(seq) == row} >= set(range(1, change + 1))
        assert [g.first.text for g in loading.load_state(database, session).state.ledger.groups] == [
            r.groups[0].first.text for r in newer if isinstance(r, Sealed)
        ]
        while database.index_pending():
            pass
        assert database.check() == []
        assert len(archive.search(database, "otherwise")) == 1


def test_files_in_which_nothing_is_new_are_known(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        bring(database, 2)
        origins.remember_file(database, SessionOrigin("agent:1", "/copy", 5, 5))
        origins.remember_file(database, SessionOrigin("", "/empty", 0, 7))
        assert origins.imported_files(database) == {"/f": (1, 1), "/copy": (5, 5), "/empty": (0, 7)}
        origins.remember_file(database, SessionOrigin("agent:1", "/f", 2, 9))
        assert origins.imported_files(database)["/f"] == (2, 9)
