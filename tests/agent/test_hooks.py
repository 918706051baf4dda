"""Hooks over the real agent, with the scripted model and real commands: what they do, when, and what they must never do."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.hooks import Ran
from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    Event,
    Failed,
    Notice,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from ctxchat.core.hooks import (
    Action,
    CompactContext,
    Hook,
    Inject,
    Notify,
    RunCommand,
    When,
)
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Echo, Recorded
from tests.agent.hooked import EVENTS, LONG, Hooked, sent, sound, told
from tests.agent.test_hook_commands import command
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import ScriptedModel, calls, fails, hangs, says
from tests.examples import examples

# ── order ──


async def test_every_event_reaches_its_hooks_and_a_turn_ends_with_its_end():
    hooks = [Hook(f"h {event}", event, Notify(event)) for event in EVENTS]
    model = ScriptedModel([calls(("echo", {"text": "a"})), says("done")])
    desk = Hooked(model, *hooks, tools=[Echo()])
    events = await desk.say("go")
    assert told(events) == ["session_started", "turn_started", "tool_started", "tool_finished", "turn_finished"]
    assert isinstance(events[0], TurnStarted) and isinstance(events[-1], TurnFinished)
    kinds = [type(e) for e in events]
    assert kinds.index(ToolFinished) < events.index(Notice("info", "tool_finished"))
    assert [n.text for n in await desk.session.close()] == ["session_finished"]
    assert await desk.session.close() == ()


async def test_higher_priority_goes_first_and_the_rest_in_their_order():
    hooks = [
        Hook("a", "turn_started", Notify("a")),
        Hook("b", "turn_started", Notify("b"), priority=5),
        Hook("c", "turn_started", Notify("c"), priority=-5),
        Hook("d", "turn_started", Notify("d")),
    ]
    desk = Hooked(ScriptedModel([says("x")]), *hooks)
    assert told(await desk.say("go")) == ["b", "a", "d", "c"]


async def test_an_error_is_an_event_and_the_turn_still_ends():
    desk = Hooked(ScriptedModel([fails(ModelError("no key", kind="auth"))]), Hook("e", "error", Notify("look")))
    events = await desk.say("go")
    assert told(events) == ["look"]
    assert isinstance(events[-1], TurnFinished) and of(events, Failed)


async def test_a_session_that_was_only_looked_at_finishes_in_silence():
    desk = Hooked(ScriptedModel([]), Hook("s", "session_finished", Notify("x")))
    assert await desk.session.close() == ()


async def test_conditions_see_the_turn_its_calls_and_the_tool():
    hooks = [
        Hook("third", "tool_started", Notify("third call"), when=When(tool_calls=3)),
        Hook("write", "tool_finished", Notify("written"), when=When(tool_name="wr*")),
        Hook("later", "turn_started", Notify("second turn"), when=When(turn_count=2)),
        Hook("many", "turn_started", Notify("four messages"), when=When(message_count=4)),
    ]
    two = calls(("read", {"text": "a"}), ("write", {"text": "b"}))
    model = ScriptedModel([two, two, says("x"), two, says("y")])
    desk = Hooked(model, *hooks, tools=[Echo("read"), Echo("write")], mode="all")
    assert told(await desk.say("one")) == ["written", "third call", "third call", "written"]
    assert told(await desk.say("two")) == ["second turn", "four messages", "written"]


async def test_pressure_counts_results_that_are_not_in_the_view_yet():
    hook = Hook("full", "tool_finished", Notify("full"), when=When(context_pressure=0.3))
    model = ScriptedModel([calls(("echo", {"text": LONG})), says("x")], window=Window(3000, "configured"))
    desk = Hooked(model, hook, tools=[Echo()], options=Options(output_reserved=0))
    events = await desk.say("go")
    before = [e for e in events[: events.index(of(events, ToolFinished)[0])] if isinstance(e, ContextUsage)]
    assert told(events) == ["full"]
    assert before[-1].pressure < 0.3


# ── notes ──


async def test_a_note_waits_for_the_end_of_the_round_and_goes_with_the_next_request():
    hook = Hook("mind", "tool_finished", Inject("Mind the gap."), cooldown=1)
    model = ScriptedModel([calls(("echo", {"text": "a"}), ("echo", {"text": "b"})), says("done")])
    desk = Hooked(model, hook, tools=[Echo()])
    events = await desk.say("go")
    assert [g.kind for g in desk.state.ledger.groups] == ["user", "round", "note", "reply"]
    assert [g.source for g in desk.notes] == ["hook:mind"]
    assert "Mind the gap." not in sent(model)[0] and "Mind the gap." in sent(model)[1]
    assert model.views[1].items[-1].source == "hook:mind" and model.views[1].items[-1].section == "injected"
    assert await sound(desk, model)
    assert all(adds_up(e) for e in of(events, ContextUsage))
    assert told(events) == ["Hook mind: a note went to the model."]


async def test_a_note_at_the_start_of_a_turn_is_in_its_first_request():
    model = ScriptedModel([says("done")])
    desk = Hooked(model, Hook("plan", "turn_started", Inject("Plan first.")))
    await desk.say("go")
    assert "Plan first." in sent(model)[0]
    assert desk.state.ledger.current == {desk.state.ledger.groups[0].id}  # what the person said is still the question


async def test_a_note_at_the_end_of_a_turn_is_in_the_next_turn():
    model = ScriptedModel([says("one"), says("two")])
    desk = Hooked(model, Hook("next", "turn_finished", Inject("Once more."), max_fires=1))
    await desk.say("go")
    assert [g.kind for g in desk.state.ledger.groups] == ["user", "reply", "note"]
    await desk.say("again")
    assert "Once more." in sent(model)[1]
    assert len(desk.notes) == 1 and await sound(desk, model)


async def test_what_waits_when_a_turn_is_stopped_is_delivered_with_the_next_and_once():
    two = calls(("echo", {"text": "a"}), ("echo", {"text": "b"}))
    model = ScriptedModel([two, hangs("half"), says("two")])
    desk = Hooked(model, Hook("mind", "tool_started", Inject("Mind the gap.")), tools=[Echo()])
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ToolFinished):
                break
    assert [g.kind for g in desk.state.ledger.groups] == ["user", "round"]
    await desk.session.close()  # nothing that was promised is lost
    assert [g.source for g in desk.notes] == ["hook:mind"]
    assert await sound(desk, model)


async def test_a_note_after_a_compaction_is_in_the_very_next_request():
    hook = Hook("rules", "compaction_finished", Inject("Never touch main.py."))
    model = ScriptedModel([says(LONG) for _ in range(9)], window=Window(8000, "configured"))
    desk = Hooked(model, hook, options=Options(strategy="truncate", keep_recent=2, prepare=False))
    for number in range(9):
        events = await desk.say(f"question {number}? {LONG}")
        if of(events, CompactionRecord):
            break
    passed = of(events, CompactionRecord)
    assert [p.reason for p in passed] == ["auto"]  # another hook leaves the automatic compaction alone
    assert "Never touch main.py." in sent(model)[-1]
    assert await sound(desk, model)


async def test_a_note_that_cannot_be_written_is_told_and_the_turn_goes_on():
    model = ScriptedModel([calls(("echo", {"text": "a"})), says("done")])
    desk = Hooked(model, Hook("mind", "turn_started", Inject("Mind the gap."), max_fires=2), tools=[Echo()])
    events: list[Event] = []
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            events.append(stamped.event)
            desk.journal.full = isinstance(stamped.event, TurnStarted) or (
                desk.journal.full and not isinstance(stamped.event, Notice)
            )
    assert told(events)[0].startswith("Hook mind: its note could not be written. The disk is full.")
    assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
    assert desk.notes == [] and desk.state.hooks["mind"].fires == 1
    assert desk.folded() == desk.state


async def test_a_note_about_a_pass_after_a_refusal_is_in_the_request_that_is_sent_again():
    refused = fails(ModelError("maximum context length is 6000 tokens", kind="overflow", status=400))
    script = [*(says(LONG) for _ in range(4)), refused, says("done")]
    model = ScriptedModel(script, window=Window(32_000, "assumed"))
    hook = Hook("rules", "compaction_finished", Inject("Never touch main.py."))
    desk = Hooked(model, hook, options=Options(strategy="truncate", keep_recent=2, prepare=False))
    for number in range(4):
        await desk.say(f"question {number}? {LONG}")
    events = await desk.say("now?")
    assert "context_overflow" in {p.reason for p in of(events, CompactionRecord)}
    assert "Never touch main.py." not in sent(model)[-2] and "Never touch main.py." in sent(model)[-1]
    assert await sound(desk, model)


async def test_a_runner_that_breaks_costs_the_hook_only():
    desk = Hooked(
        ScriptedModel([says("x"), says("y")]),
        command("true", "turn_started"),
        Hook("other", "turn_started", Notify("still here")),
        run=Recorded(OSError("no shell")),
    )
    assert told(await desk.say("one")) == ["Hook cmd: OSError: no shell.", "still here"]
    assert told(await desk.say("two")) == ["still here"]


# ── whatever hooks there are ──

actions: st.SearchStrategy[Action] = st.sampled_from(
    [
        CompactContext(),
        CompactContext("drop_tool_calls"),
        Inject("Mind the gap."),
        Notify("hello"),
        RunCommand("a", show_output=True),
        RunCommand("b"),
    ]
)


any_hooks = st.lists(
    st.builds(
        Hook,
        name=st.sampled_from("abcdefgh"),
        event=st.sampled_from(EVENTS),
        action=actions,
        when=st.builds(When, context_pressure=st.none() | st.floats(0, 1), tool_name=st.none() | st.just("e*")),
        cooldown=st.integers(0, 2),
        max_fires=st.integers(0, 3),
        priority=st.integers(-2, 2),
    ),
    max_size=5,
    unique_by=lambda hook: hook.name,
)


@examples(12, 100)  # each is a session of several turns
@given(any_hooks, st.booleans())
def test_no_set_of_hooks_breaks_a_request_or_loses_a_message(hooks: list[Hook], failing: bool):
    asyncio.run(over_any_hooks(hooks, Ran(1, "E501") if failing else Ran(0, "fine")))


async def over_any_hooks(hooks: list[Hook], ran: Ran) -> None:
    turn = [calls(("echo", {"text": LONG}), ("echo", {"text": "crash"})), calls(("echo", {"text": LONG})), says(LONG)]
    model = ScriptedModel(turn * 3, window=Window(8000, "configured"))
    made = Options(strategy="truncate", keep_recent=2, prepare=False)
    desk = Hooked(model, *hooks, run=Recorded(ran), tools=[Echo()], options=made)
    for number in range(3):
        events = await desk.say(f"question {number}?")
        assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
        assert all(adds_up(e) for e in of(events, ContextUsage))
    await desk.session.close()
    ours = ("hook:", "context:")
    kinds = [g.kind for g in desk.state.ledger.groups if not g.source.startswith(ours)]
    assert kinds == ["user", "round", "round", "reply"] * 3
    assert await sound(desk, model)
    for hook in hooks:
        fires = desk.state.hooks[hook.name].fires if hook.name in desk.state.hooks else 0
        assert not hook.max_fires or fires <= hook.max_fires
