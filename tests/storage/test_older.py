"""Databases that older versions wrote, each opened as it was left: nothing in them may be lost or read differently.

`older/schema-N.db.gz` was written by the program of that time: four questions and a compaction. A release adds its own
(`release.py` asks for it).
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ctxchat.storage import archive, loading, schema, sessions
from ctxchat.storage.database import FILE, Database

OLDER = sorted((Path(__file__).parent / "older").glob("*.db.gz"))


def test_the_tables_of_now_are_among_them() -> None:
    assert f"schema-{len(schema.MIGRATIONS)}.db.gz" in [file.name for file in OLDER]


@pytest.mark.parametrize("file", OLDER, ids=lambda file: file.name.split(".")[0])
def test_it_opens_and_everything_is_there(file: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(gzip.decompress(file.read_bytes()))
    with Database(tmp_path) as database:
        assert database.query("PRAGMA user_version")[0][0] == len(schema.MIGRATIONS)
        (row,) = sessions.rows(database)
        assert row.title.startswith("Which logger does Pier 7 report to?") and row.compactions == 1
        loaded = loading.load_state(database, row.id)
        assert loaded.problems == ()
        messages = loaded.state.ledger.messages()
        assert len(messages) == row.messages
        asked = [m.text for m in messages if m.role == "user"]
        assert [text[:8] for text in asked] == ["Which lo", "How ofte", "What is ", "Where is"]
        (change,) = loaded.state.ledger.changes
        undone = loaded.state.ledger.undo(change.id)
        assert [g for entry in undone.live() for g in entry.covers] == [g.id for g in undone.groups]
        assert archive.load_compaction(database, change.id).messages
        assert archive.search(database, "Cormorant")
