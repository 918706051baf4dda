"""Windows that turn out smaller than believed, models that are switched, output limits that do not fit: what happens, and what
is remembered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import pytest

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.agent.model_knowledge import Known
from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Failed, Notice, Retry, TurnFinished, Usage
from ctxchat.core.journal import WindowLearned
from ctxchat.core.messages import Image
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest
from ctxchat.core.quantities import brief, short
from ctxchat.core.record import CompactionRecord
from ctxchat.core.tokens import rough_count
from ctxchat.core.view import problems
from ctxchat.presentation.usage_text import sentence, window_words
from tests.agent.desk import Desk, StillClock
from tests.agent.test_compaction import LONG, OVERFLOW, Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, fails, says

UNSTATED = ModelError("The prompt is too long.", kind="bad_request", status=400)


def served(window: int, refusal: ModelError) -> Callable[[ModelRequest], Reply]:
    """A reply as a server with that window gives it: what does not fit is refused."""
    return lambda request: fails(refusal) if request.view.raw > window else says("fine")


class Shelf:
    """Assumptions in a dict."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}

    def load(self, model: str) -> Known:
        return self.known.get(model, Known())

    async def save(self, model: str, known: Known) -> None:
        self.known[model] = known


def model_of(window: int, *script: object, name: str = "scripted/model", claims: int = 0) -> ScriptedModel:
    replies = [*script, *(served(window, UNSTATED) for _ in range(60))]
    return ScriptedModel(replies, name=name, window=Window(claims or window, "catalogue"))  # type: ignore[arg-type]


async def fill(desk: Desk, turns: int) -> None:
    for number in range(turns):
        await desk.say(f"question {number} {LONG}")


def quiet(**options: object) -> Options:
    return Options(**({"auto_compact": "off", "keep_recent": 4, "prepare": False} | options))  # type: ignore[arg-type]


async def test_a_window_nobody_states_is_learned_below_what_was_refused_shown_and_kept():
    shelf = Shelf()
    desk = Desk(model_of(4_000, claims=32_000), options=quiet(), knowledge_store=shelf)
    events: list[object] = []
    for number in range(14):
        events += await desk.say(f"question {number} {LONG}")
    assert not of(events, Failed)
    context_usage = desk.session.context_usage
    assert context_usage.window_source == "learned" and 1_024 <= context_usage.window < 5_000
    assert context_usage.claimed_window > context_usage.window
    assert any("refused" in n.text and short(context_usage.window) in n.text for n in of(events, Notice))
    assert desk.folded() == desk.state

    resumed = Desk(model_of(4_000, claims=32_000), records=desk.journal.records)
    assert (await resumed.session.measure()).window == context_usage.window
    elsewhere = Desk(model_of(4_000, claims=32_000), knowledge_store=shelf)
    assert (await elsewhere.session.measure()).window == context_usage.window
    assert (await Desk(model_of(4_000, claims=64_000), knowledge_store=shelf).session.measure()).window == 64_000


async def test_a_window_that_is_only_assumed_is_said_once_and_loudly():
    model = ScriptedModel([says("one"), says("two")], window=Window(32_768, "assumed"))
    desk = Desk(model, options=quiet())
    said = [n for n in of(await desk.say("hi"), Notice) if "assumed" in n.text]
    assert [n.level for n in said] == ["warning"] and "--window" in said[0].text
    assert not [n for n in of(await desk.say("again"), Notice) if "assumed" in n.text]
    known = Desk(ScriptedModel([says("one")], window=Window(1_000_000, "family")), options=quiet())
    assert not of(await known.say("hi"), Notice)


class LoadsLate(ScriptedModel):
    """A server that knows its window once it has answered, as Ollama does."""

    async def window(self) -> Window:
        return Window(65_536, "loaded") if self.requests else Window(4_096, "assumed")


async def test_a_server_that_did_not_know_its_window_is_asked_again_after_its_first_reply():
    desk = Desk(LoadsLate([says("one"), says("two")], address="http://127.0.0.1:11434/v1"), options=quiet())
    assert (await desk.session.measure()).window_source == "assumed"
    assert not of([*await desk.say("hi"), *await desk.say("again")], Notice)
    assert (desk.session.context_usage.window, desk.session.context_usage.window_source) == (65_536, "loaded")


