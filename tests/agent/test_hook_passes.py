"""Compactions that hooks ask for: in place of the automatic one, one at a time, and never under a call."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    Event,
    TurnFinished,
)
from ctxchat.core.hooks import (
    CompactContext,
    Hook,
    Inject,
    When,
)
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Echo
from tests.agent.hooked import LONG, Hooked, sound, told
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says


def talkative(*hooks: Hook, turns: int = 12, **options: object) -> tuple[Hooked, ScriptedModel]:
    model = ScriptedModel([says(LONG) for _ in range(turns)], window=Window(8000, "configured"))
    made = Options(**({"strategy": "truncate", "keep_recent": 2, "prepare": False} | options))  # type: ignore[arg-type]
    return Hooked(model, *hooks, options=made), model


async def test_a_compaction_hook_replaces_the_automatic_pass():
    hook = Hook("early", "turn_finished", CompactContext(), when=When(context_pressure=0.4))
    desk, model = talkative(hook)
    events: list[Event] = []
    for number in range(8):
        events += await desk.say(f"question {number}? {LONG}")
    passes = of(events, CompactionRecord)
    assert passes and {p.reason for p in passes} == {"hook"}
    assert all(p.outcome == "compacted" and p.after.used < p.before.used for p in passes)
    assert max(f.pressure for f in of(events, ContextUsage)) < 0.75
    assert len(desk.state.ledger.messages()) == 16 and await sound(desk, model)


async def test_without_pressure_for_the_hook_no_pass_runs_by_itself():
    hook = Hook("never", "turn_started", CompactContext(), when=When(turn_count=100))
    desk, _ = talkative(hook)
    events: list[Event] = []
    for number in range(6):
        events += await desk.say(f"question {number}? {LONG}")
    assert of(events, CompactionRecord) == []
    assert max(f.pressure for f in of(events, ContextUsage)) > 0.75


async def test_a_hook_for_the_end_of_the_session_leaves_the_automatic_pass_alone():
    desk, _ = talkative(Hook("tidy", "session_finished", CompactContext()))
    events: list[Event] = []
    for number in range(6):
        events += await desk.say(f"question {number}? {LONG}")
    assert {p.reason for p in of(events, CompactionRecord)} == {"auto"}
    before = desk.session.context_usage.used
    await desk.session.close()
    assert desk.state.compactions[-1].reason == "hook" and desk.session.context_usage.used < before


async def test_nothing_to_free_starts_no_cooldown_and_says_nothing():
    hook = Hook("often", "turn_started", CompactContext(), cooldown=50)
    desk, _ = talkative(hook)
    events = await desk.say("short")
    assert of(events, CompactionRecord) == [] and told(events) == []
    assert desk.state.hooks == {}
    for number in range(5):
        events += await desk.say(f"question {number}? {LONG}")
    assert len(of(events, CompactionRecord)) == 1  # the first that had something to free; then it rests
    assert desk.state.hooks["often"].fires == 1


async def test_cooldown_and_limit_outlive_the_process():
    hook = Hook("once", "turn_started", Inject("Hello."), max_fires=1)
    desk = Hooked(ScriptedModel([says("x"), says("y")]), hook)
    await desk.say("one")
    again = Hooked(ScriptedModel([says("z")]), hook, records=desk.journal.records)
    await again.say("two")
    assert len(again.notes) == 1


async def test_a_note_about_a_hooks_own_pass_is_in_before_the_turn_ends():
    room = Hook("room", "turn_finished", CompactContext(), when=When(turn_count=3), max_fires=1)
    desk, model = talkative(room, Hook("rules", "compaction_finished", Inject("Never touch main.py.")))
    for number in range(2):
        await desk.say(f"question {number}? {LONG}")
    events = await desk.say(LONG)
    assert [p.reason for p in of(events, CompactionRecord)] == ["hook"]
    assert isinstance(events[-1], TurnFinished) and told(events) == ["Hook rules: a note went to the model."]
    assert desk.state.ledger.groups[-1].source == "hook:rules" and await sound(desk, model)


async def test_several_that_want_room_at_once_make_one_pass():
    hooks = [
        Hook("a", "turn_finished", CompactContext(), when=When(turn_count=4)),
        Hook("b", "turn_finished", CompactContext("drop_tool_calls"), priority=1),  # there are none
        Hook("c", "turn_finished", CompactContext("token_budget"), when=When(turn_count=4)),
    ]
    desk, _ = talkative(*hooks)
    for number in range(3):
        assert of(await desk.say(f"question {number}? {LONG}"), CompactionRecord) == []
    events = await desk.say(LONG)
    assert [p.strategy for p in of(events, CompactionRecord)] == ["truncate"]


async def test_a_pass_in_the_middle_of_a_turn_waits_for_the_end_of_the_round():
    hook = Hook("room", "tool_finished", CompactContext(), when=When(context_pressure=0.5))
    script = [calls(("echo", {"text": f"{n} {LONG}"}), ("echo", {"text": LONG})) for n in range(12)]
    model = ScriptedModel([*script, says("done")], window=Window(12_000, "configured"))
    desk = Hooked(model, hook, tools=[Echo()], options=Options(strategy="truncate", keep_recent=4, prepare=False))
    events = await desk.say("go")
    passes = of(events, CompactionRecord)
    assert passes and all(p.reason == "hook" and p.outcome == "compacted" for p in passes)
    assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
    assert len(desk.state.ledger.messages()) == 1 + 12 * 3 + 1
    assert await sound(desk, model)


async def test_an_unknown_strategy_is_told_once_and_the_turn_goes_on():
    hook = Hook("odd", "turn_started", CompactContext("sorcery"))
    desk = Hooked(ScriptedModel([says("x"), says("y")]), hook)
    events = [*await desk.say("one"), *await desk.say("two")]
    assert len(told(events)) == 1 and "Hook odd" in told(events)[0] and "sorcery" in told(events)[0]
    assert [e.status for e in of(events, TurnFinished)] == ["done", "done"]


class Broken:
    """A summariser that is down."""

    model = "writer/one"

    def __init__(self) -> None:
        self.asked = 0

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str, None]:
        self.asked += 1
        raise ModelError("down", kind="server")
        yield ""


async def test_a_hook_whose_summaries_fail_rests_like_any_other_pass():
    writer = Broken()
    model = ScriptedModel([says(LONG) for _ in range(8)], window=Window(60_000, "configured"))
    hook = Hook("eager", "turn_finished", CompactContext("summarize"))
    rules = Hook("rules", "compaction_finished", Inject("It was compacted."))
    desk = Hooked(model, hook, rules, summariser=writer, options=Options(keep_recent=2, prepare=False))
    events: list[Event] = []
    for number in range(8):
        events += await desk.say(f"question {number}? {LONG}")
    assert writer.asked == 1 and desk.notes == []
    assert desk.state.ledger.changes == () and desk.state.hooks == {}
