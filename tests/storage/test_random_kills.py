"""Killed at any moment of writes, deletions, backups and new indexes: what was acknowledged is there, and nothing is damaged."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxchat.storage import inspection, loading, sessions
from ctxchat.storage.database import Database

WORKING = """
import pathlib, random, sys
from ctxchat.core.journal import Sealed
from ctxchat.storage import backups, sessions
from ctxchat.storage.database import Database
from tests.storage.samples import user
chance = random.Random(int(sys.argv[2]))
with Database(pathlib.Path(sys.argv[1])) as database:
    print("ready", flush=True)
    while True:
        rows = sessions.rows(database)
        what = chance.random()
        if what < 0.1 or not rows:
            print("made", sessions.create(database, records=[Sealed((user(1, "the first word"),))]), 1, flush=True)
        elif what < 0.15 and len(rows) > 2:
            gone = chance.choice(rows).id
            print("deleting", gone, 0, flush=True)
            sessions.delete(database, gone)
        elif what < 0.2:
            database.rebuild_index()
        elif what < 0.25:
            backups.make_daily(database, 2, 10**9)
        else:
            row = chance.choice(rows)
            sessions.append(database, row.id, Sealed((user(row.messages + 1, "word " * chance.randrange(2000)),)))
            print("said", row.id, row.messages + 1, flush=True)
"""


def rounds(folder: Path, many: int, seed: int) -> int:
    """So many kills; how many messages had been acknowledged in all."""
    chance, told = random.Random(seed), {}
    total = 0
    for number in range(many):
        with subprocess.Popen(
            [sys.executable, "-c", WORKING, str(folder), str(seed + number)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout and child.stdout.readline() == "ready\n"
            heard = [
                child.stdout.readline() for _ in range(chance.randrange(12))
            ]  # on a slow machine as many as on a quick one
            time.sleep(chance.uniform(0.0, 0.03))
            child.kill()
            for line in [*heard, *child.stdout.read().splitlines(keepends=True)]:
                if line.endswith("\n"):
                    what, session, count = line.split()
                    told[session] = None if what == "deleting" else int(count)
                    total += what == "said"
        with Database(folder) as database:
            known = {row.id for row in sessions.rows(database)}
            for session, count in told.items():
                if count is not None:
                    assert session in known
                    loaded = loading.load_state(database, session)
                    assert not loaded.problems and len(loaded.state.ledger.groups) in {count, count + 1}
            assert known <= {*told} or len(known - {*told}) <= number + 1  # one that was made and not yet told
            assert inspection.inspect(database).faults == ()
            told = {session: count for session, count in told.items() if session in known and count is not None}
            for row in sessions.rows(database):
                told[row.id] = row.messages
    return total


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    assert rounds(tmp_path, 4, 7) > 0


@pytest.mark.long
def test_nothing_acknowledged_is_lost_in_two_hundred_kills(tmp_path: Path) -> None:
    assert rounds(tmp_path, 200, 100) > 600
