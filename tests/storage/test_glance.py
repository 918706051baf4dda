"""The end of a stored session, as the list of sessions tells it."""

from __future__ import annotations

from pathlib import Path

from ctxchat.core.grouping import group_messages, single
from ctxchat.core.journal import Sealed, fold
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.search import Scope
from ctxchat.storage import archive, markdown, sessions
from ctxchat.storage.archive import glance
from ctxchat.storage.database import Database


def test_it_is_what_was_said_last_without_calls_and_results_and_of_this_session_only(tmp_path: Path) -> None:
    database = Database(tmp_path)
    said = [
        Message(1, "user", "first", at="2026-11-21T10:00:00.000Z"),
        Message(2, "assistant", "I look.", calls=(ToolCall("c1", "grep", "{}"),)),
        Message(3, "tool", "found", call_id="c1", name="grep"),
        Message(4, "assistant", "long " * 500),
        Message(5, "user", "last"),
    ]
    mine = sessions.create(database, records=[Sealed((g,)) for g in group_messages(said)])
    sessions.create(database, records=[Sealed((g,)) for g in group_messages([Message(1, "user", "elsewhere")])])
    found = glance(database, mine)
    assert [(one.role, one.text[:5]) for one in found] == [("user", "first"), ("assistant", "long "), ("user", "last")]
    assert len(found[1].text) == 600
    assert [one.text for one in glance(database, mine, many=1)] == ["last"]
    assert glance(database, "nobody") == []
    database.close()


def test_a_note_for_the_model_is_nobodys_words(tmp_path: Path) -> None:
    said, note = Message(1, "user", "Ask the gauge."), Message(2, "user", "[context] The gauge is told.")
    records = [Sealed((single("user", said, 1), single("note", note, 1, "budget")))]
    with Database(tmp_path) as database:
        mine = sessions.create(database, records=records)
        assert [one.text for one in glance(database, mine)] == ["Ask the gauge."]
        assert [hit.message for hit in archive.search(database, "gauge", scope=Scope(role="user"))] == ["m1"]
        assert {hit.message: hit.note for hit in archive.search(database, "gauge")} == {"m1": False, "m2": True}
    text = markdown.record(fold(records))
    assert "## User (m1)" in text and "## Note (m2)" in text
