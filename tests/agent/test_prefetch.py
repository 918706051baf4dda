"""Summaries made ahead: beside the conversation, never in its way, paid for once, and trusted only while they fit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from ctxchat.agent.compaction.prefetch import Prefetch
from ctxchat.core.budget import Window
from ctxchat.core.context_usage import compaction_due
from ctxchat.core.events import CompactionStarted, Notice, TurnFinished, Usage
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest, SummaryTask
from ctxchat.core.record import CompactionRecord
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import LONG, Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, calls, says


class Slow(Writer):
    """Writes when it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.cancelled = 0

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        self.asked.append((tuple(g.id for g in task.groups), task.previous))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        yield "## Goal\nKnow the gauge."
        yield Usage(1000, 50, cost_usd=0.01)


class Broken(Writer):
    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        self.asked.append(((), ""))
        raise ZeroDivisionError("a bug of the summariser")
        yield ""


def desk_of(writer: Writer, *, window: int = 20_000, **options: object) -> Desk:
    made = Options(**({"keep_recent": 2, "strategy": "summarize"} | options))  # type: ignore[arg-type]
    model = ScriptedModel((says(LONG) for _ in range(99)), window=Window(window, "configured"))
    return Desk(model, options=made, summariser=writer)


async def until_prepared(desk: Desk, writer: Writer) -> None:
    """Turns until a summary is being made ahead."""
    for number in range(20):
        if writer.asked:
            return
        await desk.say(f"question {number} {LONG}")
        ahead = desk.compactor._prefetch
        if not isinstance(writer, Slow):
            await ahead.wait()
        for _ in range(12_000):
            if writer.asked or not ahead.busy:
                break
            await asyncio.sleep(0.005)
    raise AssertionError("nothing was prepared")


async def test_what_a_pass_freed_without_it_is_not_promised_again():
    writer = Writer()
    looks = [calls(("echo", {"text": "word ", "times": 2_000})), says("seen")]
    model = ScriptedModel(looks * 20, window=Window(20_000, "configured"))
    desk = Desk(model, tools=[Echo()], summariser=writer, options=Options(keep_recent=2, recent_results=1))
    await until_prepared(desk, writer)
    await desk.compactor._prefetch.wait()
    promised = desk.session.context_usage.used - desk.session.compaction.ghost
    [record] = of(await desk.free_up(["shrink_tool_results"]), CompactionRecord)
    assert [step.name for step in record.steps] == ["shrink_tool_results"]
    assert desk.compactor._prefetch.prepared
    left = desk.session.context_usage.used - (desk.session.compaction.ghost or desk.session.context_usage.used)
    covered = set(desk.compactor._prefetch.prepared.covers)
    weight = sum(i.tokens for i in desk.conversation.view.items if i.group in covered)
    assert 0 <= left <= min(weight, promised)


async def test_it_begins_when_a_turn_has_ended_and_the_swap_asks_nobody():
    writer = Writer()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    assert desk.session.compaction.ghost and desk.session.compaction.ghost < desk.session.context_usage.used
    assert desk.state.ledger.changes == (), "nothing is changed ahead of time"
    swapped = None
    while swapped is None:
        before = len(writer.asked)
        swapped = next(iter(of(await desk.say(f"more {LONG}"), CompactionRecord)), None)
    assert swapped.outcome == "compacted" and len(writer.asked) - before <= 1
    record = desk.state.ledger.compactions[0].record
    assert record is not None and record.attempts == 0 and record.cost_usd == record.booked_usd >= 0.01
    await desk.session.close()
    assert desk.folded().cost_usd == pytest.approx(0.01 * len(writer.asked)), "paid for once each"


