"""One writer a session: other windows are told, and a kill loses nothing that was acknowledged."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxchat.core.errors import SessionBusy, StorageError
from ctxchat.core.journal import (
    Named,
)
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import begin_journal, open_journal
from tests.storage.samples import turns


def test_a_new_session_is_held_before_anyone_can_see_it(tmp_path: Path) -> None:
    with Database(tmp_path / "data") as database, Database(tmp_path / "data") as other:
        held: list[bool] = []

        def look(session: str) -> None:
            """As `begin_journal` does it, with a look from outside right after."""
            assert not sessions.rows(other)
            held.append(True)

        sessions.create(database, unseen=look)
        assert held == [True]
        opened = begin_journal(database, "x", "/w")
        with pytest.raises(SessionBusy):
            open_journal(other, opened.journal.session)


def test_a_new_session_that_cannot_be_held_is_none(tmp_path: Path) -> None:
    with Database(tmp_path / "data") as database:
        (tmp_path / "data" / "sessions").write_text("a file where the folder should be")
        with pytest.raises(StorageError):
            begin_journal(database, "x", "/w")
        assert not sessions.rows(database)


async def test_a_second_window_is_told_and_may_read(database: Database) -> None:
    session = sessions.create(database, records=turns(1))
    other_session = sessions.create(database, records=turns(1))
    first = open_journal(database, session).journal
    with Database(database.folder) as other:
        with pytest.raises(SessionBusy, match=session):
            open_journal(other, session)
        for forbidden in (lambda: sessions.delete(other, session), lambda: sessions.rename(other, session, "x")):
            with pytest.raises(SessionBusy):
                forbidden()
        assert len(loading.load_state(other, session).state.ledger.messages()) == 4
        sessions.rename(other, other_session, "mine")
        await first.close()
        second = open_journal(other, session).journal
        await second.write(Named("second"))
        await second.close()
    assert loading.load_state(database, session).state.title == "second"


CHILD = """
import asyncio, pathlib, sys
from ctxchat.core.journal import Partial, CompactionBegun, Sealed
from ctxchat.core.messages import Message, ToolCall
from ctxchat.storage.database import Database
from ctxchat.storage.journal import open_journal
from tests.storage.samples import compaction, round_of, user

async def main():
    database = Database(pathlib.Path(sys.argv[1]))
    opened = open_journal(database, sys.argv[2])
    journal, seq = opened.journal, opened.state.ledger.next_seq
    print("ready", flush=True)
    while True:
        await journal.write(Sealed((user(seq, "question " * 50, seq),)))
        print(f"g{seq}", flush=True)
        await journal.keep(Partial(Message(seq + 1, "assistant", "half " * 50), turn=seq))
        await journal.write(Sealed((round_of(seq + 1, "result " * 50, seq),)))
        print(f"g{seq + 1}", flush=True)
        await journal.write(CompactionBegun(f"c{seq}"))
        await journal.write(compaction(f"c{seq}", f"g{seq + 1}"))
        print(f"c{seq}", flush=True)
        seq += 3

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a POSIX matter")
def test_kill_9_in_the_middle_of_writing_loses_nothing_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(3)
    with Database(tmp_path) as database:
        session = sessions.create(database, records=turns(1))  # one in which nothing was said would go with its journal
        acknowledged: set[str] = set()
        for _ in range(8):
            child = subprocess.Popen(
                [sys.executable, "-c", CHILD, tmp_path, session], stdout=subprocess.PIPE, text=True
            )
            assert child.stdout and child.stdout.readline() == "ready\n"
            with pytest.raises(SessionBusy):
                open_journal(database, session)
            acknowledged |= {child.stdout.readline().strip() for _ in range(3)}  # however slow the machine
            time.sleep(chance.uniform(0, 0.12))
            child.send_signal(signal.SIGKILL)
            acknowledged |= {
                line.strip() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")
            }
            child.wait()
            child.stdout.close()
            opened = open_journal(database, session)  # the lock died with its process
            state = opened.state
            ids = {g.id for g in state.ledger.groups} | {c.id for c in state.ledger.changes}
            assert acknowledged <= ids
            assert state.skipped == ()
            assert loading.load_state(database, session).state == state
            assert {p.outcome for p in state.compactions} <= {"compacted", "failed"}
            asyncio.run(opened.journal.close())
        assert len(acknowledged) > 20
        assert database.check() == []


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a POSIX matter")
def test_two_processes_write_two_sessions_at_once(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        both = [sessions.create(database) for _ in range(2)]
        children = [
            subprocess.Popen([sys.executable, "-c", CHILD, tmp_path, session], stdout=subprocess.PIPE, text=True)
            for session in both
        ]
        said: list[set[str]] = []
        for child in children:
            assert child.stdout
            said.append({child.stdout.readline().strip() for _ in range(60)})
        for child, lines in zip(children, said, strict=True):
            child.kill()
            assert child.stdout
            lines |= {line.strip() for line in child.stdout if line.endswith("\n")}
            child.wait()
            child.stdout.close()
        for session, lines in zip(both, said, strict=True):
            state = loading.load_state(database, session).state
            ids = {g.id for g in state.ledger.groups} | {c.id for c in state.ledger.changes}
            assert lines - {"ready"} <= ids
        assert database.check() == []


def open_and_close_elsewhere(folder: Path) -> None:
    """As a command does that runs beside an open window."""
    code = "import pathlib, sys; from ctxchat.storage.database import Database; Database(pathlib.Path(sys.argv[1])).close()"
    subprocess.run([sys.executable, "-c", code, folder], check=True, timeout=60)


def test_opened_twice_in_one_process_it_keeps_its_log_when_another_process_ends(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        Database(tmp_path).close()
        open_and_close_elsewhere(tmp_path)
        database.remember("said", "hello")
        with Database(tmp_path) as again:
            assert again.remembered("said") == "hello"
