"""Messages that wait to be taken into the search index: whatever is written and deleted, each is found once, in the end."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from ctxchat.bootstrap.recall import Recollection
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message
from ctxchat.storage import archive, index, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.origins import SessionListing, SessionOrigin, import_session
from tests.examples import examples

MANY = index.FIRST_MESSAGES + 300


def conversation(words: list[str]) -> Sealed:
    return Sealed(group_messages([Message(seq, "user", word) for seq, word in enumerate(words, 1)]))


def found(database: Database, word: str) -> list[str]:
    return [hit.session for hit in archive.search(database, word)]


def complete(database: Database) -> None:
    while database.index_pending():
        pass


def test_an_index_made_anew_finds_the_newest_at_once_and_all_in_the_end(database: Database) -> None:
    session = sessions.create(database, records=[conversation([f"word{n}" for n in range(MANY)])])
    assert database.indexed == 1.0
    database.rebuild_index()
    assert found(database, f"word{MANY - 1}") == [session]
    before = database.indexed
    assert 0 < before < 1
    assert database.index_pending()
    assert database.indexed > before
    complete(database)
    assert database.indexed == 1.0
    assert found(database, "word3 ") == [session]
    assert database.check() == []


async def test_recall_says_how_far_the_index_is(database: Database) -> None:
    session = sessions.create(database, records=[conversation([f"word{n}" for n in range(MANY)])])
    database.rebuild_index()
    assert "of all messages so far" in await Recollection(database, session).search("word3")
    complete(database)
    assert "so far" not in await Recollection(database, session).search("word3")


def test_another_process_that_writes_is_not_waited_for(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        sessions.create(database, records=[conversation([f"word{n}" for n in range(MANY)])])
        database.rebuild_index()
        waited = database.indexed
        other = sqlite3.connect(database.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert database.index_pending()
        assert database.indexed == waited
        other.execute("ROLLBACK")
        other.close()
        assert database.index_pending()
        assert database.indexed > waited


def test_what_lies_on_a_damaged_page_is_left_out(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        sessions.create(database, records=[conversation([f"word{n} " + "x" * 400 for n in range(MANY)])])
        (page,) = database.query("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' LIMIT 1")[0]
        (size,) = database.query("PRAGMA page_size")[0]
        database.write_back()
    with (tmp_path / "ctxchat.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with Database(tmp_path) as database:
        database.rebuild_index()
        complete(database)
        assert database.indexed == 1.0
        (held,) = database.query("SELECT count(*) FROM fts.search_docsize")[0]
        assert MANY - 12 < held < MANY


STEPS = st.lists(
    st.sampled_from(["said", "imported", "deleted first", "deleted last", "renewed", "taken"]), max_size=14
)


@examples(12, 100)
@given(steps=STEPS)
@example(["said"] * 14)
def test_in_any_order(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder)) as database:
        there: dict[str, str] = {}
        for number, step in enumerate(steps):
            word = "bcdfghjklmnpqr"[number] * 6  # none is like another: a search finds what is nearly the word, too
            words = conversation([word] * 2)
            if step == "said":
                there[sessions.create(database, records=[words])] = word
            elif step == "imported":
                origin = SessionOrigin(f"agent:{number}", "/f", 1, 1)
                session = import_session(database, origin, lambda _, words=words: [words], lambda: SessionListing(2))[0]
                there[session] = word
            elif step.startswith("deleted") and there:
                session = list(there)[0 if step == "deleted first" else -1]
                sessions.delete(database, session)
                del there[session]
            elif step == "renewed":
                database.rebuild_index()
            elif step == "taken":
                database.index_pending()
            with database.transaction() as connection:
                index.verify(connection)
        complete(database)
        with database.transaction() as connection:
            index.verify(connection)
        for session, word in there.items():
            assert found(database, word) == [session] * 2
