"""Who decides when: asked at the trigger, now, after this task, later, never; and what was taken back stays so for a while."""

from __future__ import annotations

import pytest

from ctxchat.agent.compaction.policy import When
from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    CompactionStarted,
    CompactionSuggested,
    Notice,
    TextDelta,
    TurnFinished,
)
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import LONG, Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says


def desk_of(auto_compact: str, writer: Writer | None = None, window: int = 20_000, **options: object) -> Desk:
    made = Options(
        **({"auto_compact": auto_compact, "keep_recent": 2, "strategy": "summarize", "prepare": False} | options)
    )  # type: ignore[arg-type]
    model = ScriptedModel((says(LONG) for _ in range(99)), window=Window(window, "configured"))
    return Desk(model, options=made, summariser=writer or Writer())


async def until_due(desk: Desk) -> list[object]:
    """Turns until something is said of the trigger; the events of the last."""
    for number in range(40):
        events = await desk.say(f"question {number} {LONG}")
        if of(events, CompactionSuggested) or any("full" in n.text for n in of(events, Notice)):
            return list(events)
    raise AssertionError("the trigger was never reached")


async def test_ask_suggests_once_a_turn_and_does_nothing_by_itself():
    writer = Writer()
    desk = desk_of("ask", writer)
    events = await until_due(desk)
    suggested = of(events, CompactionSuggested)
    assert len(suggested) == 1
    assert suggested[0].after_used < suggested[0].used < suggested[0].limit
    assert suggested[0].pressure == desk_pressure(suggested[0])
    assert not of(events, CompactionStarted) and not writer.asked
    assert len(of(await desk.say("more"), CompactionSuggested)) == 1
    await desk.session.measure()
    assert desk.state.ledger.changes == ()


def desk_pressure(event: CompactionSuggested) -> float:
    return round(event.used / event.limit, 4)


async def test_a_suggestion_snoozed_is_not_made_again_for_so_many_turns():
    desk = desk_of("ask", window=40_000)
    await until_due(desk)
    desk.session.policy.pause_for(2)
    assert [len(of(await desk.say("short"), CompactionSuggested)) for _ in range(3)] == [0, 0, 1]


async def test_after_this_task_runs_the_pass_when_the_answer_is_there():
    writer = Writer()
    desk = desk_of("ask", writer)
    await until_due(desk)
    desk.session.policy.agree("after", "keep the colours")
    events = await desk.say("now the task")
    kinds = [type(e) for e in events]
    assert kinds.index(CompactionStarted) > max(i for i, k in enumerate(kinds) if k is TextDelta)
    assert kinds[-1] is TurnFinished
    assert not of(events, CompactionSuggested)
    assert of(events, CompactionRecord)[0].outcome == "compacted"
    assert len(desk.state.ledger.compactions) == 1
    assert not of(await desk.say("and on"), CompactionStarted)


async def test_now_runs_the_pass_before_the_next_request_or_at_once_between_turns():
    desk = desk_of("ask")
    await until_due(desk)
    desk.session.policy.agree("now")
    kinds = [type(e) for e in await desk.say("go")]
    assert kinds.index(CompactionRecord) < kinds.index(TextDelta)

    idle = desk_of("ask")
    await until_due(idle)
    idle.session.policy.agree("now")
    events = [stamped.event async for stamped in idle.session.make_room()]
    assert of(events, CompactionRecord)[0].outcome == "compacted"
    assert not idle.session.busy


async def test_now_inside_a_long_turn_waits_for_a_place_where_no_call_is_open():
    script = [*(says(LONG) for _ in range(12)), calls(("echo", {"text": "x"})), says("done")]
    model = ScriptedModel(script, window=Window(20_000, "configured"))
    options = Options(auto_compact="ask", keep_recent=2, strategy="summarize", prepare=False)
    desk = Desk(model, tools=[Echo()], options=options, summariser=Writer())
    for number in range(12):
        await desk.say(f"q {number} {LONG}") if desk.session.context_usage.pressure < 0.6 else None
    while len(model.requests) < 12:
        await desk.say("short")
    agreed = False
    kinds: list[type] = []
    async for stamped in desk.session.send("a task"):
        kinds.append(type(stamped.event))
        if not agreed and stamped.event.__class__.__name__ == "ToolStarted":
            agreed = True
            desk.session.policy.agree("now")
    names = [k.__name__ for k in kinds]
    assert names.index("ToolFinished") < names.index("CompactionStarted") < names.index("CompactionRecord")
    assert len(model.requests[-1].view.items) < len(model.requests[-2].view.items) + 2


