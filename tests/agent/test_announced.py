"""What gauge, draft line and panel announce is what then happens: whatever the settings, the state and the history."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.automatic import standing_words
from ctxchat.core.backoff import MAX_FAILURES_IN_A_ROW, MAX_REFILLS_IN_A_ROW, Backoff
from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage, starts_at
from ctxchat.core.events import CompactionStarted, CompactionSuggested, Event, Failed, Notice
from ctxchat.core.head import ContextBlock, Surroundings
from ctxchat.core.hooks import CompactContext, Hook, When
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from ctxchat.presentation.alarms import alarms, legend
from ctxchat.presentation.bar import layout_bar
from ctxchat.presentation.usage_text import draft_words, gauge_words, sentence
from tests.agent.desk import Around, Desk, Echo
from tests.agent.hooked import Hooked
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.examples import examples

HOOK = Hook("mine", "turn_started", CompactContext(), When(turn_count=10_000))

options = st.builds(
    Options,
    auto_compact=st.sampled_from(["auto", "auto", "ask", "off"]),
    compression_trigger=st.sampled_from([0.3, 0.5, 0.75, 0.95]),
    target=st.sampled_from([0.1, 0.5]),
    keep_recent=st.sampled_from([1, 4, 12]),
    min_messages=st.sampled_from([1, 4, 9]),
    strategy=st.sampled_from(["pipeline", "truncate", "drop_tool_calls"]),
    output_reserved=st.sampled_from([0, 1_000]),
    reactive_per_turn=st.sampled_from([0, 3]),
    prepare=st.booleans(),
)
guards = st.sampled_from(["fresh", "snoozed", "waiting", "failed", "refilled"])
sizes = st.lists(st.sampled_from([5, 100, 400, 1_500]), max_size=8)
drafts = st.sampled_from([1, 50, 600, 2_000, 9_000])


def guard_of(kind: str, desk: Desk) -> Backoff:
    turn = desk.state.ledger.turn
    return {
        "fresh": Backoff(),
        "snoozed": Backoff().rested(turn, 2),
        "waiting": Backoff().failed(desk.clock.seconds() + 10_000),
        "failed": Backoff(failures=MAX_FAILURES_IN_A_ROW),
        "refilled": Backoff(refills=MAX_REFILLS_IN_A_ROW, last_turn=turn),
    }[kind]


async def lived(chosen: Options, backoff: str, turns: list[int], *, hook: bool) -> Desk:
    """A session in a window of 6,000 tokens with such turns behind it."""
    script = [says("word " * size) for size in turns] + [says("done")] * 3
    model = ScriptedModel(script, window=Window(6_000, "loaded"))
    desk = Hooked(model, *([HOOK] if hook else []), options=Options(auto_compact="off"))
    for size in turns:
        await desk.say("tell me " * (size // 3 + 1))
    desk.conversation.options = chosen
    desk.conversation.backoff = guard_of(backoff, desk)
    await desk.session.measure()
    return desk


def drawn(context_usage: ContextUsage) -> str:
    """The ticks of a bar so wide that none falls on the only cell of a part."""
    return "".join(cell.tick for cell in layout_bar(context_usage, 6_000))


async def kept(chosen: Options, backoff: str, turns: list[int], draft: int, *, hook: bool) -> None:
    desk = await lived(chosen, backoff, turns, hook=hook)
    message = "and then " * draft
    before, context_usage = desk.session.context_usage, desk.session.attachments.with_draft(message)
    said = draft_words(context_usage)
    events = await desk.say(message)
    first = opening(events)
    assert not of(first, Failed)
    passes, asked = of(first, CompactionStarted), of(first, CompactionSuggested)
    vain = [n for n in of(first, Notice) if "Nothing to free" in n.text]
    by_itself = [p for p in passes if p.reason == "auto"]
    assert all(p.reason in {"auto", "context_overflow"} for p in passes)
    if not any(p.reason == "context_overflow" for p in passes):
        assert ("compaction would start" in said) == bool(by_itself or (vain and chosen.policy == "auto")), said
    else:
        assert context_usage.excess, "what nobody announced is an emergency"
    assert ("you would be asked" in said) == bool(asked or (vain and chosen.policy == "ask"))
    for shown in (before, context_usage):
        at_trigger = shown.automatic.at_trigger
        ticks = at_trigger or shown.automatic.resumes
        assert ("trigger" in drawn(shown)) == ticks
        assert any(line.startswith("╷") for line in legend(shown, 0.0)) == ticks
        words = " ".join([*legend(shown, 0.0), *alarms(shown, desk.session.view).values(), sentence(shown)]).lower()
        assert at_trigger or standing_words(shown.automatic).lower() in words
    if by_itself and of(first, CompactionRecord)[0].outcome == "compacted":
        assert of(first, CompactionRecord)[0].before.used >= starts_at(context_usage) - 40  # a message's own few tokens


def opening(events: list[Event]) -> list[Event]:
    """What happened before the model was heard."""
    end = next((i for i, e in enumerate(events) if type(e).__name__ == "TextDelta"), len(events))
    return events[:end]


@examples(10, 300)
@given(options, guards, sizes, drafts, st.booleans())
async def test_what_is_announced_is_what_happens(
    chosen: Options, backoff: str, turns: list[int], draft: int, hook: bool
) -> None:
    await kept(chosen, backoff, turns, draft, hook=hook)


class Blank:
    """Writes summaries that nobody can use."""

    model = "blank"

    async def summarise(self, *_: object, **__: object) -> AsyncIterator[str]:
        yield ""


async def test_what_stopped_stays_on_screen_until_it_is_turned_on_again() -> None:
    """A value for the whole way: failures in a row, said by gauge and panel, ended by whatever may have mended it."""
    model = ScriptedModel([says("word " * 400)] * 20, window=Window(6_000, "loaded"))
    desk = Desk(model, options=Options(strategy="summarize", keep_recent=2, prepare=False), summariser=Blank())
    for _ in range(12):
        await desk.say("tell me " * 100)
        desk.clock.time += 10_000
    context_usage = desk.session.context_usage
    assert context_usage.automatic.standing == "failed"
    assert gauge_words(context_usage)[0].startswith("compaction stopped")
    assert "turns it on again" in alarms(context_usage, desk.session.view)["stopped"]
    assert drawn(context_usage) == "" and legend(context_usage, 0.0)[:1] != ["╷"]
    desk.compactor.policy.start_over()
    assert desk.session.context_usage.automatic.standing == "auto" and "trigger" in drawn(desk.session.context_usage)


@pytest.mark.parametrize("per_turn", [0, 3])
async def test_no_pass_inside_a_turn_where_none_is_wanted(per_turn: int) -> None:
    """Only a request that would not fit is made to, and its record says why."""
    rounds = [calls(("echo", {"text": f"{n} " * 200, "times": 1})) for n in range(24)]
    model = ScriptedModel([*rounds, says("done")], window=Window(8_000, "loaded"))
    chosen = Options(reactive_per_turn=per_turn, output_reserved=1_000, min_messages=1)
    desk = Desk(model, tools=[Echo()], options=chosen)
    events = await desk.say("go on for long")
    done = of(events, CompactionRecord)
    assert done and not of(events, Failed)
    assert {p.reason for p in done} <= {"reactive_micro", "reactive_full", "context_overflow"}
    if not per_turn:
        assert all(p.reason == "context_overflow" and p.before.used > 0.9 * 7_000 for p in done)


async def test_the_model_may_ask_for_room_and_say_what_has_to_stay() -> None:
    """At the next place where no call is open; recorded as automatic; not where the person has the say, or none is needed."""
    model = ScriptedModel([says("word " * 900)] * 9, window=Window(8_000, "loaded"))
    desk = Desk(model, options=Options(compression_trigger=0.95, target=0.2, keep_recent=2, prepare=False))
    assert desk.compactor.policy.wanted_by_model("").startswith("Not needed yet")
    for _ in range(4):
        await desk.say("tell me")
    desk.conversation.options = Options(auto_compact="ask")
    assert "The person decides" in desk.compactor.policy.wanted_by_model("")
    desk.conversation.options = Options(
        compression_trigger=0.95, target=0.2, keep_recent=2, prepare=False, strategy="truncate"
    )
    assert desk.compactor.policy.wanted_by_model("the API decisions").startswith("Room is made")
    done = of(await desk.say("go on"), CompactionRecord)
    assert [(p.outcome, p.reason) for p in done] == [("compacted", "auto")]


@pytest.mark.parametrize("before", ["- be brief", ""])
async def test_what_is_remembered_does_not_rewrite_the_prefix(before: str) -> None:
    around = Growing()
    around.text = before
    model = ScriptedModel([says("fine")] * 4)
    desk = Desk(model, around=around)
    await desk.say("one")
    around.text += "\n- the person likes tea"
    await desk.say("two")
    first, second = (request.view.items for request in model.requests)
    assert second[: len(first)] == first, "a request is the last one plus something at its end"
    assert [i.source for i in second if "likes tea" in i.message.text] == ["context:AGENTS.md"]
    around.text = "- something else"
    await desk.say("three")
    third = model.requests[2].view.items
    assert third[: len(second)] == second
    assert [i.source for i in third if "something else" in i.message.text] == ["context:AGENTS.md"]


class Growing(Around):
    """A memory file that changes."""

    text = "- be brief"

    async def gather(self) -> Surroundings:
        return Surroundings((ContextBlock("AGENTS.md", self.text),) if self.text else ())


@pytest.mark.parametrize("backoff", ["snoozed", "failed", "refilled"])
async def test_what_stopped_it_or_put_it_off_outlives_a_restart(backoff: str) -> None:
    desk = await lived(Options(), "fresh", [100, 100], hook=False)
    desk.compactor.policy._use(guard_of(backoff, desk))
    await desk.session.close()
    again = Desk(ScriptedModel([], window=Window(6_000, "loaded")), records=desk.journal.records)
    assert again.session.context_usage.automatic.standing == backoff
    assert again.folded() == again.state