async def test_what_a_family_holds_is_raised_by_what_the_server_took():
    model = ScriptedModel([says("fine", usage=Usage(7_000, 1_500))], window=Window(8_000, "family"))
    desk = Desk(model, options=quiet())
    await desk.say("word " * 6_500)
    assert (await desk.session.measure()).window == 8_500


async def test_a_window_that_was_learned_counts_before_the_server_is_asked():
    knowledge = WindowLearned("scripted/model", 6_000, 8_192)
    server = ScriptedModel([], window=Window(8_192, "loaded"), stated=Window(32_768, "assumed"))
    desk = Desk(server, records=[knowledge])
    assert (desk.session.context_usage.window, desk.session.context_usage.window_source) == (6_000, "learned")
    assert (await desk.session.measure()).window == 6_000
    larger = Desk(
        ScriptedModel([], window=Window(16_384, "loaded"), stated=Window(32_768, "assumed")), records=[knowledge]
    )
    assert (await larger.session.measure()).window == 16_384


async def test_a_reply_that_took_more_than_was_learned_takes_the_lesson_back():
    big = says("fine", usage=Usage(9_000, 10))
    desk = Desk(model_of(60_000, fails(OVERFLOW), big, claims=20_000), options=quiet())
    await desk.say(LONG * 3)
    assert desk.session.context_usage.window_source == "learned" or desk.session.context_usage.window == 20_000
    assert (await desk.session.measure()).window == 20_000
    assert desk.folded() == desk.state


async def test_an_assumed_window_is_raised_by_what_the_server_took_and_kept():
    shelf = Shelf()
    model = ScriptedModel([says("fine", usage=Usage(7_000, 1_500))], window=Window(8_000, "assumed"))
    desk = Desk(model, options=quiet(), knowledge_store=shelf)
    await desk.say("word " * 6_500)
    context_usage = await desk.session.measure()
    assert (context_usage.window, context_usage.window_source, context_usage.claimed_window) == (
        8_500,
        "assumed",
        8_000,
    )
    assert window_words(context_usage) == "window ≥8.5k, not 8k" and "at least 8.5k" in sentence(context_usage)
    again = Desk(ScriptedModel([], window=Window(8_000, "assumed")), knowledge_store=shelf)
    assert (await again.session.measure()).window == 8_500


async def test_a_guess_after_a_refusal_is_shown_as_the_bound_it_is():
    model = model_of(9_000, claims=40_000)
    desk = Desk(model, options=quiet(), knowledge_store=Shelf())
    await fill(desk, 14)
    context_usage = desk.session.context_usage
    assert context_usage.window_source == "learned" and context_usage.window < context_usage.refused_window < 40_000
    assert window_words(context_usage) == f"window ≤{brief(context_usage.refused_window)}, not 40k"
    assert f"at most {short(context_usage.refused_window)}" in sentence(context_usage)


async def test_a_smaller_model_makes_room_first_and_its_summariser_reads_in_parts_that_fit():
    asked: list[ModelRequest] = []

    def small_reply(request: ModelRequest) -> Reply:
        asked.append(request)
        assert sum(rough_count(i.message.text) for i in request.view.items) + request.max_output <= 8_000
        return (
            says("## Goal\nKnow the gauge.")
            if "Write the record" in request.view.items[-1].message.text
            else says("ok")
        )

    small = ScriptedModel([small_reply for _ in range(40)], name="small/model", window=Window(8_000, "loaded"))
    big = ScriptedModel([says(LONG) for _ in range(20)], name="big/model", window=Window(100_000, "loaded"))
    desk = Desk(
        big,
        options=Options(
            keep_recent=2, strategy="summarize", prepare=False, summary_max_tokens=400, output_reserved=500
        ),
        summariser=Writer(),
        others={"small/model": small},
        summariser_of=lambda model: ModelSummariser(model, StillClock()),
    )
    await fill(desk, 14)
    context_usage = await desk.session.setup.switch_model("small/model")
    assert context_usage.model == "small/model" and context_usage.excess and context_usage.estimated
    assert not asked, "nothing is sent before the next message"
    events = await desk.say("go on")
    passes = of(events, CompactionRecord)
    assert [(p.reason, p.outcome) for p in passes] == [("model_switch", "compacted")]
    assert any("parts" in n.text for n in of(events, Notice)) and len(asked) > 3
    assert of(events, TurnFinished)[0].text == "ok"
    assert not of(events, Retry)
    assert all(not problems(r.view) for r in asked)
    parts = [text for r in asked if "Write the record" in (text := r.view.items[-1].message.text)]
    assert ["More parts follow" in text for text in parts] == [True] * (len(parts) - 1) + [False]


