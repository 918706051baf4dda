"""The first answer of `recall` among long edits, drafts alike, short corrections and renamed functions."""

from __future__ import annotations

from pathlib import Path

from benchmarks.retold import answered, filled
from ctxchat.bootstrap.recall import LARGER_ANSWER_FACTOR, MAX_ANSWER_TOKENS, Recollection
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import ModelChosen, Sealed
from ctxchat.core.messages import Message
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database


async def test_the_first_answer_holds_what_is_needed(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        session, asked = filled(database, seed=11)
        found = await answered(database, session, asked)
        assert len(found) == 40 and sum(found) >= 38
        text = await Recollection(database, session).search("draft of the sidebar document")
        assert "nearly the same as the older m" in text
        assert "[called" in text or "(its result)" in text
        recall = Recollection(database, session)
        query = "How is each row of the tide chart drawn?"
        small, large = await recall.search(query), await recall.search(query, room="large")
        assert (
            database.count(small) < MAX_ANSWER_TOKENS + 600
            and database.count(small) < database.count(large) < LARGER_ANSWER_FACTOR * MAX_ANSWER_TOKENS + 600
        )


async def test_the_folders_other_sessions_when_asked_for(tmp_path: Path) -> None:
    def said(text: str) -> Sealed:
        return Sealed(group_messages([Message(1, "user", text), Message(2, "assistant", "Noted.")]))

    with Database(tmp_path) as database:
        here = sessions.create(database, records=[said("hello")], folder="/home/me/tide")
        sister = sessions.create(database, records=[said("the harbour gate opens at nine")], folder="/home/me/tide")
        stranger = sessions.create(database, records=[said("the harbour gate opens at ten")], folder="/home/me/other")
        recall = Recollection(database, here)
        assert await recall.search("when does the harbour gate open") == ""
        text = await recall.search("when does the harbour gate open", scope="folder")
        assert f"{sister}/m1 (user" in text and "at nine" in text and "at ten" not in text
        assert "at nine" in await recall.fetch_text(f"{sister}/m1")
        assert (await recall.fetch_text(f"{sister}/m1-m2")).startswith("m1 (user)")
        assert await recall.fetch_text(f"{stranger}/m1") == ""
        assert "since:soon is no time" in await recall.search("gate since:soon")


async def test_what_was_handed_off_is_reached_as_ones_own(tmp_path: Path) -> None:
    def said(text: str) -> Sealed:
        return Sealed(group_messages([Message(1, "user", text), Message(2, "assistant", "Noted.")]))

    with Database(tmp_path) as database:
        records = [said("the harbour gate opens at nine"), ModelChosen("openai/gpt-4o", "http://here/v1")]
        first = sessions.create(database, records=records, folder="/home/me/tide", title="The gate")
        fresh = sessions.hand_off(database, first, "mend the gate")
        state = loading.load_state(database, fresh).state
        assert (state.continues, state.title, state.model) == (first, "mend the gate", "openai/gpt-4o")
        assert state.address == "http://here/v1" and not state.ledger.groups
        assert sessions.row(database, fresh).parent == first
        parts = [sessions.row(database, sessions.hand_off(database, of)).title for of in (first, first)]
        assert parts == ["Part 2 of The gate", "Part 3 of The gate"], "neither is taken for the other"
        recall = Recollection(database, fresh, state.continues)
        text = await recall.search("when does the harbour gate open")
        assert f"{first}/m1 (user" in text and "at nine" in text
        assert "at nine" in await recall.fetch_text(f"{first}/m1")
