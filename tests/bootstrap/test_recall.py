"""What the agent is told by `recall`: passages with ids, within a budget, never its own searches; and the benchmark's needles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.evidence import window_only
from benchmarks.needle import run
from ctxchat.bootstrap.recall import MAX_ANSWER_TOKENS, Recollection
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.summaries import id_ranges
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from tests.storage.samples import compaction

NEEDLE = "0421 WARN pump-7 firmware checksum 0xbeef does not match"


def said() -> list[Message]:
    log = "\n".join([f"{n:04d} ok pump-{n % 9} level {n}" for n in range(420)] + [NEEDLE] + ["0422 ok"] * 300)
    read, look, recalled = (
        ToolCall("c1", "read_file", '{"path": "var/boot.log"}'),
        ToolCall("c2", "grep", '{"pattern": "firmware checksum pump"}'),
        ToolCall("c3", "recall", '{"query": "firmware checksum pump"}'),
    )
    return [
        Message(1, "user", "Look at the boot log."),
        Message(2, "assistant", "Looking.", calls=(read,)),
        Message(3, "tool", log, call_id="c1", name="read_file"),
        Message(
            4, "assistant", "The pump in question has a wrong firmware checksum. We decided to replace it on Friday."
        ),
        Message(5, "user", "Which firmware checksum did the pump report?"),
        Message(6, "assistant", "", calls=(look, recalled)),
        Message(7, "tool", "no matches", call_id="c2", name="grep"),
        Message(8, "tool", f"m3 (result of read_file): {NEEDLE}", call_id="c3", name="recall"),
        Message(9, "assistant", "See above."),
        Message(10, "user", "And which firmware checksum was it that the pump did report again?"),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Database, str]]:
    with Database(tmp_path) as database:
        records = [Sealed(group_messages(said())), compaction("k1", "g1", "g2", "g4")]
        other = [Sealed(group_messages([Message(1, "user", "another firmware checksum of a pump")]))]
        session = sessions.create(database, records=records)
        sessions.create(database, records=other)
        yield database, session


async def test_the_line_in_a_long_result_comes_first_with_its_surroundings(store: tuple[Database, str]) -> None:
    text = await Recollection(*store).search("firmware checksum pump-7")
    first = text.split("\n\n")[0]
    assert first.startswith("m3 (result of read_file, turn 1, put away by k1):")
    assert NEEDLE in first and "0420" not in first.split(NEEDLE)[1] and "0000 ok" not in first
    assert "recall the id m3 for all of it" in first


async def test_the_tools_of_a_message_are_told_one_by_one(tmp_path: Path) -> None:
    both = (ToolCall("c1", "read_file", '{"path": "var/boot.log"}'), ToolCall("c2", "grep", '{"pattern": "pump"}'))
    messages = [
        Message(1, "user", "Look."),
        Message(2, "assistant", "I look for the firmware checksum.", calls=both),
        Message(3, "tool", "nothing", call_id="c1", name="read_file"),
        Message(4, "tool", "nothing", call_id="c2", name="grep"),
        Message(5, "user", "Go on."),
    ]
    with Database(tmp_path) as database:
        session = sessions.create(database, records=[Sealed(group_messages(messages)), compaction("k1", "g1", "g2")])
        text = await Recollection(database, session).search("firmware checksum")
    assert text.startswith("m2 (call of read_file, grep, turn 1, put away by k1)")


async def test_own_searches_and_the_question_at_hand_are_no_answers(store: tuple[Database, str]) -> None:
    text = await Recollection(*store).search("Which firmware checksum did the pump report?")
    ids = [line.split(" ")[0] for line in text.splitlines() if line.startswith("m") and "turn" in line]
    assert ids[0] in {"m3", "m4"} and {"m3", "m4"} <= set(ids[:3])
    assert "m10" not in ids and "m8" not in ids and "another firmware" not in text


async def test_one_message_comes_whole_and_a_range_keeps_to_the_budget(store: tuple[Database, str]) -> None:
    database, session = store
    recall = Recollection(database, session)
    assert (await recall.fetch_text("m3")).startswith(
        "m3 (result of read_file):\n0000 ok pump-0"
    ) and NEEDLE in await recall.fetch_text("m3")
    assert (await recall.fetch_text("m6")).startswith("m6 (assistant):\n[called grep")
    assert (await recall.fetch_text("g2")).startswith("m2 (assistant): Looking.\n[called read_file path: ")
    told = await recall.fetch_text("m1–m10")
    assert told.startswith("m1 (user): Look") and "m10 (user)" in told
    assert database.count(told) <= MAX_ANSWER_TOKENS + 200
    assert "m4 (assistant): The pump" in await recall.fetch_text("k1")
    for wrong in ("m99", "../m1", "k9", "", "m5-m2", "x", "m1, x", "m1, other/m2", ","):
        assert await recall.fetch_text(wrong) == ""


@settings(max_examples=30)
@given(st.sets(st.integers(1, 39), min_size=1))
def test_what_a_summary_says_it_covers_can_be_recalled_as_it_is_written(places: set[int]) -> None:
    short = [Message(n, "user" if n % 2 else "assistant", f"harbour {n} " + "lorem " * 60) for n in range(1, 40)]

    async def told(id: str) -> set[int]:
        """All that the id leads to, page by page."""
        text = await recall.fetch_text(id)
        shown = {int(line[1:].split()[0]) for line in text.split("\n\n") if line.startswith("m")}
        further = text.rpartition("[more: recall the id ")[2] if "[more:" in text else ""
        return shown | (await told(further.rstrip("]")) if further else set[int]())

    with TemporaryDirectory() as folder, Database(Path(folder)) as database:
        recall = Recollection(database, sessions.create(database, records=[Sealed(group_messages(short))]))
        found = asyncio.run(told(id_ranges(places)))
    assert found == places if len(places) <= 12 else found <= places


async def test_a_sub_agents_record_is_found_by_the_id_that_its_answer_names(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        records = [Sealed(group_messages([Message(1, "user", "Count the pumps."), Message(2, "assistant", "Nine.")]))]
        session = sessions.create(database, folder="/work")
        theirs = sessions.create(database, records=records, parent=session, folder="/work", delegated=True)
        other = sessions.create(database, records=records, folder="/work")
        recall = Recollection(database, session)
        assert await recall.fetch_text(theirs) == "m1 (user): Count the pumps.\n\nm2 (assistant): Nine."
        assert await recall.fetch_text(other) == ""


async def test_the_answer_keeps_to_its_budget_and_names_what_it_left_out(tmp_path: Path) -> None:
    long = [
        Message(n, "user" if n % 2 else "assistant", f"harbour {n} " + "lorem ipsum dolor " * 400) for n in range(1, 40)
    ]
    with Database(tmp_path) as database:
        session = sessions.create(database, records=[Sealed(group_messages(long))])
        recall = Recollection(database, session)
        text = await recall.search("harbour lorem")
        assert database.count(text) <= MAX_ANSWER_TOKENS + 100
        told = await recall.fetch_text("m1-m39")
        assert database.count(told) <= MAX_ANSWER_TOKENS + 100 and "[more: recall the id m" in told
        last = told.rsplit("id ", 1)[1].rstrip("]")
        assert (await recall.fetch_text(last)).startswith(last.split("–")[0])
        assert await recall.search("nothing-like-this") == ""


@pytest.mark.long
def test_every_needle_is_found_after_three_passes(tmp_path: Path) -> None:
    needles, (told,) = asyncio.run(run(tmp_path, window_only, (3,), seed=11))
    everything = {needle.message for needle in needles}
    assert len(everything) == 208
    assert told.searched == everything and told.recalled == everything
    assert told.seen < everything  # what the view alone would give
