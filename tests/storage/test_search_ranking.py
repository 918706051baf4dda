"""What search puts first: where it was said, all of it close together, spelt as asked; and what filters leave out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed, Undone
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.search import NEWEST, Scope
from ctxchat.storage import archive, index, inspection, schema, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.query import parse, phrase
from ctxchat.storage.snippet import passage
from tests.storage.samples import compaction, turns

FILLER = "the harbour office looks at the list of the day and says that all is well "


def store(database: Database, *messages: Message, filler: int = 60) -> str:
    """A session with these messages, and small talk behind them."""
    behind = [Message(1000 + n, "user" if n % 2 else "assistant", f"{FILLER}{n}") for n in range(filler)]
    return sessions.create(database, records=[Sealed(group_messages([*messages, *behind]))])


def found(database: Database, query: str, **scope: object) -> list[str]:
    return [hit.message for hit in archive.search(database, query, scope=Scope(**scope))]  # type: ignore[arg-type]


def called(seq: int, name: str, arguments: str, result: str) -> list[Message]:
    call = ToolCall(f"c{seq}", name, arguments)
    return [Message(seq, "assistant", "", calls=(call,)), Message(seq + 1, "tool", result, call_id=call.id, name=name)]


def test_where_it_was_said_stands_before_those_who_looked_for_it(database: Database) -> None:
    store(
        database,
        Message(1, "user", "The mooring winch is rated for 4.2 tonnes."),
        *called(2, "grep", '{"pattern": "mooring winch rated"}', "no matches"),
        *called(4, "recall", '{"query": "mooring winch rated"}', "m1: The mooring winch is rated for 4.2 tonnes."),
    )
    assert found(database, "mooring winch rated")[0] == "m1"
    assert found(database, "mooring winch rated", recall=True)[0] == "m1"
    assert not {"m4", "m5"} & set(found(database, "mooring winch rated", recall=True))
    assert {"m4", "m5"} <= set(found(database, "mooring winch rated"))


def test_a_question_in_other_words_still_finds_it(database: Database) -> None:
    store(
        database,
        Message(1, "assistant", "We settled on polling the gauges every 90 seconds, since the logger drops bursts."),
        Message(2, "user", "polling is a word that stands here alone"),
        Message(3, "user", "gauges and loggers"),
    )
    assert found(database, "How often did we decide that the gauge should be polled?")[0] == "m1"


def test_one_line_in_a_long_result_beats_short_messages_with_some_of_the_words(database: Database) -> None:
    log = "\n".join([FILLER] * 300 + ["boot: valve-12 firmware checksum 0xfeed mismatch"] + [FILLER] * 300)
    short = [Message(10 + n, "user", f"the checksum of {n}, and a valve") for n in range(30)]
    store(database, *called(1, "read", "{}", log), *short)
    (hit, *_) = archive.search(database, "firmware checksum of valve 12 mismatch")
    assert hit.message == "m2" and "0xfeed" in hit.snippet and "0xfeed" in hit.passage
    assert not hit.whole and len(hit.passage) < 1_800 and hit.tool == "read"


def test_names_are_told_by_their_spelling(database: Database) -> None:
    store(
        database,
        Message(1, "assistant", "I changed src/tide/gauge_v2.py and its tests."),
        Message(2, "assistant", "I changed src tide gauge v2 py in words only."),
        Message(3, "assistant", "I changed src/tide/gauge_v3.py."),
    )
    assert found(database, "src/tide/gauge_v2.py")[0] == "m1"
    assert found(database, "gauge_v3")[0] == "m3"


def test_the_question_at_hand_is_not_its_own_answer(database: Database) -> None:
    session = sessions.create(
        database,
        records=[
            Sealed(
                group_messages(
                    [
                        Message(1, "user", "The spare key hangs behind the barometer."),
                        Message(2, "assistant", "Noted."),
                        Message(3, "user", "Where does the spare key hang?"),
                    ]
                )
            )
        ],
    )
    assert found(database, "Where does the spare key hang?", session=session, recall=True)[0] == "m1"
    assert "m3" not in found(database, "Where does the spare key hang?", session=session, recall=True)
    assert "m3" in found(database, "Where does the spare key hang?", session=session)


def test_the_first_word_of_a_line_in_a_call_is_found(database: Database) -> None:
    arguments = json.dumps({"path": "a.py", "edits": [{"new": "x = 1\ndef harbour():\n\treturn 7"}]})
    store(
        database, *called(1, "edit_file", arguments, "Done."), *called(3, "shell", '{"command": "ls\\nquay', "Failed.")
    )
    assert found(database, "def") == found(database, "return") == found(database, '"def harbour"') == ["m1"]
    assert found(database, "a.py") and found(database, "edit_file")
    assert found(database, "command") == ["m3"]  # what is no JSON stays as it is


def test_rows_of_an_earlier_build_are_searched_and_no_fault(database: Database) -> None:
    store(database, *called(1, "shell", '{"command": "echo quay"}', "Done."))
    before = 'shell {"command": "echo quay"}'
    with database.transaction() as connection:
        row = connection.execute("SELECT id FROM messages WHERE seq = 1").fetchone()[0]
        index.remove_row(connection, row)
        connection.execute("UPDATE messages SET text = ? WHERE id = ?", (before, row))
        index.add_messages(connection, [(row, before, "assistant", "shell")])
    assert found(database, "quay") == ["m1"] and not inspection.inspect(database).faults
    with database.transaction() as connection:
        connection.execute("UPDATE messages SET text = 'other' WHERE id = ?", (row,))
    assert any("other words" in fault.what for fault in inspection.inspect(database).faults)


def test_words_without_spaces_between_them(database: Database) -> None:
    store(database, Message(1, "user", "東京湾の潮位は三メートルです。"), Message(2, "user", "大阪の天気は晴れです。"))
    assert found(database, "東京湾の潮位を教えて")[0] == "m1"
    assert found(database, "天気")[0] == "m2"


@pytest.fixture(params=[True, False], ids=["fts5", "scan"])
def passed(tmp_path: Path, request: pytest.FixtureRequest):
    """Four turns, a compaction after the second, one more after the third that was undone."""
    with Database(tmp_path, full_text=request.param) as database:
        each = turns(4)
        records = [
            *each[:6],
            compaction("k1", "g1", "g2", "g4"),
            *each[6:9],
            compaction("k2", "g1", "g5"),
            Undone("k2"),
            *each[9:],
        ]
        yield database, sessions.create(database, records=records)


def test_filters(passed: tuple[Database, str]) -> None:
    database, session = passed
    sessions.create(database, records=turns(1))
    asked = {"m1", "m5", "m9", "m13"}
    assert set(found(database, "harbour", session=session)) == asked
    assert set(found(database, "harbour", session=session, before=NEWEST)) == {"m1", "m5"}
    assert set(found(database, "harbour", session=session, after=NEWEST)) == {"m9", "m13"}
    assert set(found(database, "harbour", session=session, after="k2")) == {"m13"}
    assert set(found(database, "harbour", session=session, before="k2", after="k1")) == {"m9"}
    assert found(database, "harbour", session=session, role="tool") == []
    assert set(found(database, "contents", session=session, role="tool")) == {"m3", "m7", "m11", "m15"}
    assert set(found(database, "look", session=session, tool="read_file")) == {"m2", "m6", "m10", "m14"}
    assert found(database, "look", session=session, tool="read") == []
    hits = archive.search(database, "harbour", scope=Scope(after=NEWEST))
    assert {hit.session for hit in hits} > {session}  # a session that was never compacted has only an after


def test_messages_of_before_the_tools_were_kept_are_found(tmp_path: Path) -> None:
    with Database(tmp_path, migrations=schema.MIGRATIONS[:1]) as old, old.transaction() as connection:
        connection.execute("INSERT INTO sessions (id, created, updated) VALUES ('0' , '', '')")
        connection.execute("INSERT INTO groups VALUES ('0', 0, 'g1', 'user', 1, 1)")
        connection.execute("INSERT INTO messages VALUES (1, '0', 1, 0, 'user', '', 5, 'an old lighthouse')")
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('index', 'stale')")
    with Database(tmp_path) as database:
        assert [path.name.split("-")[0] for path in database.backups] == [
            f"v{n}" for n in range(1, len(schema.MIGRATIONS))
        ]
        assert found(database, "lighthouse") == ["m1"]


@settings(
    # each asks a real database
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(max_size=60))
def test_any_text_is_a_query_the_index_takes(database: Database, text: str) -> None:
    query = parse(text)
    for term in query.terms:
        database.query("SELECT count(*) FROM search WHERE search MATCH ?", (f"{phrase(term)} *",))
    for unit in query.units:
        database.query("SELECT count(*) FROM stems WHERE stems MATCH ?", (unit.expression,))
    assert len(set(query.units)) == len(query.units)


@given(st.text(alphabet="ab \n", max_size=4_000), st.integers(0, 4_000))
def test_a_passage_is_part_of_the_text_and_holds_the_place(text: str, place: int) -> None:
    place = min(place, max(0, len(text) - 1))
    part, whole = passage(text, place)
    assert whole == (part == text)
    bare = part.strip("…")
    assert bare in text and len(bare) <= 1_700
    assert text[place : place + 1] in bare