async def test_off_says_so_once_a_turn_and_no_more():
    writer = Writer()
    desk = desk_of("off", writer)
    events = await until_due(desk)
    assert len([n for n in of(events, Notice) if "F8" in n.text]) == 1
    assert not writer.asked and not of(events, CompactionStarted)


async def test_what_was_undone_does_not_come_back_with_the_next_message():
    desk = desk_of("auto", window=30_000)
    while not desk.state.ledger.compactions:
        await desk.say(f"question {LONG}")
    context_usage = await desk.session.changes.undo()
    assert context_usage.used >= context_usage.trigger_tokens and not context_usage.excess
    for _ in range(3):
        assert not of(await desk.say("short"), CompactionStarted)
    assert of(await desk.say("short"), CompactionRecord)[0].outcome == "compacted"


async def test_after_a_failed_pass_rest_does_not_shorten_the_wait():
    writer = Writer()
    desk = desk_of("auto", writer, window=8_000)
    while not desk.state.ledger.compactions:
        await desk.say("question " + LONG)
    while not (await desk.session.measure()).excess:
        for change in reversed(desk.state.ledger.compactions):
            await desk.session.changes.undo(change.id)
        if not desk.session.context_usage.excess:
            await desk.say("more " + LONG)
    writer.text, asked = ModelError("down", kind="server"), len(writer.asked)
    [told] = [n.text for n in of(await desk.say("one"), Notice) if "Next try" in n.text]
    assert told.endswith("Next try in 30 s, or by /compact.") and len(writer.asked) == asked + 1
    await desk.say("two")
    assert len(writer.asked) == asked + 1, "it was to wait"
    desk.clock.time += 31
    await desk.say("three")
    assert len(writer.asked) == asked + 2


async def test_an_undo_that_no_longer_fits_says_by_how_much_and_room_is_made_again():
    desk = desk_of("auto", window=30_000)
    while len(desk.state.ledger.compactions) < 1:
        await desk.say(f"question {LONG}")
    for number in range(5):
        await desk.say(f"more {number} {LONG}")
    over = 0
    while desk.state.ledger.changes:
        over = (await desk.session.changes.undo()).excess
    assert over == desk.session.context_usage.used - desk.session.context_usage.limit > 0
    events = await desk.say("go on")
    assert of(events, CompactionRecord)[0].outcome == "compacted"
    assert of(events, TurnFinished)[0].status == "done"


async def test_a_pass_planned_before_another_one_is_not_run_on_what_that_one_left():
    desk = desk_of("ask", window=60_000)
    for number in range(4):
        await desk.say(f"question {number} {LONG}")
    stale = await desk.session.preview()
    await desk.free_up()
    before = desk.state.ledger
    events = [stamped.event async for stamped in desk.session.free_up(stale)]
    assert [type(e) for e in events] == [Notice] and "Look again" in events[0].text  # type: ignore[union-attr]
    assert desk.state.ledger == before


async def test_a_summary_can_be_drafted_edited_and_applied_and_is_paid_for_once():
    writer = Writer("## Goal\nMeasure the tide.")
    desk = desk_of("ask", writer, window=60_000)
    for number in range(4):
        await desk.say(f"question {number} {LONG}")
    preview = await desk.session.preview("short, please")
    before = desk.state.ledger
    text = "".join([piece async for piece in desk.session.compaction.draft(preview)])
    assert text.strip() == "## Goal\nMeasure the tide." and desk.state.ledger == before
    events = [s.event async for s in desk.session.free_up(preview, summary=text.replace("tide", "ebb"))]
    assert of(events, CompactionRecord)[0].outcome == "compacted"
    assert len(writer.asked) == 1
    assert desk.state.ledger.compactions[0].record.summary.strip() == "## Goal\nMeasure the ebb."  # type: ignore[union-attr]
    assert desk.state.cost_usd == 0.01
    assert desk.folded() == desk.state


@pytest.mark.parametrize("when", ["now", "after"])
async def test_a_pass_that_cannot_be_planned_ends_no_turn(when: When):
    """The strategy may have left with its package since a person said yes."""
    desk = desk_of("ask", strategy="gone")
    for number in range(4):
        await desk.say(f"question {number} {LONG}")
    desk.session.policy.agree(when)
    events = await desk.say("go")
    assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
    assert "No compaction could be planned. There is no strategy 'gone'" in of(events, Notice)[-1].text
