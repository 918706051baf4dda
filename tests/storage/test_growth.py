"""What a turn's write costs follows what it adds, not what is stored: counted in steps of SQLite's machine, never in seconds."""

from __future__ import annotations

from pathlib import Path

from ctxchat.storage import index, sessions
from ctxchat.storage.database import Database
from tests.storage.samples import turns


def steps(folder: Path, many: int) -> int:
    """Of SQLite, while one turn is written to a session with so many."""
    records = turns(many + 3)
    counted = 0

    def tick() -> int:
        nonlocal counted
        counted += 1
        return 0

    with Database(folder) as database:
        session = sessions.create(database, records=records[: 3 * many])
        sessions.append(
            database, session, *records[3 * many : 3 * many + 3], clear=True
        )  # the first finds pages to split
        with database.transaction() as connection:
            connection.set_progress_handler(tick, 1)
        for record in records[3 * many + 3 :]:
            sessions.append(database, session, record, clear=True)
    return counted


def test_a_turn_is_written_in_as_many_steps_after_a_thousand_as_after_a_hundred(tmp_path: Path) -> None:
    few, many = steps(tmp_path / "few", 100), steps(tmp_path / "many", 1000)
    assert few > 500, "something was counted"
    assert many < 1.2 * few, (few, many)


def test_few_pages_are_kept_at_hand_of_either_file(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        assert [database.query(f"PRAGMA {file}.cache_size") for file in ("main", "fts")] == [
            [(index.CACHE_KILOBYTES,)]
        ] * 2
