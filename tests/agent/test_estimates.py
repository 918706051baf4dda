"""What is said of a compaction before it is made: near what comes of it, adding up, and made on one moment of the
conversation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.compaction.dry_run import USUAL_SUMMARY_SHARE
from ctxchat.agent.model_knowledge import Known, ModelKnowledgeStore
from ctxchat.core.budget import Window
from ctxchat.core.clip import head
from ctxchat.core.events import Usage
from ctxchat.core.options import Options
from ctxchat.core.ports import Summariser, SummaryTask
from ctxchat.core.record import CompactionRecord
from ctxchat.core.strategies.builtin import LOSSLESS
from ctxchat.core.tokens import rough_count
from ctxchat.models.offline.summary import OfflineSummariser
from ctxchat.presentation.bar import layout_bar
from ctxchat.presentation.compactions import compaction_entries
from ctxchat.tui.panels.compaction_text import facts
from tests.agent.desk import NOTHING_KNOWN, Desk, Echo
from tests.agent.test_compaction import LONG, Writer
from tests.agent.test_turn import of
from tests.agent.test_windows import Shelf
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.examples import examples

BAND = 0.08
"""Of what is used before, either way."""


class Terse(Writer):
    """A model that writes less than anybody would expect."""

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        self.asked.append((tuple(g.id for g in task.groups), task.previous))
        yield "## Goal\nSpeed."


async def worked(
    turns: int,
    writer: Summariser | None = None,
    knowledge_store: ModelKnowledgeStore = NOTHING_KNOWN,
    **options: object,
) -> Desk:
    model = ScriptedModel(
        (
            reply
            for n in range(2 * turns)
            for reply in (calls(("read_file", {"path": f"src/part_{n}.py", "text": LONG})), says(f"Done {n}. {LONG}"))
        ),
        window=Window(64_000, "configured"),
    )
    desk = Desk(
        model,
        tools=[Echo("read_file")],
        options=Options(**({"prepare": False} | options)),
        summariser=writer or OfflineSummariser(),  # type: ignore[arg-type]
        knowledge_store=knowledge_store,
    )
    for number in range(turns):
        await desk.say(f"question {number}: why is part {number} slow?")
    return desk


@pytest.mark.parametrize("strategy", ["pipeline", "summarize", "truncate", "drop_tool_calls", "token_budget"])
@pytest.mark.parametrize("turns", [8, 14])
async def test_a_preview_tells_what_will_come_of_it(strategy: str, turns: int) -> None:
    desk = await worked(turns, strategy=strategy, keep_recent=4)
    preview = await desk.session.preview()
    [result] = of(await desk.free_up(), CompactionRecord)
    assert result.outcome == "compacted"
    used = preview.before.used
    assert preview.after.used == result.after.used, "code that writes is asked at once"
    assert preview.facts.found == result.facts.found
    if any(step.needs_model for step in preview.steps):
        assert abs(sum(s.tokens_freed for s in preview.steps) - (used - preview.after.used)) <= len(preview.steps)


@pytest.mark.parametrize("unticked", ["drop_superseded", "shrink_tool_results"])
async def test_a_preview_with_a_step_unticked_tells_what_will_come_of_it(unticked: str) -> None:
    reads = [("read_file", {"path": f"src/part_{n % 3}.py", "text": LONG}) for n in range(14)]
    script = (reply for read in reads for reply in (calls(read), says("Done.")))
    options = Options(keep_recent=4, prepare=False, recent_results=3, target=0.05)
    model = ScriptedModel(script, window=Window(64_000, "configured"))
    desk = Desk(model, tools=[Echo("read_file")], options=options, summariser=OfflineSummariser())
    for number in range(14):
        await desk.say(f"question {number}: why is part {number} slow?")
    whole = await desk.session.preview()
    ticked = [step.name for step in whole.steps if step.name != unticked]
    assert len(ticked) == len(whole.steps) - 1 > 0
    preview = await desk.session.planner.with_steps(whole, ticked)
    [result] = of([e.event async for e in desk.session.free_up(whole, ticked)], CompactionRecord)
    assert result.outcome == "compacted"
    assert preview.after.used == result.after.used, "what is unticked may be done by another step"
    assert [s.tokens_freed for s in preview.steps] == [s.tokens_freed for s in result.steps]
    assert preview.facts.found == result.facts.found


async def test_the_preview_says_that_what_was_read_twice_is_among_the_newest() -> None:
    names = [f"src/part_{n}.py" for n in range(8)] + ["src/twice.py"] * 2
    script = (reply for path in names for reply in (calls(("read_file", {"path": path, "text": LONG})), says("Done.")))
    options = Options(keep_recent=8, prepare=False, target=0.05)
    model = ScriptedModel(script, window=Window(64_000, "configured"))
    desk = Desk(model, tools=[Echo("read_file")], options=options, summariser=OfflineSummariser())
    for path in names:
        await desk.say(f"question: why is {path} slow?")
    preview = await desk.session.preview(keep_recent=8)
    why = {step.name: step.why_nothing for step in preview.other_steps}
    assert why["drop_superseded"] == "what was read or run twice is among the newest"


async def test_what_is_no_part_of_the_plan_tells_its_gain_and_runs_where_it_is_ticked() -> None:
    desk = await worked(14, OfflineSummariser(), keep_recent=4)
    context_usage, planner = desk.session.context_usage, desk.session.planner
    near = (context_usage.used - 5_000) / context_usage.limit  # which cutting results reaches
    whole = await planner.preview(target=near)
    assert {s.name for s in whole.all_steps} >= {*LOSSLESS, "summarize"}
    assert all(bool(s.why_nothing) == (s.tokens_freed <= 0) for s in whole.other_steps)
    [summary] = [s for s in whole.other_steps if s.needs_model]
    names = [*(s.name for s in whole.steps), summary.name]
    preview = await planner.with_steps(whole, names)
    assert [s.name for s in preview.steps] == names and preview.after.used < whole.after.used
    wanted = await planner.preview("keep the names", target=near)
    assert wanted.steps == preview.steps, "who tells a summary something wants one"
    [result] = of([e.event async for e in desk.session.free_up(whole, names)], CompactionRecord)
    assert result.after.used == preview.after.used


async def test_a_model_is_not_asked_for_a_look() -> None:
    writer = Terse()
    desk = await worked(14, writer, strategy="summarize", keep_recent=4)
    preview = await desk.session.preview()
    assert writer.asked == [] and preview.model == writer.model
    [result] = of(await desk.free_up(), CompactionRecord)
    assert 0 <= preview.after.used - result.after.used <= BAND * preview.before.used


async def test_a_suggestion_and_a_ghost_do_not_reckon_with_the_longest_summary_there_may_be() -> None:
    desk = await worked(14, strategy="summarize", keep_recent=4)
    plan = await desk.compactor.planner.plan("summarize", keep_recent=4, target=0.3)
    assert plan is not None
    longest = round(plan.after * desk.conversation.scale)
    assert plan.steps[0].summary_tokens > 1200 and desk.compactor.planner.after_used(plan) < longest - 500


async def test_facts_of_what_only_became_shorter_are_kept_and_one_read_away() -> None:
    desk = await worked(8, strategy="shrink_tool_results", keep_recent=2)
    [result] = of(await desk.free_up(), CompactionRecord)
    assert result.facts.found == result.facts.kept > 0
    assert not result.facts.near or f"({result.facts.near} of them one read away)" in result.detail
    record = desk.state.ledger.compactions[0].record
    assert record is not None and record.lost == ()


@pytest.mark.parametrize("strategy", ["pipeline", "summarize", "shrink_tool_results"])
async def test_the_facts_that_are_listed_are_those_that_are_counted(strategy: str) -> None:
    desk = await worked(8, strategy=strategy, keep_recent=2)
    [result] = of(await desk.free_up(), CompactionRecord)
    [entry] = compaction_entries(desk.state)
    listed = facts(entry, await desk.session.seen_view(), desk.state.ledger).plain
    head, *lines = [line for line in listed.splitlines() if line]
    assert f"{result.facts.kept} of the {result.facts.found} facts" in head
    assert sum(line.startswith(("✓", "–")) for line in lines) == result.facts.found > 0


async def test_facts_that_have_no_room_are_told_as_lost() -> None:
    desk = await worked(
        28, strategy="drop_tool_calls", keep_recent=2, facts_max_tokens=0, auto_compact="off", target=0.05
    )
    [result] = of(await desk.free_up(), CompactionRecord)
    assert result.facts.kept < result.facts.found and result.facts.near == 0
    assert f"kept {result.facts.kept} of {result.facts.found} facts" in result.detail
    assert len(desk.session.changes.lost_facts(result.id)) == result.facts.found - result.facts.kept


async def test_a_preview_of_what_changed_meanwhile_is_not_run() -> None:
    desk = await worked(8, strategy="truncate", keep_recent=2)
    preview = await desk.session.preview()
    await desk.session.changes.pin(desk.state.ledger.groups[0].id)
    assert preview.changes == () != tuple(c.id for c in desk.state.ledger.changes)


class Filling(Writer):
    """A model that writes a share of what it may."""

    def __init__(self, share: float, model: str = Writer.model) -> None:
        super().__init__()
        self.share, self.model = share, model

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        yield head("word " * task.max_tokens * 2, int(task.max_tokens * self.share), rough_count)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7, 1.0])
async def test_how_long_a_model_writes_is_learned_from_the_passes_before(share: float) -> None:
    desk = await worked(14, Filling(share), strategy="summarize", keep_recent=4)
    first = await desk.session.preview()
    assert first.after.estimated, "nobody knows yet how much it will write"
    [result] = of(await desk.free_up(), CompactionRecord)
    assert result.filled == pytest.approx(share, abs=0.15)
    most = sum(step.summary_tokens for step in first.plan.steps) if first.plan else 0
    assert abs(first.after.used - result.after.used) <= (abs(share - USUAL_SUMMARY_SHARE) + 0.15) * most
    for number in range(14, 24):
        await desk.say(f"question {number}: why is part {number} slow?")
    preview = await desk.session.preview()
    [result] = of(await desk.free_up(), CompactionRecord)
    assert result.outcome == "compacted"
    assert abs(preview.after.used - result.after.used) <= 0.02 * preview.before.used


async def test_before_the_first_summary_a_range_is_told_and_the_next_session_knows_better() -> None:
    """A terse model: what it wrote in one session tells how long its next summaries are, in any."""
    known = Shelf()
    desk = await worked(14, Filling(0.25), known, strategy="summarize", keep_recent=4)
    preview = await desk.session.preview()
    [result] = of(await desk.free_up(), CompactionRecord)
    least, most = preview.after_range
    assert least <= result.after.used <= most
    assert most - least > 0.5 * sum(step.summary_tokens for step in preview.plan.steps) if preview.plan else False
    later = await worked(14, Filling(0.25), known, strategy="summarize", keep_recent=4)
    preview = await later.session.preview()
    [result] = of(await later.free_up(), CompactionRecord)
    assert preview.after_range == (preview.after.used, preview.after.used)
    assert abs(preview.after.used - result.after.used) <= 0.02 * preview.before.used


async def test_how_long_one_model_writes_says_nothing_of_the_next() -> None:
    desk = await worked(14, Filling(0.2), strategy="summarize", keep_recent=4)
    await desk.free_up()
    for number in range(14, 24):
        await desk.say(f"question {number}: why is part {number} slow?")
    for writer in (Filling(0.9, "writer/two"), Filling(0.2)):
        desk.compactor.planner.summariser = writer
        least, most = (await desk.session.preview()).after_range
        assert (least < most) is (writer.model == "writer/two")
        if least < most:
            [result] = of(await desk.free_up(), CompactionRecord)
            assert least <= result.after.used <= most


class Threads(Shelf):
    """Notes where it is asked for what is known of another model than the session's."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_in: list[threading.Thread] = []

    def load(self, model: str) -> Known:
        if model == Filling(0.25).model:
            self.asked_in.append(threading.current_thread())
        return super().load(model)


