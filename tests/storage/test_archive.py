from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.journal import Changed, Sealed, Undone
from ctxchat.core.messages import Group, Message, Reasoning, ToolCall
from ctxchat.core.record import PutBack
from ctxchat.storage import archive, loading, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.query import parse
from ctxchat.storage.snippet import snippet
from tests.storage.samples import compaction, reply, round_of, turns, user


def ids(session_turns: int) -> list[str]:
    return [g.id for record in turns(session_turns) for g in record.groups]


def test_the_list_and_what_was_folded(database: Database) -> None:
    records = [*turns(4), compaction("c1", *ids(2)), compaction("c2", *ids(3)), Undone("c1")]
    session = sessions.create(database, records=records)
    other = sessions.create(database, records=[*turns(1), compaction("other", "g1")])
    rows = archive.compactions(database)
    assert [(r.id, r.session, r.undone) for r in rows] == [
        ("c1", session, True),
        ("c2", session, False),
        ("other", other, False),
    ]
    assert (rows[0].reason, rows[0].strategy, rows[0].before, rows[0].after, rows[0].messages) == (
        "manual",
        "summarize",
        1000,
        200,
        6,
    )
    assert [r.id for r in archive.compactions(database, other)] == ["other"]
    shown = archive.load_compaction(database, "c2")
    assert [g.id for g in shown.groups] == ids(3)
    assert [m.id for m in shown.messages] == [f"m{n}" for n in range(1, 13)]
    assert (shown.nested, shown.undone, shown.problems) == (("c1",), False, ())
    assert shown.change.record and shown.change.record.evidence == "- ran make"
    assert archive.load_compaction(database, "c1").undone


def test_what_is_redone_or_narrowed_is_listed_once_as_it_stands(database: Database) -> None:
    whole = compaction("c1", *ids(3))
    session = sessions.create(database, records=[*turns(4), whole, Undone("c1")])
    assert (sessions.row(database, session).compactions, archive.load_compaction(database, "c1").undone) == (0, True)
    assert archive.search(database, "tide", session)[0].compaction == ""
    sessions.append(database, session, whole)
    assert (sessions.row(database, session).compactions, archive.load_compaction(database, "c1").undone) == (1, False)
    assert loading.load_state(database, session).state.undone == ()
    part = compaction("c1", *ids(1))
    sessions.append(database, session, Undone("c1"), part)
    (row,) = archive.compactions(database, session)
    assert (row.id, row.messages, row.undone) == ("c1", 3, False)
    assert part.change.record is not None
    came_back = msgspec.structs.replace(part.change.record, back=PutBack(3, 300))
    part = Changed(msgspec.structs.replace(part.change, record=came_back))
    used = sessions.row(database, session).used
    sessions.append(database, session, Undone("c1"), part)
    (row,) = archive.compactions(database, session)
    assert (row.before, row.after, row.messages, row.put_back) == (1000, 500, 3, 3), (
        "what is left of it, and what came back"
    )
    assert sessions.row(database, session).used == used + 300
    assert [g.id for g in archive.load_compaction(database, "c1").groups] == ids(1)
    state = loading.load_state(database, session).state
    assert (state.ledger.compactions, state.undone) == ((part.change,), ())
    hits = {hit.message: hit.compaction for hit in archive.search(database, "tide", session, limit=50)}
    assert hits["m3"] == "c1" and hits["m7"] == "", "what came back is no longer told as put away"
    branch = sessions.fork(database, session, "c1")
    assert [c.id for c in loading.load_state(database, branch).state.ledger.compactions] == ["c1"]


def test_ids_are_found_by_their_beginning(database: Database) -> None:
    sessions.create(
        database, records=[*turns(2), compaction("c1", "g1"), compaction("c12", "g2"), compaction("d5", "g4")]
    )
    assert archive.load_compaction(database, "c1").change.id == "c1"
    assert archive.load_compaction(database, "d").change.id == "d5"
    for wrong in ("", "c", "x", "%", "../c1"):
        with pytest.raises(UsageError):
            archive.load_compaction(database, wrong)


def test_a_forks_copy_stands_behind_the_original(database: Database) -> None:
    session = sessions.create(database, records=[*turns(2), compaction("c1", "g1")])
    fork = sessions.fork(database, session)
    assert archive.load_compaction(database, "c1").session == session
    assert archive.load_compaction(database, "c1", fork).session == fork


