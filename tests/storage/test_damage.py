"""Damage in the store costs what is damaged, and nothing else."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Named, Sealed
from ctxchat.storage import inspection, loading, private_files, repair, schema, sessions
from ctxchat.storage.database import FILE, Database
from ctxchat.storage.journal import open_journal
from ctxchat.storage.search import search
from ctxchat.storage.session_files import attach
from tests.storage.samples import compaction, turns, user


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b'{"type":"from the future"}', b'{"type":"sealed","groups":[{"id":1}]}', "text", 7, None],
)
def test_a_damaged_entry_costs_itself_and_is_named(tmp_path: Path, body: object) -> None:
    with Database(tmp_path) as database:
        session = sessions.create(database, records=[*turns(3), compaction("c1", "g1", "g2", "g4"), Named("title")])
        with database.transaction() as connection:
            if body is None:
                connection.execute("DELETE FROM journal WHERE seq = 5")
            else:
                connection.execute("UPDATE journal SET body = ? WHERE seq = 5", (body,))
        loaded = loading.load_state(database, session)
        assert loaded.state.title == "title"
        assert len(loaded.state.ledger.compactions) == 1
        assert (body is None) or "entry 5" in loaded.problems[0]
        kept = [g.id for g in loaded.state.ledger.groups if g.id != "g6"]
        assert kept == ["g1", "g2", "g4", "g5", "g8", "g9", "g10", "g12"]
        opened = open_journal(database, session)
        assert opened.state == loaded.state
        asyncio.run(opened.journal.close())


def test_the_words_of_a_damaged_entry_come_back_from_the_index(database: Database) -> None:
    session = sessions.create(
        database, records=[*turns(40), compaction("c1", *(g.id for r in turns(20) for g in r.groups))]
    )
    with database.transaction() as connection:
        connection.execute("UPDATE journal SET body = '!' WHERE seq IN (1, 2)")
    state = loading.load_state(database, session).state
    question = state.ledger.groups[0]
    assert (question.id, question.kind, question.first.text) == ("g1", "user", "question 1 about harbour 7")
    assert "contents 1 of the tide gauge" in state.ledger.groups[1].first.text
    assert len(state.ledger.compactions[0].edits[0].covers) == 60


def test_a_bad_page_costs_what_is_on_it(tmp_path: Path) -> None:
    """Overwrites pages of the file itself, one at a time; whatever is readable is still there."""
    with Database(tmp_path) as database:
        session = sessions.create(database, records=turns(150))
        database.query("PRAGMA wal_checkpoint(TRUNCATE)")
        size = database.query("PRAGMA page_size")[0][0]
        leaves = [page for page, kind in _journal_pages(database) if kind == "leaf"]
    clean = (tmp_path / "ctxchat.db").read_bytes()
    for page in leaves[:3]:
        (tmp_path / "ctxchat.db").write_bytes(clean[: (page - 1) * size] + b"\xa5" * size + clean[page * size :])
        with Database(tmp_path) as database:
            loaded = loading.load_state(database, session)
            assert 500 < len(loaded.state.ledger.messages()) <= 600
            assert loaded.problems
            assert database.check() != []


@pytest.mark.parametrize("table", ["journal", "messages", "groups"])
def test_a_session_on_a_bad_page_is_deleted_and_the_others_are_whole(tmp_path: Path, table: str) -> None:
    with Database(tmp_path) as database:
        first, bad, last = (sessions.create(database, records=turns(n)) for n in (40, 150, 40))
        image = private_files.session_folder(tmp_path, bad) / attach(
            private_files.session_folder(tmp_path, bad), "shot.png", b"x"
        )
        database.query("PRAGMA wal_checkpoint(TRUNCATE)")
        size = database.query("PRAGMA page_size")[0][0]
        leaves = [page for page, kind in _pages(database, table) if kind == "leaf"]
    page, clean = leaves[len(leaves) // 2], (tmp_path / "ctxchat.db").read_bytes()
    (tmp_path / "ctxchat.db").write_bytes(clean[: (page - 1) * size] + b"\xa5" * size + clean[page * size :])
    with Database(tmp_path) as database:
        assert image.exists()
        sessions.delete(database, bad)
        assert not image.exists(), "its rows resist, its files do not"
        assert [row.id for row in sessions.rows(database)] == [last, first]
        assert sessions.latest(database) == last
        for session in (first, last):
            loaded = loading.load_state(database, session)
            assert len(loaded.state.ledger.messages()) == 160 and not loaded.problems


@pytest.mark.parametrize("fill", ["noise", "zeros", "empty"])
@pytest.mark.parametrize("first", ["write", "delete", "begin"])
def test_a_bad_page_of_the_index_costs_no_word(tmp_path: Path, first: str, fill: str) -> None:
    """Every page of the index in turn."""
    session, other, file, clean = _two_sessions(tmp_path)
    size = int.from_bytes(clean[16:18], "big")
    empty = b"\x0d" + bytes(4) + size.to_bytes(2, "big")
    bad = {"noise": b"\xa5" * size, "zeros": bytes(size), "empty": empty.ljust(size, b"\0")}[fill]
    said = Sealed((user(500, "the lighthouse keeper"),))
    data = (tmp_path / "ctxchat.db").read_bytes()
    for page in range(1, len(clean) // size + 1):
        (tmp_path / "ctxchat.db").write_bytes(data)
        _only(file).write_bytes(clean[: (page - 1) * size] + bad + clean[page * size :])
        with Database(tmp_path) as database:
            if first == "delete":
                sessions.delete(database, other)
            if first == "begin":
                begun = sessions.create(database, records=(record for record in [said]))
                assert len(loading.load_state(database, begun).state.ledger.groups) == 1
            sessions.append(database, session, said)
            sessions.append(database, session, Named("title"))
        with Database(tmp_path) as database:
            assert database.fts
            loaded = loading.load_state(database, session)
            assert not loaded.problems and loaded.state.title == "title"
            assert [g.id for g in loaded.state.ledger.groups] == [*(g.id for r in turns(60) for g in r.groups), "g500"]
            assert database.query("SELECT count(*) FROM messages WHERE session = ?", (session,)) == [(241,)]
            assert search(database, "lighthouse keeper", session)[0].message == "m500"
            assert len(search(database, "question", limit=500)) == (60 if first == "delete" else 80)
            assert [problem for problem in database.check() if "index" not in problem] == []
            assert database.check() == [] and database.query("PRAGMA integrity_check") == [("ok",)]


def test_doctor_mends_a_bad_page_of_the_index_that_nobody_has_come_upon(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        sessions.create(database, records=turns(300))
    file = next(tmp_path.glob("index-*.db"))
    clean, data = file.read_bytes(), (tmp_path / "ctxchat.db").read_bytes()
    size = int.from_bytes(clean[16:18], "big")
    assert len(clean) > 5 * size
    for page in range(2, len(clean) // size + 1, 3):
        (tmp_path / "ctxchat.db").write_bytes(data)
        _only(file).write_bytes(clean[: (page - 1) * size] + b"\xa5" * size + clean[page * size :])
        with Database(tmp_path) as database:
            assert [problem for problem in database.check() if "made anew" not in problem] == []
            assert database.check() == [] and len(search(database, "question 300")) > 0


def test_the_index_among_the_tables_of_the_journal_moves_out(tmp_path: Path) -> None:
    old = tmp_path / "old"
    with Database(old, migrations=schema.MIGRATIONS[:5], full_text=False) as database:
        session = sessions.create(database, records=turns(60))
        with database.transaction() as connection:
            connection.execute("CREATE VIRTUAL TABLE main.search USING fts5(words, content='')")
            connection.execute("INSERT INTO main.search (rowid, words) SELECT id, text FROM messages")
        database.query("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = [page for page, _ in _pages(database, "search_data")]
        node = next(page for page, kind in _journal_pages(database) if kind == "internal")
    clean = (old / "ctxchat.db").read_bytes()
    size = int.from_bytes(clean[16:18], "big")
    stray = clean[(node - 1) * size : node * size]
    for number, page in enumerate(
        [None, *pages]
    ):  # a node of the journal in its place: to drop it would free the journal
        bad = clean if page is None else clean[: (page - 1) * size] + stray + clean[page * size :]
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "ctxchat.db").write_bytes(bad)
        with Database(tmp_path / str(number)) as database:
            assert database.fts and database.backups
            assert database.query("SELECT count(*) FROM main.sqlite_master WHERE name LIKE 'search%'") == [(0,)]
            assert len(search(database, "question", limit=99)) == 60
            sessions.append(database, session, *turns(62)[-6:])
            loaded = loading.load_state(database, session)
            assert not loaded.problems and len(loaded.state.ledger.messages()) == 248
            assert database.check() == []


def test_others_who_have_the_store_open_see_the_index_made_anew(tmp_path: Path) -> None:
    session, other, file, clean = _two_sessions(tmp_path)
    data = (tmp_path / "ctxchat.db").read_bytes()
    size = int.from_bytes(clean[16:18], "big")
    for page in range(1, len(clean) // size + 1):
        (tmp_path / "ctxchat.db").write_bytes(data)
        _only(file).write_bytes(clean[: (page - 1) * size] + b"\xa5" * size + clean[page * size :])
        with Database(tmp_path) as one, Database(tmp_path) as two:
            sessions.rows(two)
            sessions.append(one, session, Sealed((user(500, "the lighthouse keeper"),)))
            sessions.append(two, other, Sealed((user(501, "the lighthouse lamp"),)))
            sessions.append(one, session, Sealed((user(502, "the lighthouse stairs"),)))
            for database in (one, two):
                assert database.fts
                assert {hit.message for hit in search(database, "lighthouse")} == {"m500", "m501", "m502"}
                assert [problem for problem in database.check() if "index" not in problem] == []


def _two_sessions(folder: Path) -> tuple[str, str, Path, bytes]:
    """Of sixty and of twenty turns, the file of their index and what is in it."""
    with Database(folder) as database:
        first, second = (sessions.create(database, records=turns(n)) for n in (60, 20))
    file = next(folder.glob("index-*.db"))
    return first, second, file, file.read_bytes()


def _only(file: Path) -> Path:
    """The place for the file of an index, with no newer one beside it."""
    for other in file.parent.glob("index-*.db*"):
        other.unlink()
    return file


def _journal_pages(database: Database) -> list[tuple[int, str]]:
    return _pages(database, "journal")


def _pages(database: Database, table: str) -> list[tuple[int, str]]:
    try:
        return [(p, k) for p, k in database.query("SELECT pageno, pagetype FROM dbstat WHERE name = ?", (table,))]
    except StorageError:
        pytest.skip("this SQLite has no dbstat")


@pytest.mark.parametrize("left", ["nothing", "half", "zeros"])
def test_writes_that_went_with_the_log_are_told(tmp_path: Path, left: str) -> None:
    """The log of the database gone or cut short: what is left is well, and older than the index."""
    data = tmp_path / "cut"
    with Database(tmp_path / "whole") as database:
        session = sessions.create(database, records=turns(2))
        database.query("PRAGMA wal_checkpoint(TRUNCATE)")
        log = database.path.with_name(f"{database.path.name}-wal")
        for seq in (9, 10, 11):
            sessions.append(database, session, Sealed((user(seq, "more of the harbour"),)))
        shutil.copytree(tmp_path / "whole", data, ignore=shutil.ignore_patterns("*-shm"))
        content = log.read_bytes()
        cut = {"nothing": b"", "half": content[: len(content) // 2], "zeros": bytes(len(content))}[left]
        (data / log.name).write_bytes(cut)
    with Database(tmp_path / "whole") as database:
        assert not database.missing_writes()
    for _ in range(2):
        with Database(data) as database:
            assert len(loading.load_state(database, session).state.ledger.messages()) < 11
            (told,) = database.missing_writes()
            assert "what was written last is missing" in told and "writes or more" in told
            assert told in [fault.what for fault in inspection.inspect(database).faults]
    repair.repair(data)
    with Database(data) as database:
        assert not database.missing_writes() and not inspection.inspect(database).faults, "who repaired it was told"


def test_a_row_that_only_a_damaged_index_names_keeps_no_store_from_opening(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        session = sessions.create(database, records=turns(1))
    index = ("SELECT * FROM sqlite_master WHERE name = 'messages_by_seq'",)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        (row,) = raw.execute(*index).fetchall()
        raw.execute("DELETE FROM sqlite_master WHERE name = 'messages_by_seq'")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as raw:  # which knows no index
        for table in ("messages", "journal", "sessions"):
            raw.execute(f"DELETE FROM {table}")
        raw.execute("INSERT INTO doomed VALUES (?)", (session,))
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
    opening = "import sys, pathlib; from ctxchat.storage.database import Database; Database(pathlib.Path(sys.argv[1])).close()"
    subprocess.run([sys.executable, "-c", opening, tmp_path], check=True, timeout=60)
