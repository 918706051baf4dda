"""A disk that is really full: a small file system of its own, where mounting one is allowed here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxchat.core.errors import StorageError
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from tests.storage.samples import turns

SIZE = 4_000_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def fill(place: Path) -> Path:
    """A file that takes every byte that is left."""
    rest = place / "rest"
    with rest.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    return rest


def test_a_session_can_be_deleted_on_a_full_disk_and_gives_its_room(disk: Path) -> None:
    data = disk / "data"
    with Database(data) as database:
        kept, gone = (sessions.create(database, records=turns(many)) for many in (20, 400))
    fill(disk)
    with Database(data) as database:
        with pytest.raises(StorageError, match="full"):
            sessions.append(database, kept, *turns(900)[60:])
        sessions.delete(database, gone)
        assert [row.id for row in sessions.rows(database)] == [kept]
    with Database(data) as database:
        assert len(loading.load_state(database, kept).state.ledger.messages()) == 80
        assert database.query("SELECT count(*) FROM journal WHERE session = ?", (gone,)) == [(0,)]
        sessions.append(database, kept, *turns(25)[60:])
        assert len(loading.load_state(database, kept).state.ledger.messages()) == 100
        assert database.check() == [] and database.low_disk_warning()


def test_it_can_be_deleted_while_another_has_the_store_open(disk: Path) -> None:
    data = disk / "data"
    code = (
        "import pathlib, sys\nfrom ctxchat.storage import sessions\nfrom ctxchat.storage.database import Database\n"
        "with Database(pathlib.Path(sys.argv[1])) as database:\n"
        "    print(len(sessions.rows(database)), flush=True)\n    sys.stdin.read()\n"
        "    print([row.id for row in sessions.rows(database)])\n"
    )
    with Database(data) as database:
        kept, gone = (sessions.create(database, records=turns(many)) for many in (20, 400))
        with subprocess.Popen(
            [sys.executable, "-c", code, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout and other.stdout.readline() == "2\n"
            fill(disk)
            sessions.delete(database, gone)
            assert other.communicate("")[0].strip() == str([kept])