def test_damage_in_the_archive_costs_that_group(database: Database) -> None:
    session = sessions.create(database, records=[*turns(20), compaction("c1", *ids(20)[:-3])])
    with database.transaction() as connection:
        connection.execute("UPDATE journal SET body = '{' WHERE seq = 2")
    shown = archive.load_compaction(database, "c1")
    assert len(shown.groups) == 57 - 1
    assert "g2" in shown.problems[0]
    with pytest.raises(StorageError, match="damaged"):
        archive.message(database, session, "m2")
    with database.transaction() as connection:
        connection.execute("UPDATE journal SET body = '{' WHERE seq = 61")
    with pytest.raises(StorageError, match="damaged"):
        archive.load_compaction(database, "c1")


def test_one_message_and_its_group(database: Database) -> None:
    session = sessions.create(database, records=turns(2))
    assert archive.message(database, session, "m3").text == "contents 1 of the tide gauge"
    assert archive.group_of(database, session, "m3").id == "g2"
    for wrong in ("m99", "12", "m", "m-1", "../m1", "m1 OR 1", "m٣"):
        with pytest.raises(UsageError):
            archive.message(database, session, wrong)


# ── search ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=[True, False], ids=["fts5", "scan"])
def store(tmp_path: Path, request: pytest.FixtureRequest):
    with Database(tmp_path / "data", full_text=request.param) as database:
        assert database.fts is request.param
        yield database


def found(database: Database, query: str, session: str = "") -> list[str]:
    return [hit.message for hit in archive.search(database, query, session)]


def test_everything_ever_said_is_found(store: Database) -> None:
    call = ToolCall("c", "shell", '{"command": "journalctl -u cormorant"}')
    said = Message(3, "assistant", "Thinking", calls=(call,), reasoning=Reasoning("the mooring is loose"))
    result = Message(4, "tool", "tide at pier_7 was 3.14 m in src/gauge.py", call_id="c")
    records = [
        Sealed((user(1, "Where is the Tide gauge of Pier 7?"),)),
        Sealed((Group("g3", "round", (said, result), 1),)),
        Sealed((reply(5, "東京湾の潮位は三メートルです。 Das ist schön."),)),
    ]
    session = sessions.create(store, records=records)
    assert set(found(store, "tide")) == {"m1", "m4"}
    assert found(store, "TIDE gauge where")[0] == "m1"
    assert found(store, "journalctl") == ["m3"]
    assert found(store, "mooring") == ["m3"]
    assert found(store, "src/gauge.py") == ["m4"]
    assert found(store, "3.14") == ["m4"]
    assert "m4" in found(store, "pier_7")
    assert found(store, '"tide at"') == ["m4"]
    assert found(store, "潮位") == found(store, "京") == ["m5"]
    assert found(store, "schön") == ["m5"]
    assert found(store, "cormo") == found(store, "moran") == ["m3"]
    assert found(store, "nowhere") == found(store, "") == found(store, ' " * ') == found(store, "->") == []
    assert found(store, "tide", session) and not found(store, "tide", "0" * 12)


def test_accents_do_not_matter_to_the_index(database: Database) -> None:
    sessions.create(database, records=[Sealed((reply(1, "das ist schön"),))])
    (hit,) = archive.search(database, "schon")
    assert hit.snippet == "das ist «schön»"


def test_some_words_are_better_than_none(database: Database) -> None:
    sessions.create(database, records=turns(3))
    assert "m5" in found(database, "what was question 2 about again")


def test_a_hit_says_where_it_stands(database: Database) -> None:
    session = sessions.create(database, records=[*turns(3), compaction("c1", *ids(1)), compaction("c2", *ids(2))])
    (hit,) = archive.search(database, "harbour 7")[:1]
    assert (hit.session, hit.message, hit.role, hit.turn, hit.group) == (session, "m1", "user", 1, "g1")
    assert hit.snippet == "question 1 about «harbour» «7»"
    assert hit.compaction == "c2"
    assert hit.tokens == database.count("question 1 about harbour 7") + 4
    assert [h.compaction for h in archive.search(database, '"answer 3"')] == [""]
    sessions.append(database, session, Undone("c2"))
    assert archive.search(database, "harbour 7")[0].compaction == "c1"
    sessions.append(database, session, Undone("c1"))
    assert archive.search(database, "harbour 7")[0].compaction == ""


