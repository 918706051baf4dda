"""The figures after each kind of event: whose count they stand on, what they add, and that they do not jump."""

from __future__ import annotations

from contextlib import aclosing
from itertools import pairwise

import pytest

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.core.budget import Window
from ctxchat.core.calibration import Mix
from ctxchat.core.context_usage import ContextUsage, fixed
from ctxchat.core.events import Failed, Notice, TextDelta, TurnFinished, Usage
from ctxchat.core.head import ContextBlock
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from ctxchat.core.tokens import rough_count
from tests.agent.desk import Around, Desk, Echo, StillClock
from tests.agent.test_compaction import LONG, Writer
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import End, ScriptedModel, calls, says

LIVE = Options(stream_figures_every=0.0)
ROOMY = Window(100_000, "loaded")


def used(events: list[object]) -> list[int]:
    return [context_usage.used for context_usage in of(events, ContextUsage)]


async def test_the_bar_grows_with_the_reply_and_does_not_jump_at_its_end():
    desk = Desk(ScriptedModel([says(LONG), says(LONG)], window=ROOMY), options=LIVE)
    await desk.say("first")
    live = used(await desk.say("second"))
    assert live == sorted(live), "it never falls"
    assert live[-1] - live[-3] <= 0.02 * live[-1], "and its last step is small"
    assert len(set(live)) > 20


async def test_the_same_gauge_is_not_told_twice_in_a_row():
    desk = Desk(ScriptedModel([calls(("echo", {"text": "x"})), says("done")], window=ROOMY), tools=[Echo()])
    events = await desk.say("go")
    assert not [a for a, b in pairwise(events) if isinstance(a, ContextUsage) and a == b]
    last = [type(event) for event in events[-3:]]
    assert last == [Usage, ContextUsage, TurnFinished], "the last gauge is told before the end"


async def test_a_reply_in_pieces_of_a_few_letters_weighs_what_it_weighs_in_one():
    count = lambda text: max(1, len(text) // 4) if text else 0  # noqa: E731 - a token at least, as tokenizers do
    desk = Desk(ScriptedModel([says("a b c d " * 500)], window=ROOMY, count=count), options=LIVE)
    live = used(await desk.say("go"))
    assert max(live) <= live[-1] * 1.02


@pytest.mark.parametrize("usage", [None, Usage(0, 0), Usage(0, 50)])
async def test_a_reply_that_was_not_counted_stands_on_the_last_good_count(usage: Usage | None):
    desk = Desk(ScriptedModel([says("hello", usage=Usage(500, 20)), says("again", usage=usage)]))
    await desk.say(LONG[:900])
    events = await desk.say("more")
    told = of(events, Usage)[0]
    assert told.estimated and told.prompt > 520
    context_usage = desk.session.context_usage
    assert context_usage.estimated and 520 < context_usage.used < 600
    resumed = Desk(ScriptedModel([]), records=desk.journal.records)
    assert (await resumed.session.measure()).used == context_usage.used
    assert desk.state.calibrations["scripted/model"].samples == 1, "and it teaches nothing"


async def test_zero_usage_for_tool_calls_is_no_count():
    model = ScriptedModel([calls(("echo", {"text": "x"}), usage=Usage(0, 0)), says("done", usage=Usage(700, 5))])
    desk = Desk(model, tools=[Echo()])
    events = await desk.say("go")
    assert [u.estimated for u in of(events, Usage)] == [True, False]
    assert desk.session.context_usage.used == 705 and not desk.session.context_usage.estimated


async def test_occupancy_is_of_the_last_request_and_cost_is_the_sum():
    replies = [
        calls(("echo", {"text": "x"}), usage=Usage(1_000, 30, cached=400, cost_usd=0.25)),
        says("done", usage=Usage(1_100, 20, cached=1_000, cost_usd=0.5)),
    ]
    desk = Desk(ScriptedModel(replies), tools=[Echo()])
    await desk.say("go")
    context_usage = desk.session.context_usage
    assert (context_usage.used, context_usage.cached, context_usage.cost_usd) == (1_120, 1_000, 0.75)
    assert desk.state.fills == (1_120,)


async def test_a_count_from_before_a_pass_is_used_again_only_when_that_is_undone():
    replies = [says(LONG, usage=Usage(1_000 * n, 700)) for n in range(1, 9)]
    desk = Desk(
        ScriptedModel(replies, window=ROOMY), options=Options(keep_recent=2, prepare=False), summariser=Writer()
    )
    for number in range(4):
        await desk.say(f"question {number} {LONG}")
    before = desk.session.context_usage
    assert not before.estimated and before.used == 4_700
    await desk.free_up()
    after = desk.session.context_usage
    assert after.estimated and 0 < after.used < before.used and desk.state.anchor is None
    resumed = Desk(ScriptedModel([], window=ROOMY), records=desk.journal.records)
    assert (await resumed.session.measure()).used == after.used
    undone = await desk.session.changes.undo()
    assert undone.used == before.used and not undone.estimated
    await desk.say("next")
    assert not desk.session.context_usage.estimated


async def test_a_draft_typed_during_a_stream_counts_on_top_of_it():
    desk = Desk(ScriptedModel([says(LONG)], window=ROOMY), options=LIVE)
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ContextUsage) and stamped.event.tokens("assistant") > 100:
                with_draft = desk.session.attachments.with_draft("a draft of a few words")
                assert with_draft.used > stamped.event.used
                assert with_draft.tokens("draft") > 0 and with_draft.tokens("assistant") > 90
                assert adds_up(with_draft)
                assert desk.session.context_usage == stamped.event
                break


