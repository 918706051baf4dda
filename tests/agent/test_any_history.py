"""The real compactor over any history, pass after compaction: views valid, record whole, one summary, each undone exactly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from hypothesis import event, given
from hypothesis import strategies as st

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import LedgerError, ModelError
from ctxchat.core.events import Event, Failed, TurnFinished, Usage
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Changed, Sealed
from ctxchat.core.ledger import Change
from ctxchat.core.messages import Message
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from ctxchat.core.record import CompactionRecord
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.view import problems
from tests.agent.desk import Desk
from tests.agent.test_turn import adds_up, of
from tests.core.histories import histories, work
from tests.doubles.scripted import ScriptedModel, fails, says
from tests.examples import examples

NAMES = sorted(builtin_strategies(PlanOptions()))
EXAMPLES = examples(8, 300)  # each is a session of many turns and compactions


class Filler:
    """Summaries as long as they may be."""

    model = "writer/any"

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        yield "w " * max(1, (task.max_tokens * 3 - 3) // 2)
        yield Usage(10, task.max_tokens, cost_usd=0.001)


def opened(history: list[Message], window: int, keep: int, pins: list[int], script: list[object]) -> Desk:
    groups = group_messages(history)
    records: list[object] = [Sealed(groups)] if groups else []
    for place in {p for p in pins if p < len(groups)}:
        records.append(Changed(Change(f"pin{place}", "pin", pins=(groups[place].id,))))
    model = ScriptedModel(script, window=Window(window, "configured"))  # type: ignore[arg-type]
    options = Options(keep_recent=keep, prepare=False, auto_compact="off", output_reserved=200)
    return Desk(model, options=options, records=records, summariser=Filler())  # type: ignore[arg-type]


async def one_pass(desk: Desk, name: str, keep: int, target: float) -> list[Event]:
    preview = await desk.session.preview("", keep, strategy=name, target=target)
    async with aclosing(desk.session.free_up(preview)) as stream:
        return [stamped.event async for stamped in stream]


def whole(desk: Desk) -> None:
    """What must hold after anything whatever."""
    ledger = desk.state.ledger
    assert problems(desk.session.view) == []
    assert len(earlier(ledger)) <= 1
    assert sorted(c for e in ledger.live() for c in e.covers) == sorted(g.id for g in ledger.groups)
    assert adds_up(desk.session.context_usage)


def whole_and_written(desk: Desk) -> None:
    whole(desk)
    assert desk.folded() == desk.state


@examples(60, 1_500)
@given(
    history=histories,
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
    keep=st.integers(0, 8),
    pins=st.lists(st.integers(0, 20), max_size=2),
    window=st.sampled_from([900, 3_000, 20_000]),
    target=st.floats(0.02, 0.7),
)
def test_passes_in_a_row_keep_every_promise(
    history: list[Message], names: list[str], keep: int, pins: list[int], window: int, target: float
) -> None:
    async def run() -> None:
        desk = opened(history, window, keep, pins, [])
        record = desk.state.ledger.groups
        await desk.session.measure()
        first = desk.session.view
        for name in names:
            before = desk.session.view
            events = await one_pass(desk, name, keep, target)
            results = of(events, CompactionRecord)
            assert all(r.outcome in {"compacted", "rejected"} for r in results), results
            whole_and_written(desk)
            if results and results[0].outcome == "compacted":
                event("compacted")
                assert desk.session.view.raw < before.raw
                assert results[0].after.used == desk.session.context_usage.used
                ledger = desk.state.ledger
                again = await one_pass(desk, name, keep, target)
                assert desk.state.ledger == ledger, "a second pass over the same state changes nothing"
                assert not [r for r in of(again, CompactionRecord) if r.outcome == "compacted"]
            else:
                assert desk.session.view == before
        assert desk.state.ledger.groups == record
        for pinned in desk.state.ledger.pinned:
            kept = [i.message for i in desk.session.view.items if i.group == pinned]
            assert kept == [i.message for i in first.items if i.group == pinned]
        while desk.state.ledger.compactions:
            await desk.session.changes.undo(desk.state.ledger.compactions[0].id)
            assert problems(desk.session.view) == []
        assert desk.session.view == first, "and all of it can be undone, the oldest first"

    asyncio.run(run())


@EXAMPLES
@given(
    history=histories | work(),
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    parts=st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 30), min_size=1)), min_size=1, max_size=3),
    keep=st.integers(0, 4),
    window=st.sampled_from([900, 3_000, 20_000]),
)
def test_what_comes_back_in_part_is_told_once_and_all_of_it_still_comes_back(
    history: list[Message], names: list[str], parts: list[tuple[int, set[int]]], keep: int, window: int
) -> None:
    async def run() -> None:
        desk = opened(history, window, keep, [], [])
        changes = desk.session.changes
        await desk.session.measure()
        first = desk.session.view
        for name in names:
            desk.clock.time += 1  # what is redone is told from what was made since by its time
            await one_pass(desk, name, keep, 0.1)
        for place, some in parts:
            passes = desk.state.ledger.compactions
            if not passes:
                return
            of = passes[place % len(passes)]
            groups = [g.id for number, g in enumerate(desk.state.ledger.groups) if number in some]
            if not groups:
                continue
            without = desk.state.ledger.undo(of.id).live()
            before = desk.state
            try:
                await changes.undo(of.id, groups)
            except LedgerError:
                assert desk.state == before
                continue
            event("in part")
            ledger = desk.state.ledger
            assert problems(desk.session.view) == [] and adds_up(desk.session.context_usage)
            assert sorted(c for e in ledger.live() for c in e.covers) == sorted(g.id for g in ledger.groups)
            assert desk.folded() == desk.state
            back = [e for e in without if set(groups).issuperset(e.covers)]
            assert all(e in ledger.live() for e in back), "what comes back is as it was before"
            for entry in earlier(ledger):
                told = {m.seq for g in entry.covers for m in ledger.group(g).messages}
                assert entry.digest and told.issuperset(f.seq for f in entry.digest.evidence.facts)
            left = desk.state.ledger
            await changes.undo(of.id)
            assert set(desk.state.ledger.live()) == set(without)
            await changes.redo(of.id)
            assert set(desk.state.ledger.live()) == set(left.live()), "what was left is redone exactly"
        while desk.state.ledger.compactions:
            await changes.undo(desk.state.ledger.compactions[0].id)
        assert desk.session.view == first

    asyncio.run(run())


OVERFLOW = ModelError("maximum context length exceeded", kind="bad_request", status=400)


@EXAMPLES
@given(
    history=work(),
    keep=st.integers(1, 12),
    refused=st.integers(1, 4),
    window=st.sampled_from([2_000, 8_000, 40_000]),
    question=st.sampled_from(["go on", "word " * 900, "日本語の文章です。" * 60]),
)
def test_nothing_is_sent_again_unchanged_after_an_overflow(
    history: list[Message], keep: int, refused: int, window: int, question: str
) -> None:
    async def run() -> None:
        script = [*(fails(OVERFLOW, after="half ") for _ in range(refused)), says("whole"), says("next")]
        desk = opened(history, window, keep, [], script)
        events = await desk.say(question)
        sizes = [request.view.raw for request in desk.conversation.model.requests]  # type: ignore[attr-defined]
        assert len(sizes) <= 3
        assert sizes == sorted(set(sizes), reverse=True), "each smaller than the one before"
        whole_and_written(desk)
        end = of(events, TurnFinished)[0]
        assert (end.status == "done") == (not of(events, Failed))
        assert end.text != "half "
        assert all(adds_up(e) for e in of(events, ContextUsage))
        record = [m.text for m in desk.state.ledger.messages()]
        assert question in record and "half " not in record

    asyncio.run(run())


@EXAMPLES
@given(
    turns=st.lists(st.tuples(st.integers(20, 2_500), st.integers(20, 2_500)), min_size=3, max_size=9),
    keep=st.integers(1, 6),
    window=st.sampled_from([4_000, 9_000]),
)
def test_talk_of_any_length_keeps_fitting(turns: list[tuple[int, int]], keep: int, window: int) -> None:
    """With passes that start by themselves and summaries made ahead, every request is valid and holds its question."""

    async def run() -> None:
        model = ScriptedModel([says("a " * answer) for _, answer in turns], window=Window(window, "loaded"))
        desk = Desk(model, options=Options(keep_recent=keep, output_reserved=500), summariser=Filler())
        for number, (question, _) in enumerate(turns):
            await desk.say(f"question {number} " + "q " * question)
            whole(desk)
        for number, request in enumerate(model.requests):
            assert problems(request.view) == []
            assert any(f"question {number} " in i.message.text for i in request.view.items if i.kind == "user")
        assert len([m for m in desk.state.ledger.messages() if not m.synthetic]) == 2 * len(turns)
        await desk.session.close()
        whole_and_written(desk)  # what a summary made ahead cost goes to the journal with whatever is written next

    asyncio.run(run())