@pytest.mark.parametrize("auto_compact", ["off", "ask"])
async def test_what_a_smaller_window_cannot_hold_at_all_goes_in_every_mode_and_is_told(auto_compact: str):
    small = ScriptedModel([says("ok")], name="small/model", window=Window(8_000, "loaded"))
    big = ScriptedModel([says(LONG) for _ in range(20)], name="big/model", window=Window(100_000, "loaded"))
    desk = Desk(big, options=quiet(auto_compact=auto_compact), others={"small/model": small}, summariser=Writer())
    await fill(desk, 12)
    await desk.session.setup.switch_model("small/model")
    events = await desk.say("go on")
    assert [p.reason for p in of(events, CompactionRecord)] == ["model_switch"]
    assert of(events, TurnFinished)[0].text == "ok"
    assert small.requests[0].view.raw < 8_000


async def test_an_overflow_of_the_old_model_does_not_compact_the_new_one():
    old = model_of(100, *(says(LONG) for _ in range(3)), *(fails(OVERFLOW) for _ in range(3)), name="old/model")
    new = ScriptedModel([says("fine")], name="new/model", window=Window(100_000, "loaded"))
    desk = Desk(old, options=quiet(auto_compact="auto"), others={"new/model": new}, summariser=Writer())
    desk.conversation.knowledge.claimed = Window(20_000, "catalogue")
    await fill(desk, 3)
    assert of(await desk.say("too long"), Failed)
    made = len(desk.state.ledger.changes)
    await desk.session.setup.switch_model("new/model")
    events = await desk.say("go on")
    assert not of(events, CompactionRecord) and len(desk.state.ledger.changes) == made
    assert desk.session.context_usage.window == 100_000
    back = await desk.session.setup.switch_model("old/model")
    assert back.window_source in {"learned", "catalogue"} and back.window <= 20_000


async def test_each_model_stands_on_its_own_counts():
    one = ScriptedModel([says("hi", usage=Usage(500, 20))], name="one/model")
    two = ScriptedModel([says("hi", usage=Usage(900, 20))], name="two/model")
    desk = Desk(one, others={"two/model": two})
    await desk.say("hello")
    assert desk.session.context_usage.used == 520
    context_usage = await desk.session.setup.switch_model("two/model")
    assert context_usage.estimated and context_usage.used != 520
    back = await desk.session.setup.switch_model("one/model")
    assert back.used == 520 and not back.estimated
    resumed = Desk(two, records=desk.journal.records)
    assert (await resumed.session.measure()).estimated


OUTPUT = ModelError(
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (6000 in the messages, 3000 in "
    "the completion). Please reduce the length of the messages or completion.",
    kind="bad_request",
    status=400,
)


async def test_an_input_that_fits_gets_a_shorter_output_and_nothing_is_compacted():
    model = ScriptedModel([fails(OUTPUT), says("whole"), says("next")], window=Window(16_000, "catalogue"))
    desk = Desk(model, options=Options(output_reserved=3_000))
    events = await desk.say("hi")
    assert not of(events, CompactionRecord)
    first, second = (r.max_output for r in model.requests)
    assert 3_000 < first < 16_000 - model.requests[0].view.raw and second == 2_192, "all there is room for, then less"
    assert model.requests[0].view == model.requests[1].view
    assert len(of(events, Retry)) == 1 and any("2.2k" in n.text for n in of(events, Notice))
    assert of(events, TurnFinished)[0].text == "whole"
    await desk.say("again")
    assert model.requests[2].max_output > 3_000, "for that request only"


async def test_an_output_limit_refused_again_and_again_has_an_end():
    model = ScriptedModel([fails(OUTPUT) for _ in range(9)], window=Window(16_000, "catalogue"))
    desk = Desk(model, options=Options(output_reserved=3_000))
    events = await desk.say("hi")
    assert of(events, TurnFinished)[0].status == "error" and len(model.requests) <= 3


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Rate limit reached: 14290 tokens per minute, limit 10000", 429),
        ("max_tokens is too large: 99999. This model supports at most 4096 completion tokens", 400),
        ("Your credit balance is too low", 402),
        ("content management policy: maximum context of abuse", 403),
    ],
)
async def test_other_refusals_never_compact(text: str, status: int):
    kinds = {429: "rate_limit", 400: "bad_request", 402: "quota", 403: "content_filter"}
    refusal = ModelError(text, kind=kinds[status], status=status)
    desk = Desk(
        ScriptedModel([*(says(LONG) for _ in range(4)), *(fails(refusal) for _ in range(9))]),
        options=quiet(retries=1),
    )
    await fill(desk, 4)
    events = await desk.say("hi")
    assert not of(events, CompactionRecord)
    assert of(events, TurnFinished)[0].status == "error"
    assert desk.session.context_usage.window == 32_768


