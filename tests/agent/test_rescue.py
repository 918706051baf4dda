"""The emergency ladder: the gentlest rung that fits the limit is taken, and whatever goes leaves a recap, facts or a pointer."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial

import pytest

from ctxchat.agent.compaction.overflow_recovery import recovery_steps
from ctxchat.agent.emitting import stream
from ctxchat.core.budget import Window
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from ctxchat.core.summaries import too_little
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says

TURNS = 12
RULE = "Never touch the firmware of pier 7."
ANSWER = "The gauge reports every 90 s to the logger. " * 6


async def in_a_small_window(window: int, last: str = "and now?") -> Desk:
    """Twelve turns with a large result each, then a model that holds far less than they take."""
    script = [
        reply
        for n in range(TURNS)
        for reply in (
            calls(("read_file", {"path": f"src/part_{n}.py", "text": f"line {n}\n", "times": 120})),
            says(ANSWER),
        )
    ]
    small = ScriptedModel([says("ok")] * 3, name="small/model", window=Window(window, "loaded"))
    desk = Desk(
        ScriptedModel([*script, says("yes")], window=Window(200_000, "loaded")),
        tools=[Echo("read_file")],
        options=Options(auto_compact="off", prepare=False, output_reserved=300),
        others={"small/model": small},
    )
    for n in range(TURNS):
        await desk.say(f"Question {n}? " + (RULE if n == 1 else ""))
    await desk.say(last)
    desk.conversation.use(await desk.conversation.learned_of(small))
    await desk.conversation.refresh()
    return desk


@pytest.mark.parametrize("window", [5_200, 4_000, 3_400, 2_800, 2_200, 1_500])
async def test_the_gentlest_rung_that_fits_is_taken_and_all_that_goes_leaves_a_trace(window: int) -> None:
    desk = await in_a_small_window(window)
    planner, raw = desk.compactor.planner, desk.session.view.raw
    goal = planner.raw_budget().limit
    assert raw > goal
    left: list[tuple[str, int]] = []
    for rung in recovery_steps(desk.conversation.options.keep_recent, desk.conversation.options.emergency_floor):
        plan = await planner.plan(
            rung.strategy, keep_recent=rung.keep_recent, keep_turns=rung.keep_turns, clip_current=rung.clip_current
        )
        if plan is not None and not too_little(plan.before, plan.after):
            left.append((rung.strategy, plan.after))
    async with aclosing(
        stream(partial(desk.compactor.recovery().make_fit, "model_switch"), lambda event: event)
    ) as events:
        [record] = of([event async for event in events], CompactionRecord)
    fitting = [name for name, after in left if after <= goal]
    assert record.strategy == (fitting[0] if fitting else min(left, key=lambda rung: rung[1])[0])
    assert record.outcome == "compacted" and desk.session.view.raw < raw
    assert not fitting or desk.session.view.raw <= goal
    assert not problems(desk.session.view)
    ledger = desk.state.ledger
    assert all(entry.group is not None for entry in ledger.live())
    shown = "\n".join(item.message.text for item in desk.session.view.items)
    for change in ledger.compactions:
        for edit in change.edits:
            told = "\n".join(m.text for m in edit.replacement.messages) if edit.replacement else ""
            assert (edit.kind == "digest" and "m1" in told) or "tool-results/" in told
    assert RULE in shown or window < 2_800, "a rule of the person stands, as long as there is room for facts at all"
    assert f"Question {TURNS - 1}?" in shown and "and now?" in shown
    if record.strategy in {"truncate", "sliding_window"}:
        summary = next(item.message.text for item in desk.session.view.items if item.section == "summary")
        assert "Done last:" in summary and "part_" in summary
        assert "Facts kept exactly:" in summary or window < 2_800
    await desk.session.close()


async def test_every_rung_is_taken_somewhere() -> None:
    """The windows above are no good where they all lead to one rung."""
    taken: set[str] = set()
    for window, last in ((5_200, "and?"), (2_800, "and?"), (1_500, "and? " + "x y " * 900)):
        desk = await in_a_small_window(window, last)
        async with aclosing(
            stream(partial(desk.compactor.recovery().make_fit, "model_switch"), lambda event: event)
        ) as events:
            taken |= {r.strategy for r in of([event async for event in events], CompactionRecord)}
        await desk.session.close()
    assert {"shrink_tool_results", "truncate"} <= taken and taken & {"oversize", "sliding_window"}
