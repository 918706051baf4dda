"""A compaction that is cancelled, or refused by the store, is made or not made: never half."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import pytest

from ctxchat.agent.model_knowledge import Known, ModelKnowledgeStore, NothingKnown
from ctxchat.core.budget import Window
from ctxchat.core.events import (
    CompactionStarted,
)
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Desk
from tests.agent.test_compaction import LONG, Writer
from tests.agent.test_races import cancelling, goes_on, listen
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, says


def roomy(writer: Writer, knowledge_store: ModelKnowledgeStore | None = None) -> Desk:
    model = ScriptedModel([says(LONG) for _ in range(9)], window=Window(60_000, "configured"))
    options = Options(keep_recent=2, strategy="summarize", prepare=False)
    store = knowledge_store or NothingKnown()
    return Desk(model, options=options, summariser=writer, knowledge_store=store)


@pytest.mark.parametrize("done", [False, True])
async def test_a_pass_cancelled_at_any_write_is_made_or_not_made(done: bool):
    outcomes: list[bool] = []
    for at in (1, 2, 3):
        one = roomy(Writer())
        for number in range(3):
            await one.say(f"question {number} {LONG}")
        before, used = one.state.ledger, one.session.context_usage.used
        preview = await one.session.preview()
        events: list[object] = []
        task = asyncio.create_task(listen(one.session.free_up(preview), events))
        cancelling(one, task, at, done, times=2)
        with suppress(asyncio.CancelledError):
            await task
        one.journal.watch = lambda number, after: None
        made = bool(one.state.ledger.compactions)
        outcomes.append(made)
        assert made or (one.state.ledger == before and one.session.context_usage.used == used)
        assert not made or one.session.context_usage.used < used
        assert [p.outcome for p in one.state.compactions] == ["compacted" if made else "failed"]
        assert [e for e in events if isinstance(e, CompactionRecord)] == (list(one.state.compactions) if made else [])
        await goes_on(one)
    assert outcomes == [False, True, True]


async def test_a_pass_cancelled_at_any_event_is_not_made():
    one = roomy(Writer())
    for number in range(3):
        await one.say(f"question {number} {LONG}")
    before, used = one.state.ledger, one.session.context_usage.used
    preview = await one.session.preview()
    for stop in range(1, 6):
        async with aclosing(one.session.free_up(preview)) as stream:
            for _ in range(stop):
                await anext(stream)
        assert one.state.ledger == before and one.session.context_usage.used == used
    assert all(p.outcome == "failed" for p in one.state.compactions)
    await goes_on(one)


async def test_a_store_that_refuses_during_a_pass_leaves_everything_as_it_was():
    whole = roomy(Writer())
    for number in range(3):
        await whole.say(f"question {number} {LONG}")
    start = whole.journal.calls
    await whole.free_up()
    for number in range(1, whole.journal.calls - start + 1):
        one = roomy(Writer())
        for count in range(3):
            await one.say(f"question {count} {LONG}")
        before, used = one.state.ledger, one.session.context_usage.used
        one.journal.broken = {one.journal.calls + number}
        result = of(await one.free_up(), CompactionRecord)[0]
        assert result.outcome == "failed" and "Nothing was changed" in result.detail
        assert one.state.ledger == before and one.session.context_usage.used == used
        await goes_on(one)
        assert of(await one.free_up(), CompactionRecord)[0].outcome == "compacted"


class Forgetful(NothingKnown):
    async def save(self, model: str, known: Known) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")


async def test_a_pass_that_is_made_counts_as_made_whatever_fails_after_it():
    one = roomy(Writer(), knowledge_store=Forgetful())
    for number in range(3):
        await one.say(f"question {number} {LONG}")
    result = of(await one.free_up(), CompactionRecord)[0]
    assert result.outcome == "compacted" and list(one.state.compactions) == [result]
    assert one.session.context_usage.used == result.after.used
    await goes_on(one)


async def test_passes_whose_end_is_owed_do_not_share_their_id_with_the_next():
    one = roomy(Writer())
    for number in range(3):
        await one.say(f"question {number} {LONG}")
    one.journal.full = True
    failed = [of(await one.free_up(), CompactionRecord)[0] for _ in range(2)]
    one.journal.full = False
    made = of(await one.free_up(), CompactionRecord)[0]
    assert made.outcome == "compacted" and len({p.id for p in (*failed, made)}) == 3
    assert [p.id for p in one.state.compactions] == [*(p.id for p in failed), made.id]
    await goes_on(one)


async def test_a_cancelled_automatic_pass_does_not_start_again_by_itself():
    writer = Writer()
    model = ScriptedModel([says(LONG) for _ in range(30)], window=Window(8_000, "configured"))
    one = Desk(model, options=Options(keep_recent=2, strategy="summarize", prepare=False), summariser=writer)
    stopped = False
    for number in range(8):
        async with aclosing(one.session.send(f"question {number} {LONG[:200]}")) as stream:
            async for stamped in stream:
                if isinstance(stamped.event, CompactionStarted) and not stopped:
                    stopped = True
                    break
        if stopped:
            break
    assert stopped
    asked = len(writer.asked)
    events = await one.say("short")
    assert not of(events, CompactionRecord) and len(writer.asked) == asked