async def test_reasoning_that_is_not_sent_back_is_not_counted_as_held():
    for keeps, expected in ((False, 530), (True, 600)):
        model = ScriptedModel(
            [says("short", reasoning="long thought " * 20, usage=Usage(500, 100, reasoning=70))], keeps_reasoning=keeps
        )
        desk = Desk(model)
        await desk.say("hi")
        assert desk.session.context_usage.used == expected


async def test_what_stands_around_is_in_its_own_sections_and_a_change_of_it_is_an_estimate():
    around = Around([ContextBlock("AGENTS.md", "Be brief. " * 50)], [ContextBlock("date", "Saturday")])
    desk = Desk(ScriptedModel([says("a"), says("b")]), around=around)
    await desk.say("hi")
    context_usage = desk.session.context_usage
    assert context_usage.tokens("memory") > 100 and context_usage.tokens("injected") > 0 and not context_usage.estimated
    around.context = (ContextBlock("date", "Sunday, and much more has happened since " * 9),)
    later = await desk.session.measure()
    assert later.estimated and later.used > context_usage.used and adds_up(later)


async def test_calibration_follows_the_server_and_is_kept_by_model():
    def reply(request: object) -> object:
        return says("ok", usage=Usage(int(request.view.raw * 1.5), 10))  # type: ignore[attr-defined]

    desk = Desk(ScriptedModel([reply for _ in range(6)], window=ROOMY))  # type: ignore[list-item]
    for number in range(6):
        await desk.say(f"question {number} {LONG}")
    knowledge = desk.state.calibrations["scripted/model"]
    assert (
        1.3 < knowledge.ratio < 1.6
        and knowledge.samples == 6
        and knowledge.error(Mix(1_000)) < 0.1 * knowledge.part(Mix(1_000))
    )
    resumed = Desk(ScriptedModel([], window=ROOMY), records=desk.journal.records)
    assert resumed.conversation.knowledge.calibration == knowledge


async def test_a_first_estimate_that_is_only_rough_is_not_called_a_cut():
    for share, told in ((0.5, False), (0.3, True)):
        desk = Desk(ScriptedModel([lambda r, s=share: says("ok", usage=Usage(int(r.view.raw * s), 10))], window=ROOMY))
        events = await desk.say(LONG * 6)
        assert any("cut" in n.text for n in of(events, Notice)) is told
        assert bool(desk.session.context_usage.cut) is told, "the gauge says it as long as the same view goes out"


async def test_titles_come_from_words_and_never_from_nothing():
    from ctxchat.core.messages import Image

    desk = Desk(ScriptedModel([says("a picture"), says("ok")]))
    async with aclosing(desk.session.send("", [Image("data:,", 10, 10)])) as stream:
        events = [s.event async for s in stream]
    assert of(events, TurnFinished)[0].status == "done" and desk.state.title == ""
    await desk.say("What   is\nthis " + "word " * 40)
    assert desk.state.title.startswith("What is this word") and len(desk.state.title) <= 60


async def test_a_reply_of_thoughts_only_is_told_and_the_next_request_is_valid():
    desk = Desk(ScriptedModel([says("", reasoning="Hm."), says("ok")]))
    events = await desk.say("hi")
    assert any("said nothing" in f.text for f in of(events, Failed)) and of(events, TurnFinished)[0].status == "error"
    assert of(await desk.say("so?"), TurnFinished)[0].status == "done"


