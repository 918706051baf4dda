"""No table is forgotten: by a deletion, by a repair, or by the one list that both go by."""

from __future__ import annotations

from pathlib import Path

from ctxchat.core.file_changes import Checkpoint, FileChange
from ctxchat.core.journal import Partial
from ctxchat.core.messages import Message
from ctxchat.storage import entries, repair, schema, sessions
from ctxchat.storage.database import Database
from tests.storage.samples import compaction, turns


def tables(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, but for what says which index is in force."""
    names = database.query("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    found = {name: database.query(f"SELECT * FROM {name}") for (name,) in names}
    found["meta"] = [row for row in found["meta"] if row[0] != "index"]
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def filled(database: Database, model: str = "haiku") -> str:
    """A session with something in each table; its id."""
    records = [*turns(4), compaction("c1", "g1", "g2"), Checkpoint("f1", 1, (FileChange("a.py"),))]
    session = sessions.create(database, model=model, folder="/w", records=records)
    partial = entries.encode(Partial(Message(40, "assistant", "half a reply"), (), 5))
    with database.transaction() as connection:
        connection.execute("INSERT INTO partials VALUES (?, ?, ?)", (session, database.now(), partial))
        connection.execute("INSERT INTO origins VALUES (?, ?, '/f', 1, 1, 0)", (session, f"agent:{session}"))
        connection.execute("INSERT OR IGNORE INTO doomed VALUES ('no id: it stays')")
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('something', 'kept')")
    return session


def test_each_table_is_in_the_list(database: Database) -> None:
    filled(database)
    found = tables(database)
    assert set(found) == set(schema.TABLES)
    assert [name for name, rows in found.items() if not rows] == [], "else the other tests say nothing about it"
    columns = {name: [row[1] for row in database.query(f"PRAGMA table_info({name})")] for name in found}
    assert {name for name in found if "session" in columns[name]} - {"doomed"} == set(schema.OF_A_SESSION)
    for name, key in schema.OF_A_SESSION.items():
        assert key in {*columns[name], "rowid"}


def test_a_deleted_session_is_in_no_table(database: Database) -> None:
    kept, gone = filled(database), filled(database)
    sessions.delete(database, gone)
    for name, rows in tables(database).items():
        assert not any(gone in row for row in rows), name
        assert name in {"doomed", "meta"} or any(kept in row for row in rows), name


def test_what_a_full_disk_left_of_a_deleted_session_goes_at_the_next_start(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        gone = filled(database)
        with database.transaction(linked=False) as connection:
            connection.execute("INSERT INTO doomed VALUES (?)", (gone,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (gone,))
    with Database(tmp_path) as database:
        assert not any(gone in row for rows in tables(database).values() for row in rows)


def test_a_store_made_anew_has_the_same_rows(tmp_path: Path) -> None:
    with Database(tmp_path, now=lambda: "2026-01-02T03:04:05.000Z") as database:
        used_first, used_last = filled(database), filled(database, "opus")
        before = tables(database)
        with database.transaction() as connection:
            connection.execute("DELETE FROM messages WHERE session = ? AND seq = 2", (used_last,))
    assert repair.repair(tmp_path).kept
    with Database(tmp_path) as database:
        assert tables(database) == before
        assert [row.id for row in sessions.rows(database)] == [used_last, used_first]
