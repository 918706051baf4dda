from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.errors import CtxchatError, StorageError, UsageError
from ctxchat.core.events import Usage
from ctxchat.core.grouping import single
from ctxchat.core.head import Head, ToolSpec
from ctxchat.core.journal import CompactionBegun, HeadSet, Measured, Named, Partial, Sealed, Undone
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from ctxchat.storage import archive, loading, private_files, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import begin_journal, open_journal
from tests.storage.samples import compaction, turns


def test_ids_sort_by_age() -> None:
    stamps = [
        f"20{year}-03-0{day}T10:00:0{second}.000Z" for year in (24, 26, 58) for day in (1, 2) for second in (0, 1)
    ]
    ids = [sessions.new_id(at) for at in stamps]
    assert ids == sorted(ids)
    assert {len(id) for id in ids} == {12}
    assert len({sessions.new_id(stamps[0]) for _ in range(100)}) > 90


def test_the_last_session_of_a_folder_is_one_that_a_person_had_there(database: Database) -> None:
    here = sessions.create(database, folder="/here")
    there = sessions.create(database, folder="/there")
    sessions.append(database, there, *turns(1))
    task = sessions.create(database, folder="/here", parent=here, delegated=True)
    sessions.append(database, task, *turns(1))
    assert sessions.row(database, task).delegated
    assert sessions.latest(database) == there
    assert sessions.latest(database, "/here") == here
    assert sessions.latest(database, "/elsewhere") == ""
    brought = sessions.create(database, records=turns(1))  # an import: nobody knows its folder
    assert sessions.latest(database, "/here") == sessions.latest(database, "/elsewhere") == brought
    assert sessions.row(database, sessions.fork(database, here)).folder == "/here"


def test_a_clock_that_was_set_back_does_not_change_which_session_was_used_last(tmp_path: Path) -> None:
    times = iter(f"2026-11-{day:02d}T10:00:00.000Z" for day in range(30, 0, -1))
    with Database(tmp_path, now=lambda: next(times)) as database:
        first = sessions.create(database, folder="/here", records=turns(1))
        second = sessions.create(database, folder="/here", records=turns(1))
        assert sessions.latest(database, "/here") == sessions.rows(database)[0].id == second
        sessions.append(database, first, *turns(1))
        assert sessions.latest(database, "/here") == sessions.rows(database)[0].id == first
        sessions.create(database, folder="/here")  # a window in which nothing was said
        assert sessions.latest(database, "/here") == first


def test_the_list_says_what_the_sessions_are(database: Database) -> None:
    assert sessions.rows(database) == []
    assert sessions.latest(database) == ""
    first = sessions.create(database, records=turns(2))
    second = sessions.create(database, model="gpt", records=[*turns(3), compaction("c1", "g1"), Named("named")])
    (top, below) = sessions.rows(database)
    assert (top.id, top.title, top.messages, top.model, top.compactions, top.parent) == (
        second,
        "named",
        12,
        "gpt",
        1,
        "",
    )
    assert (below.id, below.title, below.messages) == (first, "question 1 about harbour 7", 8)
    assert sessions.latest(database) == second
    sessions.rename(database, first, "  two\nlines ")
    assert sessions.rows(database)[0].title == "two lines"
    assert loading.load_state(database, first).state.title == "two lines"
    sessions.append(database, second, Undone("c1"))
    assert sessions.row(database, second).compactions == 0


def test_what_a_session_holds_is_told_before_any_reply_and_after_a_pass(database: Database) -> None:
    held = sessions.create(database, records=turns(40))
    row = sessions.row(database, held)
    assert row.estimated and row.used > 40 * 4
    fork = sessions.fork(database, held)
    assert (sessions.row(database, fork).used, sessions.row(database, fork).estimated) == (row.used, True)
    change = compaction("c1", "g1")
    sessions.append(database, held, change)
    assert sessions.row(database, held).used == 200
    sessions.append(database, held, Undone("c1"))
    assert sessions.row(database, held).used == 1000
    sessions.append(database, held, change)
    row = sessions.row(database, held)
    assert (row.used, row.estimated, row.compactions) == (200, True, 1)


def test_a_unique_beginning_is_enough(database: Database) -> None:
    ids = [sessions.create(database) for _ in range(3)]
    assert [sessions.find_session(database, id) for id in ids] == ids
    assert sessions.find_session(database, f" {ids[0].upper()} ") == ids[0]
    with pytest.raises(UsageError, match="several"):
        sessions.find_session(database, "0")
    with pytest.raises(UsageError, match="no session 'zzzz'"):
        sessions.find_session(database, "zzzz")


CRAFTED = ["", "../../x", "..", "/etc", "0" * 13, "%", "_", "0' OR 1", "a/b", "a\0b", "..\\x", "\u202e", "AAAAAAAAAAA!"]