async def test_one_paste_larger_than_the_window_is_shown_as_head_and_tail_and_kept_whole():
    model = ScriptedModel(
        [served(8_000, OVERFLOW), *(served(8_000, OVERFLOW) for _ in range(4))], window=Window(8_000, "loaded")
    )
    desk = Desk(model, options=quiet(auto_compact="auto"))
    paste = "\n".join(f"line {n} of a long log" for n in range(4_000))
    events = await desk.say(paste)
    assert of(events, TurnFinished)[0].status == "done", of(events, Failed)
    shown = model.requests[-1].view.items[-1].message.text
    assert shown.startswith("line 0 of") and shown.endswith("line 3999 of a long log") and "left out" in shown
    assert desk.state.ledger.messages()[0].text == paste
    assert len(model.requests) == 1, "what is known not to fit is not sent"
    assert any(text == paste for text in desk.journal.spilled.values())


async def test_images_larger_than_the_window_become_placeholders_one_by_one_and_stay_in_the_record():
    images = tuple(Image(f"data:image/png;base64,{n}", 2_000, 2_000) for n in range(12))
    model = ScriptedModel([served(6_000, UNSTATED) for _ in range(9)], window=Window(6_000, "loaded"))
    desk = Desk(model, options=quiet(auto_compact="auto", output_reserved=500))
    async with aclosing(desk.session.send("what is on these?", images)) as stream:
        events = [stamped.event async for stamped in stream]
    assert of(events, TurnFinished)[0].status == "done", of(events, Failed)
    assert "what is on these?" in model.requests[-1].view.items[-1].message.text
    record = desk.state.ledger.messages()[0]
    assert isinstance(record.content, tuple) and len(record.content) == 13


async def test_a_window_nobody_knows_is_not_divided_by_and_not_trusted():
    model = ScriptedModel([says("ok") for _ in range(9)], window=Window(0, "assumed"))
    desk = Desk(model, options=quiet(auto_compact="auto", output_reserved=0))
    events = await desk.say("hi")
    assert of(events, TurnFinished)[0].status == "done"
    assert desk.session.context_usage.limit >= 1


async def test_a_reply_longer_than_the_window_left_room_for_is_counted_in_full():
    desk = Desk(
        ScriptedModel([says("ok", usage=Usage(9_500, 900)), says("next")], window=Window(10_000, "loaded")),
        options=quiet(keep_recent=1),
    )
    await desk.say(LONG)
    context_usage = desk.session.context_usage
    assert context_usage.used == 10_400 and context_usage.excess > 0 and context_usage.pressure > 1


async def test_recent_messages_that_fill_a_small_window_alone_are_fewer_then():
    model = ScriptedModel((says(LONG) for _ in range(20)), window=Window(8_000, "configured"))
    desk = Desk(model, options=Options(strategy="truncate", keep_recent=12, prepare=False))
    passes: list[CompactionRecord] = []
    kept: list[int] = []
    while not passes:
        before = desk.session.context_usage
        passes = of(await desk.say(f"question {LONG}"), CompactionRecord)
        kept.append(len(desk.state.ledger.messages()))
    assert kept[-1] <= 13, "twelve messages had not come together yet"
    assert passes[0].reason == "auto" and passes[0].outcome == "compacted" and before.used < before.limit
    record = desk.state.ledger.compactions[0].record
    assert record is not None and 4 <= record.keep_recent < 12


async def test_by_hand_fewer_recent_messages_stay_where_they_are_nearly_all_there_is():
    desk = Desk(ScriptedModel((says(LONG) for _ in range(20)), window=Window(50_000, "configured")), options=Options())
    for number in range(3):
        await desk.say(f"question {number} {LONG}")
    preview = await desk.session.preview()
    assert preview.plan is not None and preview.keep_recent < Options().keep_recent