async def test_nobody_waits_for_the_store_to_say_how_long_another_model_writes() -> None:
    known = Threads()
    desk = await worked(14, Filling(0.25), known, strategy="summarize", keep_recent=4)
    await desk.free_up()
    await desk.session.preview()
    assert known.asked_in and threading.current_thread() not in known.asked_in


async def counted_oddly(ratio: float, grown: bool) -> Desk:
    """Eight turns, of which only the last but one, or the last, was counted, by a server that counts unlike us; the ninth is not
    counted either."""
    usage = Usage(round(ratio * 3_000), round(ratio * 150))
    replies = [says(f"answer {n}. {LONG[:600]}", usage=usage if n == 7 - grown else None) for n in range(9)]
    options = Options(keep_recent=2, strategy="truncate", prepare=False, auto_compact="off", min_messages=1)
    desk = Desk(ScriptedModel(replies, window=Window(64_000, "configured")), options=options)
    for number in range(8):
        await desk.say(f"question {number}? {LONG[:1_400]}")
    return desk


async def smaller_is_less(ratio: float, grown: bool) -> None:
    desk = await counted_oddly(ratio, grown)
    before = desk.session.view.raw
    await desk.free_up()
    [change] = desk.state.ledger.compactions
    record, after = change.record, desk.session.view.raw
    assert record and after < before and record.after.used < record.before.used
    assert record.after.used / record.before.used == pytest.approx(after / before, abs=0.12)
    assert desk.session.context_usage.used == record.after.used and desk.session.context_usage.estimated
    assert desk.folded() == desk.state
    looked = await desk.session.changes.preview_undo()
    context_usage = await desk.session.changes.undo()
    assert context_usage.used == looked.after.used == pytest.approx(record.before.used, abs=5)
    scale = desk.conversation.as_counted
    await desk.say("and then?")
    assert desk.session.context_usage.used == desk.state.used, "what was written down of a reply that nobody counted"
    assert desk.conversation.as_counted == pytest.approx(scale, abs=0.01)


