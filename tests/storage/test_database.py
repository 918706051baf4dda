from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from ctxchat.core.errors import StorageError
from ctxchat.storage import schema, sessions
from ctxchat.storage.database import FILE, MAX_BACKUPS, Database
from tests.storage.samples import turns

VERSION = len(schema.MIGRATIONS)

POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions are a POSIX matter")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
def test_everything_is_private_and_a_loose_file_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    old = os.umask(0)
    try:
        with Database(folder) as database:
            session = sessions.create(database, records=turns(1))
            with sessions.hold_session(database, session):
                kept = {path: mode(path) for path in folder.rglob("*")}
    finally:
        os.umask(old)
    assert mode(folder) == mode(tmp_path / "new") == 0o700
    assert {mode for path, mode in kept.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in kept.items() if path.is_dir()} == {0o700}
    (folder / FILE).chmod(0o644)
    Database(folder).close()
    assert mode(folder / FILE) == 0o600


@POSIX
def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Database(tmp_path).close()
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("content", [b"this is a letter, not a database" * 40, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StorageError, match="cannot be read as ctxchat's database") as problem:
        Database(tmp_path)
    assert "backups" in problem.value.hint
    assert (tmp_path / FILE).read_bytes() == content


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("CREATE TABLE bookmarks (url)")
    other.commit()
    other.close()
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(StorageError, match="another program"):
        Database(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    Database(tmp_path, migrations=(*schema.MIGRATIONS, ("CREATE TABLE later (x)",))).close()
    with pytest.raises(StorageError, match="newer ctxchat"):
        Database(tmp_path)


def test_a_migration_copies_the_database_first(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        session = sessions.create(database, title="kept", records=turns(2))
        assert database.backups == []
    later = (
        *schema.MIGRATIONS,
        ("ALTER TABLE sessions ADD COLUMN colour TEXT DEFAULT 'blue'",),
        ("CREATE TABLE more (x)",),
    )
    with Database(tmp_path, migrations=later) as database:
        assert database.query("SELECT id, colour FROM sessions") == [(session, "blue")]
        copies = database.backups
    assert [copy.name.split("-")[0] for copy in copies] == [f"v{VERSION}", f"v{VERSION + 1}"]
    assert all(mode(copy) == 0o600 for copy in copies)
    old = sqlite3.connect(copies[0])
    assert old.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert old.execute("SELECT title FROM sessions").fetchone() == ("kept",)
    old.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        sessions.create(database, title="kept")
    broken = (*schema.MIGRATIONS, ("CREATE TABLE half (x)", "CREATE TABLE sessions (x)"))
    for _ in range(MAX_BACKUPS + 2):
        with pytest.raises(StorageError):
            Database(tmp_path, migrations=broken)
    with Database(tmp_path) as database:
        assert [row.title for row in sessions.rows(database)] == ["kept"]
        assert database.query("SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]
    assert len(list((tmp_path / "backups").iterdir())) <= MAX_BACKUPS


MIGRATING = """
import pathlib, sys
from ctxchat.storage import schema
from ctxchat.storage.database import Database
steps = ["CREATE TABLE later (x)"] + ["INSERT INTO later SELECT body FROM journal"] * 40 + ["DROP TABLE partials"]
print("ready", flush=True)
Database(pathlib.Path(sys.argv[1]), migrations=(*schema.MIGRATIONS, steps))
"""


@POSIX
def test_kill_9_in_the_middle_of_a_migration_leaves_old_or_new(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        session = sessions.create(database, records=turns(300))
    later = (*schema.MIGRATIONS, ("DROP TABLE partials",))
    for wait in (0.0, 0.01, 0.02, 0.03, 0.05, 0.08):
        child = subprocess.Popen([sys.executable, "-c", MIGRATING, tmp_path], stdout=subprocess.PIPE)
        assert child.stdout
        child.stdout.readline()
        time.sleep(wait)
        child.kill()
        child.wait()
        child.stdout.close()
        file = sqlite3.connect(tmp_path / FILE)
        version = file.execute("PRAGMA user_version").fetchone()[0]
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
        file.close()
        assert version == VERSION + ("later" in tables)
        assert ("partials" in tables) == (version == VERSION)
    with Database(tmp_path, migrations=later) as database:
        assert sessions.row(database, session).messages == 1200
        assert database.check() == []


def test_a_full_disk_is_told_and_changes_nothing(database: Database) -> None:
    session = sessions.create(database, records=turns(1))
    pages = database.query("PRAGMA page_count")[0][0]
    database.query(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="full") as problem:
        sessions.append(database, session, *turns(400)[3:])
    assert "Free some space" in problem.value.hint
    database.query("PRAGMA max_page_count = 1000000")
    assert sessions.row(database, session).messages == 4
    assert database.check() == []
    sessions.append(database, session, *turns(2)[3:])
    assert sessions.row(database, session).messages == 8


@POSIX
def test_where_no_file_may_grow_what_is_there_is_read_until_there_is_room_again(tmp_path: Path) -> None:
    code = (
        "import pathlib, resource, sys\n"
        "from ctxchat.storage import sessions\n"
        "from ctxchat.storage.database import Database\n"
        "from ctxchat.core.errors import StorageError\n"
        "most = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1, most[1]))  # as on a full disk\n"
        "with Database(pathlib.Path(sys.argv[1])) as database:\n"
        "    before = database.path.read_bytes()\n"
        "    print([row.messages for row in sessions.rows(database)])\n"
        "    try: sessions.create(database)\n"
        "    except StorageError as problem: print('Nothing was changed' in problem.hint)\n"
        "    print(database.path.read_bytes() == before)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, most)\n"
        "    sessions.create(database)\n"
        "    with Database(database.folder) as other: print(len(sessions.rows(other)))\n"
    )
    with Database(tmp_path) as database:
        sessions.create(database, records=turns(1))
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["[4]", "True", "True", "2"], done.stderr
    with Database(tmp_path) as database:
        assert database.check() == []


READING = """
import filelock, os, pathlib, snowballstemmer, sys
from ctxchat.core.errors import StorageError
from ctxchat.storage import loading, schema, search, sessions
from ctxchat.storage.database import Database
os.geteuid() or os.seteuid(65534)  # root may write anywhere
with Database(pathlib.Path(sys.argv[1])) as database:
    (session,) = [row.id for row in sessions.rows(database)]
    print(len(loading.load_state(database, session).state.ledger.messages()), len(search.search(database, "harbour")))
    print(database.check(), bool(database.only_read))
    try: sessions.rename(database, session, "x")
    except StorageError as problem: print(problem)
"""


@POSIX
@pytest.mark.parametrize("left", ["closed", "killed", "older"])
def test_in_a_read_only_folder_everything_can_be_read_and_nothing_written(left: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        data = Path(base) / "data"
        with Database(data, migrations=schema.MIGRATIONS[: 5 if left == "older" else None]) as database:
            session = sessions.create(database, records=turns(2))
            log = data / f"{FILE}-wal"
            kept = {path: path.read_bytes() for path in data.glob("*-wal")} if left == "killed" else {}
        for path, content in kept.items():
            path.write_bytes(content)
        assert log.exists() == (left == "killed")
        (data / "sessions" / session).mkdir(parents=True)
        before = {path: path.read_bytes() for path in data.glob("*.db*")}
        for path in (*before, data, data / "sessions", data / "sessions" / session):
            path.chmod(0o555 if path.is_dir() else 0o444)
        Path(base).chmod(0o755)
        done = subprocess.run([sys.executable, "-c", READING, data], capture_output=True, text=True, check=False)
        found = {path: path.read_bytes() for path in data.glob("*.db*")}
        for path in (data, data / "sessions", data / "sessions" / session):
            path.chmod(0o755)
        assert done.stdout.splitlines()[:2] == ["8 2", "[] True"], done.stderr
        assert "cannot be opened for writing" in done.stdout and "CTXCHAT_DATA_DIR" in done.stdout
        assert found == before


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("hello")
    with pytest.raises(StorageError):
        Database(tmp_path / "data")
    assert (tmp_path / "data").read_text() == "hello"


def test_two_that_start_at_once_both_come_up(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def start() -> None:
        try:
            with Database(tmp_path) as database:
                sessions.create(database, title="x")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Database(tmp_path) as database:
        assert len(sessions.rows(database)) == 6


async def test_what_was_asked_for_happens_in_order_even_when_nobody_waits(database: Database) -> None:
    done: list[int] = []
    started = threading.Event()
    go = threading.Event()

    def first() -> None:
        started.set()
        go.wait(10)
        done.append(1)

    waiting = asyncio.create_task(database.run(first))
    later = asyncio.create_task(database.run(done.append, 2))
    await asyncio.to_thread(started.wait, 10)
    waiting.cancel()
    later.cancel()
    go.set()
    await database.run(done.append, 3)
    assert done == [1, 2, 3]


def test_an_index_that_is_well_is_not_made_anew(tmp_path: Path) -> None:
    for number in range(3):
        with Database(tmp_path) as database:
            assert database.fts
            sessions.create(database, title=str(number), records=turns(2))
            assert [file.name for file in tmp_path.glob("index-*.db")] == ["index-1.db"]