@pytest.mark.parametrize(
    "words", [500, 1_100, 1_120]
)  # of the answers, which lie between what cutting results leaves and the target
async def test_what_is_due_and_waits_for_a_summary_gets_one(words: int):
    writer = Writer()
    looks = [calls(("echo", {"text": "word ", "times": 2_000})), says(f"I see. {'word ' * words}")]
    model = ScriptedModel(looks * 20, window=Window(20_000, "configured"))
    desk = Desk(model, tools=[Echo()], summariser=writer, options=Options(keep_recent=2, recent_results=1))
    while compaction_due(desk.session.context_usage) != "compact" and not writer.asked:
        await desk.say(f"look again {len(desk.state.ledger.groups)}")
        await desk.compactor._prefetch.wait()
    plan = await desk.compactor.planner.by_code() or await desk.compactor.planner.usual()
    assert plan is not None
    assert bool(writer.asked) == any(step.needs_summary for step in plan.steps)


@pytest.mark.parametrize(("window", "last"), [(20_000, "shrink_tool_results"), (100_000, "summarize")])
async def test_in_a_small_window_cut_results_are_enough_where_they_come_halfway_to_the_target(window: int, last: str):
    writer = Writer()
    looks = [calls(("echo", {"text": "word ", "times": window // 20})), says(f"I see. {'word ' * (window // 20)}")]
    model = ScriptedModel(looks * 20, window=Window(window, "configured"))
    desk = Desk(model, tools=[Echo()], summariser=writer, options=Options(keep_recent=2, recent_results=1))
    made: list[CompactionRecord] = []
    while not made:
        made = of(await desk.say(f"look again {len(desk.state.ledger.groups)}"), CompactionRecord)
        await desk.compactor._prefetch.wait()
    budget = desk.conversation.budget
    assert made[0].outcome == "compacted" and made[0].steps[-1].name == last
    assert made[0].after.used <= budget.halfway and (made[0].after.used > budget.target) == (last != "summarize")


async def test_a_slow_one_does_not_hold_up_a_turn_and_closing_ends_it():
    writer = Slow()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    events = await desk.say("short")
    assert of(events, TurnFinished)[0].status == "done"
    assert not desk.session.compaction.ghost and not of(events, CompactionRecord)
    await desk.session.close()
    assert writer.cancelled == 1
    await desk.session.close()


async def test_a_swap_waits_for_one_that_is_nearly_made_instead_of_asking_twice():
    writer = Slow()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    done: list[CompactionRecord] = []
    while not done:
        async with aclosing(desk.session.send(f"more {LONG}")) as stream:
            async for stamped in stream:
                if isinstance(stamped.event, CompactionStarted):
                    asyncio.get_running_loop().call_later(0.05, writer.go.set)
                done += of([stamped.event], CompactionRecord)
    assert done[0].outcome == "compacted" and len(writer.asked) == 1


async def test_a_faulty_one_never_fails_a_turn_and_is_not_tried_for_ever():
    writer = Broken()
    desk = desk_of(writer, compression_trigger=0.75)
    for number in range(16):
        events = await desk.say(f"question {number} {LONG[:600]}")
        await desk.compactor._prefetch.wait()
        assert of(events, TurnFinished)[0].status == "done"
    ahead = len(writer.asked) - len(desk.state.compactions)
    assert ahead == 2
    assert all(p.outcome == "failed" and "ZeroDivisionError" in p.detail for p in desk.state.compactions)


async def test_it_goes_in_as_it_is_and_what_it_leaves_out_is_folded_later():
    writer = Writer()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    covered = set(writer.asked[0][0])
    events = await desk.say("a very long question " + LONG * 11)
    result = of(events, CompactionRecord)[0]
    assert (result.outcome, result.attempts) == ("compacted", 0), "the message waited for nobody"
    shown = {i.group for i in desk.session.view.items}
    assert not covered & shown and len(earlier(desk.state.ledger)) == 1
    await desk.compactor._prefetch.wait()
    rest, previous = writer.asked[1]
    assert not covered & set(rest) and "Know the gauge" in previous


async def test_one_that_no_longer_fits_is_not_used():
    writer = Writer()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    group = writer.asked[0][0][0]
    assert desk.session.compaction.ghost
    await desk.session.changes.pin(group)
    assert not desk.session.compaction.ghost, "what it covers was pinned since"
    await desk.session.changes.undo()
    assert desk.session.compaction.ghost, "and now it is as it was"
    await desk.session.changes.drop(group)
    assert not desk.session.compaction.ghost


async def test_a_pass_by_hand_folds_what_was_shown_with_what_stands_ready():
    writer = Writer()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    preview = await desk.session.preview()
    assert preview.plan is not None
    result = of(await desk.free_up(), CompactionRecord)[0]
    assert result.outcome == "compacted" and result.folded_groups == len(preview.plan.covers)


@pytest.mark.parametrize("options", [{"prepare": False}, {"auto_compact": "off"}])
async def test_none_is_made_where_none_is_wanted(options: dict[str, object]):
    writer = Writer()
    desk = desk_of(writer, compression_trigger=0.9, **options)
    while desk.session.context_usage.pressure < 0.7:
        await desk.say(f"question {LONG}")
    await asyncio.sleep(0.05)
    assert not writer.asked


async def test_with_tools_and_lossless_steps_a_narrowed_swap_leaves_no_pointer_without_its_text():
    """The prepared fold is smaller than the planned one: results that stay must not point to texts nobody saved."""
    script = [
        r
        for n in range(40)
        for r in (calls(("echo", {"text": f"line {n}\n", "times": 150})), says(f"answer {n} {LONG}"))
    ]
    writer = Writer()
    model = ScriptedModel(script, window=Window(14_000, "configured"))
    desk = Desk(model, tools=[Echo()], options=Options(keep_recent=2), summariser=writer)
    passes: list[CompactionRecord] = []
    for number in range(36):
        events = await desk.say(f"question {number}")
        await desk.compactor._prefetch.wait()
        passes += of(events, CompactionRecord)
        assert not problems(desk.session.view)
        for item in desk.session.view.items:
            if "tool-results/" in item.message.text:
                name = "tool-results/" + item.message.text.split("tool-results/", 1)[1].split(".txt", 1)[0] + ".txt"
                assert name in desk.journal.spilled
    assert len(passes) > 3 and all(p.outcome == "compacted" for p in passes)
    assert not [n for n in of(events, Notice) if "again right after" in n.text]
    await desk.session.close()
    assert desk.folded().cost_usd == pytest.approx(0.01 * len(writer.asked))


async def test_nothing_to_make_says_nothing_about_whether_making_works():
    class Planning:
        """Fails, or finds nothing to make."""

        summariser = Writer()
        options = staticmethod(PlanOptions)

        def __init__(self) -> None:
            self.tried: list[str] = []
            self.next = ""

        async def ahead(self, *, inside: bool, needed: bool) -> None:
            self.tried.append(self.next)
            if self.next == "broken":
                raise ZeroDivisionError

    desk, planning = desk_of(Writer(), compression_trigger=0.9, auto_compact="off"), Planning()
    while desk.session.context_usage.pressure < 0.7:
        await desk.say(f"question {LONG}")
    prefetch = Prefetch(desk.compactor._conversation, planning)  # type: ignore[arg-type]
    for planning.next in ("broken", "nothing", "broken", "nothing", "broken"):
        prefetch.prepare()
        await prefetch.wait()
    assert planning.tried == ["broken", "nothing", "broken"]
    prefetch.clear()
    planning.next = "nothing"
    prefetch.prepare()
    await prefetch.wait()
    assert planning.tried[-1] == "nothing", "a compaction that succeeded begins anew"


async def test_it_outlives_a_restart_and_the_swap_still_asks_nobody():
    writer = Writer()
    desk = desk_of(writer)
    await until_prepared(desk, writer)
    ghost = desk.session.compaction.ghost
    await desk.session.close()
    again = Desk(
        ScriptedModel((says(LONG) for _ in range(9)), window=Window(20_000, "configured")),
        options=Options(keep_recent=2, strategy="summarize"),
        summariser=writer,
        records=desk.journal.records,
    )
    await again.session.measure()
    assert again.session.compaction.ghost == ghost
    made = len(writer.asked)
    [record] = of(await again.say("and now " + LONG * 4), CompactionRecord)
    assert (record.outcome, record.attempts, len(writer.asked)) == ("compacted", 0, made)
    await again.session.close()
    assert again.folded() == again.state


async def test_a_dear_one_is_made_only_once_it_is_due():
    writer = Writer()
    model = ScriptedModel((says(LONG) for _ in range(99)), window=Window(20_000, "configured"))
    options = Options(keep_recent=2, strategy="summarize", prepare_cost=0.5)
    desk = Desk(model, options=options, summariser=writer, prices=lambda name, prompt, output: 0.6)
    while not writer.asked:
        before = desk.session.context_usage
        await desk.say(f"question {LONG}")
        await desk.compactor._prefetch.wait()
    assert before.used > before.limit * options.soft_mark
    assert desk.session.context_usage.used >= before.trigger_tokens
    await desk.session.close()


@pytest.mark.parametrize(("prefill", "here", "beside"), [(400.0, False, False), (0.0, True, False), (0.0, False, True)])
@pytest.mark.parametrize("trigger", [0.9, 0.5])
async def test_on_a_server_of_ones_own_it_gives_way_to_a_message(
    prefill: float, here: bool, beside: bool, trigger: float
):
    """Such a server may have one place: the answer would wait for the summary, before the trigger as well as beyond it."""
    writer, busy = Slow(), list[bool]()
    writer.model = "scripted/model"

    def reply(request: ModelRequest) -> Reply:
        busy.append(desk.compactor._prefetch.busy)
        return says(LONG)

    model = ScriptedModel([reply] * 99, window=Window(20_000, "configured"), prefill=prefill, may_queue=here)
    options = Options(keep_recent=2, strategy="summarize", compression_trigger=trigger, soft_mark=0.4)
    desk = Desk(model, options=options, summariser=writer)
    await until_prepared(desk, writer)
    while desk.session.context_usage.used < desk.session.context_usage.trigger_tokens and trigger < 0.9:
        await desk.say(f"question {LONG}")
    busy.clear()
    events = await desk.say("and now?")
    assert of(events, TurnFinished) and not of(events, Notice)
    assert busy == [beside]
    assert desk.compactor._prefetch.busy, "and begins again when it is answered"
    await desk.session.close()


async def test_that_nothing_can_be_freed_is_said_where_summaries_are_made_ahead_too():
    model = ScriptedModel((says("ok") for _ in range(9)), window=Window(20_000, "configured"))
    desk = Desk(model, options=Options(strategy="summarize", min_messages=1), summariser=Writer())
    events = [*await desk.say("word " * 14_000), *await desk.say("and now?")]
    assert [n.text for n in of(events, Notice) if "Nothing to free" in n.text]
    await desk.session.close()


async def test_without_a_person_one_is_made_inside_a_long_turn_and_none_behind_it():
    """As in `ctxchat run`: the turn waits for no summary, and none is paid for that no message follows."""
    writer = Writer()
    rounds = [calls(("echo", {"text": f"line {n} ", "times": 300})) for n in range(40)]
    model = ScriptedModel([*rounds, says(LONG)], window=Window(24_000, "configured"))
    options = Options(keep_recent=2, strategy="summarize", recent_results=99, recent_result_tokens=99_000)
    desk = Desk(model, tools=[Echo()], options=options, summariser=writer, interactive=False, mode="all")
    records = of(await desk.say("go through all lines"), CompactionRecord)
    assert records and all(record.attempts == 0 for record in records), "nobody waited"
    assert writer.asked

    quiet, last = Writer(), ScriptedModel([says("word " * 14_000)], window=Window(20_000, "configured"))
    ended = Desk(last, options=Options(keep_recent=2, strategy="summarize"), summariser=quiet, interactive=False)
    await ended.say("write at length")
    assert not ended.compactor._prefetch.busy and not quiet.asked
