"""Copies of the store: once a day, whole, few, private; and the way back, which loses nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.storage import backups, loading, sessions
from ctxchat.storage.database import FILE, Database
from tests.storage.samples import turns

MUCH = 10**9
DAY = 86_400


def aged(folder: Path, seconds: float) -> None:
    for path in (folder / "backups").glob("daily-*.db"):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_one_a_day_when_something_changed(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        assert not backups.is_due(database, 3)  # there is nothing in it
        session = sessions.create(database, records=turns(3))
        assert backups.is_due(database, 3) and not backups.is_due(database, 0)
        copy = backups.make_daily(database, 3, MUCH)
        assert copy and copy.stat().st_mode & 0o077 == 0
        assert not backups.is_due(database, 3)
        sessions.append(database, session, *turns(4)[-3:])
        assert not backups.is_due(database, 3)
        aged(tmp_path, DAY + 1)
        assert backups.is_due(database, 3)
        backups.make_daily(database, 3, MUCH)
        now = time.time() + 2 * DAY  # the clock is set back by two days
        newest = max((tmp_path / "backups").glob("daily-*"), key=lambda p: p.name)
        os.utime(newest, (now, now))
        sessions.append(database, session, *turns(5)[-3:])
        assert [row.kind for row in backups.list_backups(tmp_path)] == ["daily", "daily"]


def test_few_are_kept_and_a_damaged_store_pushes_none_out(tmp_path: Path) -> None:
    stamps = iter(f"2026-01-{n:02}T03:04:05.000Z" for n in range(1, 30))
    with Database(tmp_path, now=lambda: next(stamps)) as database:
        sessions.create(database, records=turns(3))
        names = [copy.name for _ in range(4) if (copy := backups.make_daily(database, 2, MUCH))]
        assert [row.name for row in backups.list_backups(tmp_path)] == [names[3], names[2]]
        assert backups.make_daily(database, 2, 1000) is None
        assert backups.make_daily(database, 3, int(database.path.stat().st_size * 1.5))
        assert len(backups.list_backups(tmp_path)) == 1
    clean = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(clean[:8192] + b"\xa5" * 4096 + clean[12288:])
    with Database(tmp_path) as database:
        assert backups.make_daily(database, 1, MUCH) is None
    assert len(list((tmp_path / "backups").iterdir())) == 1


def test_one_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        sessions.create(database, records=turns(200))
        stop = threading.Event()
        stop.set()
        with pytest.raises(backups.Stopped):
            backups.make_daily(database, 3, MUCH, stop)
        assert list((tmp_path / "backups").iterdir()) == []


def test_the_way_back_keeps_what_is_there(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        old = sessions.create(database, title="old", records=turns(3))
        copy = backups.make_daily(database, 3, MUCH)
        sessions.append(database, old, *turns(5)[-6:])
        new = sessions.create(database, title="new", records=turns(2))
        assert copy
        with pytest.raises(StorageError, match="in use"):
            backups.restore(tmp_path, copy.name)
    shutil.copyfile(copy, tmp_path / "aside.db")
    for crafted in ("", "../aside.db", str(tmp_path / "aside.db"), f"../backups/{copy.name}", "/etc/passwd"):
        with pytest.raises(UsageError, match="no backup"):
            backups.restore(tmp_path, crafted)
    kept, missing = backups.restore(tmp_path, copy.name)
    assert missing == ["new"]
    with Database(tmp_path) as database:
        assert [row.id for row in sessions.rows(database)] == [old]
        assert len(loading.load_state(database, old).state.ledger.messages()) == 12
        assert database.check() == []
    kept_again, _ = backups.restore(tmp_path, kept.name)
    assert kept_again != kept
    with Database(tmp_path) as database:
        assert {row.id for row in sessions.rows(database)} == {old, new}
        assert len(loading.load_state(database, old).state.ledger.messages()) == 20


def test_a_damaged_or_foreign_copy_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        sessions.create(database, records=turns(3))
        copy = backups.make_daily(database, 3, MUCH)
        assert copy
    before = (tmp_path / FILE).read_bytes()
    copy.write_bytes(copy.read_bytes()[:8192] + b"\xa5" * 4096 + copy.read_bytes()[12288:])
    with pytest.raises(StorageError):
        backups.restore(tmp_path, copy.name)
    other = copy.with_name("daily-other.db")
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE bookmarks (url)")
    with pytest.raises(StorageError, match="another program"):
        backups.restore(tmp_path, other.name)
    assert (tmp_path / FILE).read_bytes() == before
