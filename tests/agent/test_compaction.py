"""Making room: due, refused, failed, cancelled, after an overflow. The state is right before, in between and after."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import BUDGET, ContextUsage
from ctxchat.core.errors import ModelError
from ctxchat.core.events import CompactionStarted, Failed, Notice, TextDelta, TurnFinished, Usage
from ctxchat.core.notes import CONTEXT_NOTE
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from ctxchat.core.quantities import made_smaller
from ctxchat.core.record import CompactionRecord
from ctxchat.core.view import View, problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import ScriptedModel, calls, fails, says

LONG = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * 30


class Writer:
    """A summariser that says what it is told to, or fails."""

    model = "writer/one"

    def __init__(self, text: str | ModelError = "## Goal\nKnow the gauge.") -> None:
        self.text = text
        self.asked: list[tuple[tuple[str, ...], str]] = []

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        self.asked.append((tuple(g.id for g in task.groups), task.previous))
        if isinstance(self.text, ModelError):
            raise self.text
        for word in self.text.split(" "):
            yield word + " "
        yield Usage(1000, 50, cost_usd=0.01)


def desk_of(turns: int, *, window: int = 8_000, writer: Writer | None = None, **options: object) -> Desk:
    script = [says(LONG) for _ in range(turns)]
    made = Options(**({"keep_recent": 2, "strategy": "summarize", "prepare": False} | options))  # type: ignore[arg-type]
    return Desk(ScriptedModel(script, window=Window(window, "configured")), options=made, summariser=writer or Writer())


async def conversation(desk: Desk, turns: int) -> list[object]:
    events: list[object] = []
    for number in range(turns):
        events += await desk.say(f"question {number}? " + LONG)
    return events


async def test_a_pass_runs_by_itself_at_the_trigger_and_everything_stays_in_the_record():
    writer = Writer()
    desk = desk_of(8, writer=writer)
    events = await conversation(desk, 8)
    passes = of(events, CompactionRecord)
    assert passes and all(p.outcome == "compacted" and p.reason == "auto" for p in passes)
    assert all(p.after.used < p.before.used for p in passes)
    assert len([m for m in desk.state.ledger.messages() if not m.synthetic]) == 16
    summaries = [e for e in desk.state.ledger.live() if e.group and e.group.kind == "summary"]
    assert len(summaries) == 1
    assert all(not problems(r.view) for r in desk.conversation.model.requests)
    assert all(adds_up(e) for e in of(events, ContextUsage))
    assert desk.folded() == desk.state
    assert desk.state.cost_usd == pytest.approx(0.01 * len(passes))


async def test_a_second_pass_merges_the_first_summary_and_does_not_read_its_messages_again():
    writer = Writer()
    desk = desk_of(12, writer=writer)
    await conversation(desk, 12)
    assert len(writer.asked) >= 2
    first, second = writer.asked[0], writer.asked[1]
    assert not set(first[0]) & set(second[0])
    assert "Know the gauge" in second[1]


@pytest.mark.parametrize(
    "text", ["", "   ", ModelError("cut off", kind="bad_summary"), ModelError("down", kind="server"), LONG * 8]
)
async def test_a_summary_that_does_not_help_changes_nothing_and_is_told_once(text: str | ModelError):
    desk = desk_of(8, writer=Writer(text))
    events = await conversation(desk, 5)
    before = desk.state.ledger
    assert before.changes == ()
    failed = [p for p in of(events, CompactionRecord) if p.outcome in {"failed", "rejected"}]
    assert len(failed) == 1  # then it backs off
    assert len([n for n in of(events, Notice) if "Next try" in n.text]) == 1


async def test_three_failures_open_the_breaker_and_a_pass_by_hand_closes_it():
    writer = Writer(ModelError("down", kind="server"))
    desk = desk_of(30, writer=writer, window=60_000, compression_trigger=0.1, target=0.05)
    for _ in range(8):
        await desk.say("q " + LONG)
        desk.clock.time += 500
    assert len(writer.asked) == 3
    writer.text = "## Goal\nshort"
    result = of(await desk.free_up(), CompactionRecord)[0]
    assert result.outcome == "compacted" and result.reason == "manual"
    for _ in range(6):
        await desk.say("q " + LONG)
    assert len(writer.asked) > 4


async def test_cancelling_a_pass_leaves_everything_as_it_was():
    desk = desk_of(6)
    await conversation(desk, 3)
    before, view = desk.state.ledger, desk.session.view
    preview = await desk.session.preview()
    assert preview.plan is not None
    async with aclosing(desk.session.free_up(preview)) as events:
        async for stamped in events:
            if isinstance(stamped.event, CompactionStarted):
                break
    assert desk.state.ledger == before
    await desk.session.measure()
    assert desk.session.view == view
    assert not desk.session.busy


async def test_preview_changes_nothing_and_a_pass_does_what_it_said():
    desk = desk_of(6)
    await conversation(desk, 3)
    before = desk.state
    preview = await desk.session.preview()
    assert desk.state == before and preview.after.used < preview.before.used
    result = of(await desk.free_up(), CompactionRecord)[0]
    assert result.outcome == "compacted"
    assert result.after.used <= preview.after.used * 1.05


async def test_undo_after_later_turns_gives_back_every_word():
    desk = desk_of(12)
    await conversation(desk, 6)
    assert desk.state.ledger.compactions
    await desk.say("later " + LONG)
    while desk.state.ledger.changes:
        await desk.session.changes.undo()
    shown = {i.message.seq for i in desk.session.view.items if i.group}
    assert shown == {m.seq for m in desk.state.ledger.messages()}
    assert desk.folded() == desk.state


async def test_nothing_to_free_is_said_calmly_and_calls_nobody():
    writer = Writer()
    desk = desk_of(2, writer=writer)
    preview = await desk.session.preview()
    assert preview.plan is None and "Nothing to free" in preview.reason
    assert "F4" not in preview.reason  # read on the command line too
    async with aclosing(desk.session.free_up(preview)) as events:
        told = [e.event async for e in events]
    assert [type(e) for e in told] == [Notice] and writer.asked == []


OVERFLOW = ModelError(
    "This model's maximum context length is 6000 tokens. However, your messages resulted in 7000 tokens.",
    kind="bad_request",
    status=400,
)


async def test_an_overflow_is_mended_in_one_pass_and_sent_again_without_the_partial():
    script = [*(says(LONG) for _ in range(4)), fails(OVERFLOW, after="half an answ"), says("whole answer")]
    desk = Desk(
        ScriptedModel(script, window=Window(20_000, "catalogue")),
        options=Options(auto_compact="off", keep_recent=4, prepare=False),
    )
    await conversation(desk, 4)
    events = await desk.say("and now?")
    passes = of(events, CompactionRecord)
    assert [p.reason for p in passes if p.outcome == "compacted"] == ["context_overflow"]
    assert of(events, TurnFinished)[0].text == "whole answer"
    assert desk.state.ledger.groups[-1].first.text == "whole answer"
    assert desk.session.context_usage.window == 6000 and desk.session.context_usage.window_source == "learned"
    requests = desk.conversation.model.requests
    assert requests[-1].view.raw < requests[-2].view.raw
    assert any("refused" in n.text and "6k" in n.text for n in of(events, Notice))


async def test_an_overflow_that_stays_ends_with_the_first_error_and_the_largest_offenders():
    script = [*(says(LONG) for _ in range(4)), *(fails(OVERFLOW) for _ in range(9))]
    desk = Desk(
        ScriptedModel(script, window=Window(20_000, "catalogue")), options=Options(auto_compact="off", keep_recent=8)
    )
    await conversation(desk, 4)
    events = await desk.say("and now?")
    requests = desk.conversation.model.requests[4:]
    assert len(requests) <= 3
    sizes = [r.view.raw for r in requests]
    assert sizes == sorted(set(sizes), reverse=True)
    problem = of(events, Failed)[0]
    assert problem.kind == "overflow" and "maximum context length" in problem.text and "Largest" in problem.hint
    assert len(desk.state.ledger.messages()) == 9


class Numbered(Writer):
    """Says something else each time."""

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        yield f"## Goal {len(self.asked)}\n"
        async for piece in super().summarise(task):
            yield piece


async def test_a_prepared_summary_is_swapped_in_without_a_call():
    writer = Numbered()
    desk = desk_of(20, writer=writer, prepare=True, window=12_000)
    asked_at_swap: list[int] = []
    for number in range(10):
        events = await desk.say(f"q{number} " + LONG)
        for event in events:
            if isinstance(event, CompactionRecord):
                assert event.outcome == "compacted"
                asked_at_swap.append(len(writer.asked))
        if desk.session.compaction.ghost:
            assert desk.session.compaction.ghost < desk.session.context_usage.used
    assert asked_at_swap
    read = [group for groups, _ in writer.asked for group in groups]
    assert len(read) == len(set(read)), "what stands ready is topped up, never made again"


def told_of_the_window(view: View) -> int | None:
    """How many tokens the newest line about the window says are used, to a hundred; None where there is none."""
    line = next((i.message.text for i in reversed(view.items) if i.source == f"{CONTEXT_NOTE}{BUDGET}"), "")
    found = re.search(r"\((\d+\.\d)k of", line)
    return round(float(found[1]) * 1_000) if found else None


async def test_what_the_model_is_told_of_its_window_counts_what_it_is_shown_before_and_after_a_pass():
    script = [
        step
        for n in range(12)
        for step in (calls(("echo", {"text": f"{n} word ", "times": 300})), says(f"answer {n}. {LONG}"))
    ]
    model = ScriptedModel(script, window=Window(8_000, "configured"))
    options = Options(keep_recent=2, strategy="summarize", prepare=False)
    desk = Desk(model, tools=[Echo()], options=options, summariser=Writer())
    for number in range(12):
        await desk.say(f"q{number} {LONG}")
    told = [(told_of_the_window(r.view), r.view) for r in model.requests]
    assert desk.state.ledger.compactions and None in [n for n, _ in told] and sum(n is not None for n, _ in told) > 3
    new = 0
    for used, view in told:
        if used is not None and view.items[-1].source == f"{CONTEXT_NOTE}{BUDGET}":
            new += 1
            assert used == pytest.approx(view.raw - view.items[-1].tokens, abs=100), "a count of ours, to a hundred"
    assert new, "and it stays where it was first said"


async def test_what_was_told_of_a_fuller_window_goes_when_results_become_shorter():
    script = [
        step for n in range(16) for step in (calls(("echo", {"text": f"{n} word ", "times": 500})), says(f"answer {n}"))
    ]
    options = Options(keep_recent=2, recent_results=1, strategy="shrink_tool_results", prepare=False, min_messages=1)
    model = ScriptedModel(script, window=Window(9_000, "configured"))
    desk = Desk(model, tools=[Echo()], options=options, mode="all")
    for number in range(16):
        await desk.say(f"q{number}")
    told = [(told_of_the_window(r.view), r.view.raw) for r in model.requests]
    assert len(desk.state.ledger.compactions) > 1 and any(used is not None for used, _ in told)
    assert all(used is None or used <= raw + 100 for used, raw in told)


async def test_overhead_above_the_trigger_is_named_and_nothing_is_called():
    writer = Writer()
    model = ScriptedModel([says("a") for _ in range(6)], window=Window(4_000, "loaded"))
    desk = Desk(model, system="rule " * 2500, summariser=writer, options=Options(keep_recent=2, min_messages=1))
    events = await conversation(desk, 2)
    assert writer.asked == []
    assert any("cannot be compacted" in n.text for n in of(events, Notice))
    assert of(events, TextDelta)


async def test_after_an_undo_the_gauge_is_as_announced_though_the_window_is_nearly_full():
    model = ScriptedModel([says(LONG) for _ in range(9)], window=Window(8_000, "configured"))
    desk = Desk(model, options=Options(keep_recent=2, prepare=False, auto_compact="off"), summariser=Writer())
    await conversation(desk, 9)
    assert told_of_the_window(desk.session.view)
    await desk.free_up()
    assert told_of_the_window(desk.session.view) is None
    looked = await desk.session.changes.preview_undo()
    assert (await desk.session.changes.undo()).used == looked.after.used


async def test_what_was_done_is_said_as_it_was_done():
    script = [
        step for n in range(8) for step in (calls(("echo", {"text": f"{n} word ", "times": 300})), says(f"answer {n}"))
    ]
    options = Options(keep_recent=2, recent_results=2, strategy="shrink_tool_results", prepare=False, min_messages=1)
    model = ScriptedModel(script, window=Window(64_000, "configured"))
    desk = Desk(model, tools=[Echo()], options=options, summariser=Writer(), mode="all")
    for number in range(8):
        await desk.say(f"question {number}?")
    await desk.free_up()
    record = desk.state.ledger.compactions[0].record
    assert record and record.shortened == record.folded_messages == record.folded_groups > 2, (
        "not the calls beside them"
    )
    assert record.detail.startswith(f"{record.shortened} messages shortened")
    assert (await desk.session.changes.preview_undo()).messages == record.shortened
    await desk.session.changes.undo(record.id, record.folded[-1:])
    left = desk.state.ledger.compactions[0].record
    assert left and left.shortened == left.folded_messages == record.shortened - 1 and left.back.messages == 1
    assert made_smaller(30, 6) == "24 messages compacted, 6 shortened"
    assert made_smaller(30, 6, wide=False) == "24 compacted, 6 shortened"
    assert made_smaller(1, 0) == "1 message compacted"
