"""State and journal in step, whatever is noted while the store is at work."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.journal_writer import JournalWriter
from ctxchat.core.events import Usage
from ctxchat.core.journal import Measured, SessionState, Spent, fold
from tests.agent.desk import MemoryJournal


@given(st.lists(st.sampled_from(["", "before", "during"]), min_size=1, max_size=8))
def test_what_is_noted_during_a_write_is_folded_where_it_is_written(paid: list[str]) -> None:
    """A summary made ahead may be paid for at any moment, that in which a turn is being written included."""

    async def run() -> None:
        journal = MemoryJournal()
        writer = JournalWriter(journal, SessionState())
        for number, when in enumerate(paid):
            spent = Spent("model", 0.5**number, "summaries")
            if when == "before":
                writer.apply_now_write_later(spent)

            def watch(_: int, done: bool, when: str = when, spent: Spent = spent) -> None:
                if when == "during" and not done:
                    writer.apply_now_write_later(spent)

            journal.watch = watch
            await writer.write(Measured("model", Usage(10, 5, cost_usd=1.0), 15, turn_end=True))
        journal.watch = lambda number, done: None
        await writer.flush()
        assert fold(journal.records) == writer.state

    asyncio.run(run())