@examples(10, 60)  # each is a session
@given(st.floats(0.4, 4.5), st.booleans())
def test_a_pass_that_makes_less_of_a_text_is_never_told_as_more_however_a_server_counts(
    ratio: float, grown: bool
) -> None:
    asyncio.run(smaller_is_less(ratio, grown))


async def test_a_view_that_was_counted_has_its_count_again_when_a_change_is_undone() -> None:
    desk = await counted_oddly(1.7, grown=False)
    desk.conversation.options = msgspec.structs.replace(desk.conversation.options, auto_compact=Options().auto_compact)
    before = desk.session.context_usage
    assert not before.estimated
    await desk.free_up()
    assert desk.session.context_usage.estimated and desk.session.context_usage.used < before.used
    assert (await desk.session.changes.preview_undo()).after.used == before.used
    undone = await desk.session.changes.undo()
    assert (undone.used, undone.estimated, undone.band) == (before.used, False, 0.0)
    assert {cell.tick for cell in layout_bar(undone, 200)} >= {"trigger", "target"}
    assert desk.folded() == desk.state


async def test_a_count_is_of_the_view_with_the_very_same_changes() -> None:
    desk = await counted_oddly(1.7, grown=False)
    first, second = (g.id for g in desk.state.ledger.groups[:2])
    await desk.session.changes.drop(first)
    await desk.session.changes.drop(second)
    changes = [change.id for change in desk.state.ledger.changes]
    assert (await desk.session.changes.undo(changes[0])).estimated, "this view was never there"
    assert not (await desk.session.changes.undo(changes[1])).estimated, "and this one was"
