"""Filters typed in a query: what they narrow, what is none, and that words which only look like one stay words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ctxchat.core.errors import UsageError
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message
from ctxchat.core.search import FILTERS, Scope
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.query import split_filters
from tests.storage.test_search_ranking import called

NOW = datetime(2026, 11, 22, 15, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "words", "scope"),
    [
        ("who:me tide", "tide", Scope(role="user")),
        ("tide who:agent tool:shell gauge", "tide gauge", Scope(role="assistant", tool="shell")),
        ("since:2026-11-01 a", "a", Scope(since="2026-11-01T00:00:00.000Z")),
        ("since:3d until:today a", "a", Scope(since="2026-11-19T15:30:00.000Z", until="2026-11-22T00:00:00.000Z")),
        ('file:"my notes.md" a', "a", Scope(file="my notes.md")),
        ("who: since: a", "a", Scope()),
        ("see http://x.org/who:me and src:foo", "see http://x.org/who:me and src:foo", Scope()),
    ],
)
def test_a_query_and_its_filters(query: str, words: str, scope: Scope) -> None:
    assert split_filters(query, Scope(), NOW) == (words, scope)


@pytest.mark.parametrize(
    "wrong", ["who:bob", "since:soon", "since:2026-13", "until:2026-02-30", "since:99999d", "since:9999w"]
)
def test_a_wrong_filter_is_told_with_what_may_stand_there(wrong: str) -> None:
    with pytest.raises(UsageError) as told:
        split_filters(
            f"tide {wrong}",
            Scope(),
            datetime(2026, 11, 22, tzinfo=UTC) if "w" not in wrong[6:] else datetime(50, 1, 1, tzinfo=UTC),
        )
    assert wrong in str(told.value) and "Give" in str(told.value)


def test_what_is_said_of_filters_is_all_of_them() -> None:
    assert split_filters(FILTERS.replace(",", ""), Scope(), NOW)[0] == ""


@pytest.mark.parametrize("full_text", [True, False], ids=["fts5", "scan"])
def test_search_goes_by_them(tmp_path, full_text: bool) -> None:
    messages = [
        Message(1, "user", "The tide is in src/tide.py", at="2026-01-01T10:00:00.000Z"),
        Message(2, "assistant", "The tide is high.", at="2026-02-01T10:00:00.000Z"),
        *called(3, "shell", '{"command": "cat src/tide.py"}', "the tide of the shell"),
        Message(5, "user", "No tide at all.", at="2026-03-01T10:00:00.000Z"),
    ]
    with Database(tmp_path, full_text=full_text) as database:
        sessions.create(database, records=[Sealed(group_messages(messages))])

        def found(query: str) -> set[str]:
            return {hit.message for hit in archive.search(database, query)}

        assert found("tide who:me") == {"m1", "m5"}
        assert found("tide tool:shell") == {"m4"} or found("tide tool:shell") == {"m3", "m4"}
        assert found("tide who:me until:2026-02-01") == {"m1"}
        assert found("tide who:me since:2026-02-01") == {"m5"}
        assert found("file:src/tide.py tide") == {"m1", "m3"}
        assert [hit.message for hit in archive.search(database, "who:me")] == ["m5", "m1"]
        assert "«" not in archive.search(database, "who:me")[0].snippet
        assert found("file:nowhere.py") == set()