@settings(
    # each writes a session into a real database, and the later ones ask a larger one
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(max_size=40))
def test_no_query_breaks_it(store: Database, query: str) -> None:
    sessions.create(store, records=[Sealed((user(1, query or "x"),))])
    hits = archive.search(store, query)
    assert bool(hits) or not parse(query).terms


def test_an_index_that_missed_something_is_made_anew(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        gone = sessions.create(database, records=[Sealed((user(1, "first lighthouse"),))])
    with Database(tmp_path, full_text=False) as database:
        sessions.create(database, records=[Sealed((user(1, "second lighthouse"),))])
        sessions.delete(database, gone)
        assert len(found(database, "lighthouse")) == 1
    with Database(tmp_path) as database:
        assert database.fts
        assert [h.snippet for h in archive.search(database, "lighthouse")] == ["second «lighthouse»"]


DAMAGE = {
    "zeros": "UPDATE search_data SET block = zeroblob(length(block))",
    "noise": "UPDATE search_data SET block = randomblob(length(block)) WHERE id > 10",
    "empty": "DELETE FROM search_data",
    "parts": "DELETE FROM search_docsize",
    "version": "UPDATE search_config SET v = 165",
    "config": "DELETE FROM search_config",
    "gone": "DROP TABLE search",
    "other": "DROP TABLE search; CREATE TABLE search (words)",
    "behind": "UPDATE state SET value = '2 1 1'",
}


@pytest.mark.parametrize("first", ["write", "search", "delete", "check"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_index_costs_nothing_but_its_making(tmp_path: Path, damage: str, first: str) -> None:
    with Database(tmp_path) as database:
        session, other = (sessions.create(database, records=turns(20)) for _ in range(2))
    with closing(sqlite3.connect(next(tmp_path.glob("index-*.db")))) as file:
        file.executescript(damage)
    with Database(tmp_path) as database:
        steps = {
            "check": database.check,
            "search": lambda: archive.search(database, "question 7"),
            "write": lambda: sessions.append(database, session, Sealed((user(500, "the lighthouse keeper"),))),
            "delete": lambda: sessions.delete(database, other),
        }
        for step in sorted(steps, key=lambda name: name != first):
            steps[step]()
        assert [hit.message for hit in archive.search(database, "lighthouse keeper")] == ["m500"]
        assert {hit.session for hit in archive.search(database, "question", limit=50)} == {session}
        assert database.check() == []


def test_a_snippet_is_one_line_without_tricks() -> None:
    text = "x " * 400 + "\x1b[2J the\n[bold]gauge[/bold]\u202e here " + "y " * 400
    line = snippet(text, ["gauge"], ("<", ">"))
    assert "<gauge>" in line and line.startswith("…") and line.endswith("…")
    assert len(line) < 220 and line.isprintable()


def test_words_are_marked_whole() -> None:
    """A part of a longer word only where nothing else is there."""
    marks = ("«", "»")
    assert snippet("the end off the list of ports", ["of", "port"], marks) == "the end off the list «of» ports"
    assert snippet("ports are off", ["of", "port"], marks, ["port"]) == "«ports» are off"
    assert snippet("imports", ["port"], marks, ["port"]) == "im«port»s"
    assert snippet("東京都の天気", ["京都"], marks) == "東«京都»の天気"


def test_words_that_say_nothing_are_not_marked(database: Database) -> None:
    sessions.create(database, records=[Sealed((round_of(1, "the number_of_lines of a harbour"),))])
    (hit,) = archive.search(database, "what is the harbour of")
    assert hit.snippet == "the number_of_lines of a «harbour»"


@given(st.text(), st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3))
def test_any_snippet_holds_the_text_and_nothing_else(text: str, wanted: list[str]) -> None:
    line = snippet(text, wanted, ("\x01", "\x02"))
    bare = line.replace("\x01", "").replace("\x02", "").strip("…")
    assert len(bare) <= 200
    assert line.count("\x01") == line.count("\x02")


def test_long_texts_are_searched_quickly_enough_to_end(database: Database) -> None:
    long = "a" * 1_000_000 + " needle " + "日" * 100_000
    sessions.create(database, records=[Sealed((round_of(1, long),))])
    (hit,) = archive.search(database, "needle")
    assert "«needle»" in hit.snippet