@pytest.mark.parametrize("crafted", CRAFTED)
def test_crafted_ids_go_nowhere(database: Database, tmp_path: Path, crafted: str) -> None:
    kept = sessions.create(database, records=turns(1))
    before = sorted(tmp_path.rglob("*"))
    for verb in (sessions.find_session, sessions.delete, sessions.fork, open_journal, sessions.row):
        with pytest.raises(CtxchatError):
            verb(database, crafted)
    with pytest.raises(CtxchatError):
        sessions.rename(database, crafted, "x")
    assert sorted(tmp_path.rglob("*")) == before
    assert sessions.row(database, kept).messages == 4


async def test_deleting_takes_what_belongs_to_it_and_nothing_else(database: Database, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("mine")
    other = sessions.create(database, records=[*turns(2), compaction("c1", "g1")])
    session = sessions.create(database, records=[*turns(2), compaction("c1", "g1")])
    for id in (session, other):
        journal = open_journal(database, id).journal
        await journal.spill("m1.txt", "large")
        await journal.keep(Partial(Message(99, "assistant", "half")))
        await journal.close()
    folder = database.folder / "sessions" / session
    (folder / "link").symlink_to(outside, target_is_directory=True)
    (folder / "tool-results" / "file-link").symlink_to(outside / "precious.txt")
    sessions.delete(database, session)
    assert not folder.exists()
    assert (outside / "precious.txt").read_text() == "mine"
    assert [row.id for row in sessions.rows(database)] == [other]
    for table in ("journal", "groups", "messages", "compactions", "covers", "partials"):
        assert database.query(f"SELECT DISTINCT session FROM {table}") == [(other,)]
    assert {hit.session for hit in archive.search(database, "harbour")} == {other}
    assert (database.folder / "sessions" / other / "tool-results/m1.txt").read_text() == "large"
    with pytest.raises(StorageError):
        sessions.delete(database, session)
    assert database.query("SELECT * FROM doomed") == []


def test_a_link_in_place_of_a_sessions_folder_is_not_followed(database: Database, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("mine")
    session = sessions.create(database, records=turns(1))
    (database.folder / "sessions").mkdir(exist_ok=True)
    (database.folder / "sessions" / session).symlink_to(outside, target_is_directory=True)
    with pytest.raises(StorageError, match="link"):
        open_journal(database, session)
    with pytest.raises(StorageError, match="link"):
        sessions.delete(database, session)
    assert [p.name for p in outside.iterdir()] == ["precious.txt"]


def test_a_folder_that_was_left_over_goes_at_the_next_start(database: Database) -> None:
    session = sessions.create(database, records=turns(1))
    folder = database.folder / "sessions" / session
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_text("x")
    with database.transaction() as connection:  # as a kill between rows and files leaves it
        connection.execute("INSERT INTO doomed VALUES (?)", (session,))
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
    Database(database.folder).close()
    assert not folder.exists()


def test_a_folder_nested_without_end_stops_no_start(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        session = sessions.create(database)
        folder = private_files.private_folder(private_files.session_folder(database.folder, session))
        deep = os.open(folder, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=deep)
            deep, above = os.open("d", os.O_RDONLY, dir_fd=deep), deep
            os.close(above)
        os.close(deep)
        sessions.delete(database, session)
    try:
        with Database(tmp_path) as database:
            assert sessions.rows(database) == []
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)


async def test_writing_to_a_session_deleted_elsewhere_is_told(database: Database) -> None:
    session = sessions.create(database)
    journal = open_journal(database, session).journal
    with database.transaction() as connection:
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
    with pytest.raises(StorageError, match="deleted elsewhere"):
        await journal.write(*turns(1))
    with pytest.raises(StorageError, match="deleted elsewhere"):
        await journal.keep(Partial(Message(1, "assistant", "x")))


# ── forks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_fork_is_equal_and_goes_its_own_way(database: Database) -> None:
    records = [*turns(3), compaction("c1", "g1", "g2"), Named("first")]
    session = sessions.create(database, title="first", records=records)
    journal = open_journal(database, session).journal
    path = await journal.spill("m3.txt", "large")
    await journal.keep(Partial(Message(13, "assistant", "half"), turn=3))
    await journal.close()
    fork = sessions.fork(database, session)
    assert sessions.row(database, fork).parent == session
    state = msgspec.structs.replace(loading.load_state(database, session).state, title="Branch of first")
    assert loading.load_state(database, fork).state == state and sessions.row(database, fork).title == state.title
    assert sessions.row(database, sessions.fork(database, fork)).title == "Branch 2 of first"
    sessions.delete(database, session)
    assert (database.folder / "sessions" / fork / path).read_text() == "large"
    assert archive.load_compaction(database, "c1").session == fork


def test_a_fork_from_a_message_takes_its_group_whole(database: Database) -> None:
    session = sessions.create(database, records=[*turns(2), compaction("c1", "g1", "g2"), *turns(4)[6:]])
    state = loading.load_state(database, sessions.fork(database, session, "m2")).state
    assert [g.id for g in state.ledger.groups] == ["g1", "g2"]
    assert state.ledger.changes == ()
    state = loading.load_state(database, sessions.fork(database, session, "m9")).state
    assert [g.id for g in state.ledger.groups][-1] == "g9"
    assert [c.id for c in state.ledger.changes] == ["c1"]
    state = loading.load_state(database, sessions.fork(database, session, "c1")).state
    assert [c.id for c in state.ledger.changes] == ["c1"]
    assert len(state.ledger.groups) == 6
    with pytest.raises(UsageError, match="m99"):
        sessions.fork(database, session, "m99")


def test_a_fork_leaves_out_what_does_not_fit(database: Database) -> None:
    records = [*turns(1), compaction("bad", "g1", "g77"), Undone("bad"), CompactionBegun("p"), compaction("good", "g1")]
    assert sessions.consistent(records) == [*turns(1), compaction("good", "g1")]


# ── spilled texts ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_spilled_texts_stay_inside_and_are_never_overwritten(database: Database, tmp_path: Path) -> None:
    session = sessions.create(database)
    journal = open_journal(database, session).journal
    for name in [
        "tool-results/m12.txt",
        "../../etc/passwd",
        "/abs",
        "..",
        "",
        "a" * 300,
        "call:1\n\x1b[2J",
        "\u65e5.txt",
        ".lock",
    ]:
        path = await journal.spill(name, f"text of {name}")
        place = (journal.folder / path).resolve()
        assert place.is_relative_to((journal.folder / "tool-results").resolve())
        assert place.read_text() == f"text of {name}"
    assert await journal.spill("m12.txt", "text of tool-results/m12.txt") == "tool-results/m12.txt"
    assert await journal.spill("m12.txt", "another") == "tool-results/m12-2.txt"
    assert await journal.spill("m12.txt", "another") == "tool-results/m12-2.txt"
    assert await journal.spill("half", "\ud83d")
    (tmp_path / "target").write_text("mine")
    (journal.folder / "tool-results" / "trap.txt").symlink_to(tmp_path / "target")
    assert await journal.spill("trap.txt", "large") == "tool-results/trap-2.txt"
    assert (tmp_path / "target").read_text() == "mine"


@given(st.text())
def test_any_name_is_made_safe(name: str) -> None:
    from ctxchat.storage.private_files import safe_name

    safe = safe_name(name)
    assert 0 < len(safe) <= 100
    assert safe.strip(".") and "/" not in safe and "\\" not in safe and safe.isascii() and safe.isprintable()
    assert safe_name(safe) == safe


def test_contents_of_changed_files_go_along_with_a_branch_and_go_with_their_session(database: Database) -> None:
    session = sessions.create(database, records=turns(1))
    kept = private_files.session_folder(database.folder, session) / private_files.CHECKPOINTS / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"contents")
    (kept.parent / "base").write_bytes(b"of the open session only")
    branch = private_files.session_folder(database.folder, sessions.fork(database, session))
    assert [p.name for p in (branch / private_files.CHECKPOINTS).iterdir()] == ["kept"]
    assert (branch / private_files.CHECKPOINTS / "kept").stat().st_mode & 0o077 == 0
    sessions.delete(database, session)
    assert not kept.parent.parent.exists()
    assert (branch / private_files.CHECKPOINTS / "kept").read_bytes() == b"contents"


def test_a_first_turn_that_was_broken_off_counts_with_what_stands_around_it(database: Database) -> None:
    head = Head(system="You are careful. " * 200, tools=(ToolSpec("echo", "says it again " * 40, {}),))
    asked, half = Message(1, "user", "count to ten"), Message(2, "assistant", "one, two", interrupted=True)
    ledger = Ledger((single("user", asked, 1), single("reply", half, 1)))
    records = [Sealed((ledger.groups[0],)), HeadSet(head), Sealed((ledger.groups[1],))]
    for parts in ([records], [[record] for record in records]):
        session = sessions.create(database)
        for part in parts:
            sessions.append(database, session, *part)
        row = sessions.row(database, session)
        assert row.estimated
        assert row.used == pytest.approx(compile(ledger, head, TokenCounter(database.count)).raw, rel=0.1)
    weighed = sessions.create(database, records=[HeadSet(head, 77), Sealed(ledger.groups)])
    assert 77 < sessions.row(database, weighed).used < 110, "by the model's own counter, which the gauge goes by"
    counted = sessions.create(database, records=[*records, Measured("m", Usage(90, 10), 100)])
    assert (sessions.row(database, counted).used, sessions.row(database, counted).estimated) == (100, False)
    sessions.append(database, counted, Sealed((single("user", Message(3, "user", "word " * 100), 2),)))
    assert sessions.row(database, counted).used > 200


async def test_an_empty_session_whose_id_somebody_has_is_kept_for_a_day(tmp_path: Path) -> None:
    now = ["2026-01-02T03:04:05.000Z"]
    with Database(tmp_path, now=lambda: now[0]) as database:
        alone = begin_journal(database, "m", "/").journal
        await alone.close()
        known, open_ = (begin_journal(database, "m", "/", keep_empty=True).journal for _ in range(2))
        await known.close()
        assert {row.id for row in sessions.rows(database)} == {known.session, open_.session}
        again = open_journal(database, known.session, keep_empty=True).journal
        now[0] = "2026-01-03T03:04:06.000Z"
        await again.close()
        assert [row.id for row in sessions.rows(database)] == [open_.session]
        await open_.close()
        assert not sessions.rows(database)