async def test_counts_of_odd_texts_never_stop_a_turn():
    text = "<|endoftext|> " + "x" * 100_000 + " 日本語 👩‍👩‍👧 " + "\ud83d"
    desk = Desk(ScriptedModel([says("ok"), says("ok")], window=Window(200_000, "loaded"), count=rough_count))
    events = await desk.say(text)
    assert of(events, TextDelta) and of(events, TurnFinished)[0].status == "done"


THOUGHT = "long thought " * 400


async def test_reasoning_a_server_does_not_count_apart_is_an_estimate_and_not_held():
    replies = [says("Four.", reasoning=THOUGHT, usage=Usage(100, 1_010)), says("Five.", usage=Usage(112, 3))]
    desk = Desk(ScriptedModel(replies))
    await desk.say("2 + 2?")
    context_usage = desk.session.context_usage
    assert context_usage.estimated and 100 < context_usage.used < 130
    resumed = Desk(ScriptedModel([]), records=desk.journal.records)
    assert (await resumed.session.measure()).used == context_usage.used
    await desk.say("and one more?")
    assert not desk.session.context_usage.estimated and desk.session.context_usage.used == 115


@pytest.mark.parametrize("counted", [0, 1_000])
async def test_the_thoughts_before_a_call_do_not_move_the_gauge_up_and_back(counted: int):
    first = calls(("echo", {"text": "x"}), reasoning=THOUGHT, usage=Usage(100, 1_010, reasoning=counted))
    desk = Desk(ScriptedModel([first, says("done", usage=Usage(125, 3))]), tools=[Echo()])
    live = used(await desk.say("go"))
    assert max(live) < 200 and live[-1] == 128


async def test_an_empty_reply_that_was_paid_for_is_in_the_sum():
    desk = Desk(ScriptedModel([(End(usage=Usage(1_000, 900, reasoning=900, cost_usd=0.5)),), says("hello")]))
    events = await desk.say("hi")
    assert of(events, Failed)[0].kind == "empty"
    assert of(events, ContextUsage)[-1].cost_usd == desk.folded().cost_usd == 0.5
    await desk.say("again")
    assert desk.session.context_usage.cost_usd == desk.folded().cost_usd == 0.5


async def test_a_summary_that_failed_is_in_the_sum_and_shown():
    writer = ScriptedModel([says("cut off", finish="length", usage=Usage(5_000, 2_000, cost_usd=0.75))])
    desk = Desk(
        ScriptedModel([says(LONG) for _ in range(4)], window=ROOMY),
        options=Options(keep_recent=2, strategy="summarize", prepare=False),
        summariser=ModelSummariser(writer, StillClock()),
    )
    for number in range(4):
        await desk.say(f"question {number} {LONG}")
    events = await desk.free_up()
    assert of(events, CompactionRecord)[0].outcome == "failed"
    assert (
        of(events, ContextUsage)[-1].cost_usd == desk.session.context_usage.cost_usd == desk.folded().cost_usd == 0.75
    )


async def test_budgets_of_sections_are_part_of_the_figures():
    options = Options(section_budgets={"user": 50, "system": 100_000}, prepare=False)
    desk = Desk(ScriptedModel([says("ok")], window=ROOMY), options=options)
    await desk.session.measure()
    assert desk.session.context_usage.over_budget == ()
    events = await desk.say(LONG)
    for context_usage in (
        *of(events, ContextUsage)[-1:],
        desk.session.context_usage,
        desk.session.attachments.with_draft(LONG),
    ):
        assert [s.name for s in context_usage.over_budget] == ["user"]
        assert context_usage.over_budget[0].over == context_usage.tokens("user") - 50


async def test_pins_that_leave_nothing_to_compact_are_told_and_nothing_is_called():
    writer = Writer()
    model = ScriptedModel([says("a") for _ in range(6)], window=Window(3_000, "loaded"))
    options = Options(keep_recent=2, min_messages=1, prepare=False, auto_compact="off")
    desk = Desk(model, summariser=writer, options=options)
    for _ in range(3):
        await desk.say(LONG)
    for group in desk.state.ledger.groups:
        await desk.session.changes.pin(group.id)
    assert fixed(desk.session.context_usage) >= desk.session.context_usage.trigger_tokens
    told = [n.text for n in of(await desk.say("and now?"), Notice) if "would not help" in n.text]
    assert writer.asked == [] and len(told) == 1 and "pinned" in told[0] and "Unpin some" in told[0]
