"""Hooks over the real agent, with the scripted model and real commands: what they do, when, and what they must never do."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.agent.compactor import Compactor
from ctxchat.agent.hooks import CommandRunner, Hooks, Ran
from ctxchat.agent.options import Options
from ctxchat.agent.session import Session
from ctxchat.bootstrap.hooks import HookCommands
from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    CompactionFinished,
    Event,
    Failed,
    Notice,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from ctxchat.core.figures import Figures
from ctxchat.core.hooks import (
    Action,
    CompactContext,
    Hook,
    HookEvent,
    Inject,
    Notify,
    RunCommand,
    When,
    replaces_automatic,
)
from ctxchat.core.messages import Group
from ctxchat.core.ports import ModelPort, Summariser
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import ScriptedModel, calls, fails, hangs, says

LONG = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * 30
EVENTS: tuple[HookEvent, ...] = (
    "session_started", "session_finished", "turn_started", "turn_finished", "tool_started", "tool_finished",
    "compaction_started", "compaction_finished", "error",
)  # fmt: skip


class Recorded:
    """Runs no command: keeps what it was asked, answers as told."""

    def __init__(self, ran: Ran | Exception | None = None) -> None:
        self.ran = ran or Ran(0, "")
        self.asked: list[tuple[str, dict[str, object]]] = []

    async def __call__(self, command: str, event: bytes, seconds: float) -> Ran:
        self.asked.append((command, json.loads(event)))
        if isinstance(self.ran, Exception):
            raise self.ran
        return self.ran


class Hooked(Desk):
    """A desk whose session has hooks."""

    def __init__(
        self,
        model: ModelPort,
        *hooks: Hook,
        run: CommandRunner | None = None,
        summariser: Summariser | None = None,
        **given: object,
    ) -> None:
        super().__init__(model, summariser=summariser, **given)  # type: ignore[arg-type]
        self.compactor = Compactor(self.conversation, summariser=summariser, by_hooks=replaces_automatic(hooks))
        watching = Hooks(hooks, self.conversation, self.compactor, run or Recorded())
        self.session = Session(self.conversation, self.toolbox, self.compactor, self.arranged, hooks=watching)

    @property
    def notes(self) -> list[Group]:
        """What hooks put into the record."""
        return [g for g in self.state.ledger.groups if g.source.startswith("hook:")]


def told(events: Sequence[object]) -> list[str]:
    return [e.text for e in events if isinstance(e, Notice)]


def sent(model: ScriptedModel) -> list[str]:
    """All the text of each request."""
    return ["\n".join(item.message.text for item in view.items) for view in model.views]


def sound(desk: Desk, model: ScriptedModel) -> bool:
    """Every request was valid, and the journal alone gives the same session back."""
    return all(not problems(view) for view in model.views) and desk.folded() == desk.state


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
    before = [e for e in events[: events.index(of(events, ToolFinished)[0])] if isinstance(e, Figures)]
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
    assert sound(desk, model)
    assert all(adds_up(e) for e in of(events, Figures))
    assert told(events) == ["Hook mind: a note went to the model."]


async def test_a_note_at_the_start_of_a_turn_is_in_its_first_request():
    model = ScriptedModel([says("done")])
    desk = Hooked(model, Hook("plan", "turn_started", Inject("Plan first.")))
    await desk.say("go")
    assert "Plan first." in sent(model)[0]
    assert desk.state.ledger.current == desk.state.ledger.groups[0].id  # what the person said is still the question


async def test_a_note_at_the_end_of_a_turn_is_in_the_next_turn():
    model = ScriptedModel([says("one"), says("two")])
    desk = Hooked(model, Hook("next", "turn_finished", Inject("Once more."), max_fires=1))
    await desk.say("go")
    assert [g.kind for g in desk.state.ledger.groups] == ["user", "reply", "note"]
    await desk.say("again")
    assert "Once more." in sent(model)[1]
    assert len(desk.notes) == 1 and sound(desk, model)


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
    assert sound(desk, model)


async def test_a_note_after_a_compaction_is_in_the_very_next_request():
    hook = Hook("rules", "compaction_finished", Inject("Never touch main.py."))
    model = ScriptedModel([says(LONG) for _ in range(9)], window=Window(8000, "configured"))
    desk = Hooked(model, hook, options=Options(strategy="truncate", keep_recent=2, prepare=False))
    for number in range(9):
        events = await desk.say(f"question {number}? {LONG}")
        if of(events, CompactionFinished):
            break
    passed = of(events, CompactionFinished)
    assert [p.reason for p in passed] == ["auto"]  # another hook leaves the automatic pass alone
    assert "Never touch main.py." in sent(model)[-1]
    assert sound(desk, model)


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
    assert "context_overflow" in {p.reason for p in of(events, CompactionFinished)}
    assert "Never touch main.py." not in sent(model)[-2] and "Never touch main.py." in sent(model)[-1]
    assert sound(desk, model)


# ── compaction ──


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
    passes = of(events, CompactionFinished)
    assert passes and {p.reason for p in passes} == {"hook"}
    assert all(p.outcome == "compacted" and p.after.used < p.before.used for p in passes)
    assert max(f.pressure for f in of(events, Figures)) < 0.75
    assert len(desk.state.ledger.messages()) == 16 and sound(desk, model)


async def test_without_pressure_for_the_hook_no_pass_runs_by_itself():
    hook = Hook("never", "turn_started", CompactContext(), when=When(turn_count=100))
    desk, _ = talkative(hook)
    events: list[Event] = []
    for number in range(6):
        events += await desk.say(f"question {number}? {LONG}")
    assert of(events, CompactionFinished) == []
    assert max(f.pressure for f in of(events, Figures)) > 0.75


async def test_a_hook_for_the_end_of_the_session_leaves_the_automatic_pass_alone():
    desk, _ = talkative(Hook("tidy", "session_finished", CompactContext()))
    events: list[Event] = []
    for number in range(6):
        events += await desk.say(f"question {number}? {LONG}")
    assert {p.reason for p in of(events, CompactionFinished)} == {"auto"}
    before = desk.session.figures.used
    await desk.session.close()
    assert desk.state.passes[-1].reason == "hook" and desk.session.figures.used < before


async def test_nothing_to_free_starts_no_cooldown_and_says_nothing():
    hook = Hook("often", "turn_started", CompactContext(), cooldown=50)
    desk, _ = talkative(hook)
    events = await desk.say("short")
    assert of(events, CompactionFinished) == [] and told(events) == []
    assert desk.state.hooks == {}
    for number in range(5):
        events += await desk.say(f"question {number}? {LONG}")
    assert len(of(events, CompactionFinished)) == 1  # the first that had something to free; then it rests
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
    assert [p.reason for p in of(events, CompactionFinished)] == ["hook"]
    assert isinstance(events[-1], TurnFinished) and told(events) == ["Hook rules: a note went to the model."]
    assert desk.state.ledger.groups[-1].source == "hook:rules" and sound(desk, model)


async def test_several_that_want_room_at_once_make_one_pass():
    hooks = [
        Hook("a", "turn_finished", CompactContext(), when=When(turn_count=4)),
        Hook("b", "turn_finished", CompactContext("drop_tool_calls"), priority=1),  # there are none
        Hook("c", "turn_finished", CompactContext("token_budget"), when=When(turn_count=4)),
    ]
    desk, _ = talkative(*hooks)
    for number in range(3):
        assert of(await desk.say(f"question {number}? {LONG}"), CompactionFinished) == []
    events = await desk.say(LONG)
    assert [p.strategy for p in of(events, CompactionFinished)] == ["truncate"]


async def test_a_pass_in_the_middle_of_a_turn_waits_for_the_end_of_the_round():
    hook = Hook("room", "tool_finished", CompactContext(), when=When(context_pressure=0.5))
    script = [calls(("echo", {"text": f"{n} {LONG}"}), ("echo", {"text": LONG})) for n in range(12)]
    model = ScriptedModel([*script, says("done")], window=Window(12_000, "configured"))
    desk = Hooked(model, hook, tools=[Echo()], options=Options(strategy="truncate", keep_recent=4, prepare=False))
    events = await desk.say("go")
    passes = of(events, CompactionFinished)
    assert passes and all(p.reason == "hook" and p.outcome == "compacted" for p in passes)
    assert isinstance(events[-1], TurnFinished) and events[-1].status == "done"
    assert len(desk.state.ledger.messages()) == 1 + 12 * 3 + 1
    assert sound(desk, model)


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

    async def summarise(
        self, groups: Sequence[Group], instructions: str, previous: str, max_tokens: int
    ) -> AsyncGenerator[str, None]:
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


# ── commands ──


def command(text: str, event: HookEvent = "tool_finished", **given: object) -> Hook:
    timeout, show = given.pop("timeout", 10.0), given.pop("show_output", False)
    return Hook("cmd", event, RunCommand(text, timeout, show), **given)  # type: ignore[arg-type]


def with_command(hook: Hook, where: Path, *, turns: int = 1) -> tuple[Hooked, ScriptedModel]:
    model = ScriptedModel([calls(("echo", {"text": "é[b]"})), says("done")] * turns)
    environ = {**os.environ, "SOME_API_KEY": "sk-secret", "PLAIN": "yes"}
    return Hooked(model, hook, run=HookCommands(where, environ), tools=[Echo()]), model


async def test_a_command_gets_the_event_as_json_in_the_workspace_without_keys(tmp_path: Path):
    desk, model = with_command(command('cat > event.json; echo "$PLAIN,$SOME_API_KEY" > env'), tmp_path)
    events = await desk.say("go")
    event = json.loads((tmp_path / "event.json").read_text())
    assert (event["type"], event["name"], event["hook"], event["session"]) == ("tool_finished", "echo", "cmd", "s1")
    assert event["moment"]["tool_calls"] == 1 and event["moment"]["turn_count"] == 1
    assert (tmp_path / "env").read_text() == "yes,\n"
    assert told(events) == [] and desk.notes == []
    assert sound(desk, model)


async def test_what_a_command_prints_stays_out_of_the_conversation(tmp_path: Path):
    desk, model = with_command(command("echo printed"), tmp_path)
    await desk.say("go")
    assert not any("printed" in text for text in sent(model))


async def test_unless_the_hook_shows_it_cleaned_and_with_its_exit_code(tmp_path: Path):
    desk, model = with_command(command("printf '\\033[31mE501\\033[0m too long'; exit 1", show_output=True), tmp_path)
    events = await desk.say("go")
    assert "exit code 1]\nE501 too long" in sent(model)[1]
    assert "\x1b" not in sent(model)[1]
    assert told(events) == ["Hook cmd: a note went to the model."]


async def test_output_without_end_is_cut_told_and_kept_in_a_file(tmp_path: Path):
    desk, model = with_command(command("seq 200000", show_output=True), tmp_path)
    await desk.say("go")
    note = desk.notes[0].first.text
    (name,) = desk.journal.spilled
    assert f"full text: {name}" in note and "left out" in note
    assert desk.session.view.items[-1].tokens < 10_000
    assert sound(desk, model)


@pytest.mark.parametrize(
    ("text", "said"),
    [("echo the disk is full >&2; exit 3", "exit code 3: the disk is full"), ("no-such-program-here", "exit code 127")],
)
async def test_a_failing_or_unknown_command_is_told_once(tmp_path: Path, text: str, said: str):
    desk, _ = with_command(command(text), tmp_path, turns=2)
    events = [*await desk.say("one"), *await desk.say("two")]
    assert len(told(events)) == 1 and told(events)[0].startswith("Hook cmd: ") and said in told(events)[0]
    assert [e.status for e in of(events, TurnFinished)] == ["done", "done"]


async def test_a_hanging_command_ends_with_its_children_and_is_left_out_from_then_on(tmp_path: Path):
    hook = command("echo x >> runs; (sleep 61 & echo $! > child; wait)", timeout=0.3)
    desk, _ = with_command(hook, tmp_path, turns=2)
    events = await desk.say("one")
    assert len(told(events)) == 1 and "did not end within 0.3 s" in told(events)[0]
    assert await gone(int((tmp_path / "child").read_text()))
    events = await desk.say("two")
    assert told(events) == [] and isinstance(events[-1], TurnFinished)
    assert (tmp_path / "runs").read_text() == "x\n"


async def test_what_a_command_leaves_in_the_background_holds_nothing_up(tmp_path: Path):
    desk, _ = with_command(command("sleep 61 & echo $! > child", timeout=30), tmp_path)
    events = await desk.say("one")
    assert told(events) == [] and isinstance(events[-1], TurnFinished)
    assert await gone(int((tmp_path / "child").read_text()))


async def test_stopping_the_turn_ends_the_command(tmp_path: Path):
    desk, _ = with_command(command("echo $$ > pid; sleep 61", timeout=60), tmp_path)
    turn = asyncio.create_task(desk.say("go"))
    assert await soon(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await gone(int((tmp_path / "pid").read_text()))
    assert not desk.session.busy
    assert desk.state.ledger.groups[-1].kind == "round"  # sealed, so the next request is valid
    assert desk.folded() == desk.state


async def gone(pid: int) -> bool:
    """True once no such process runs any more; a dead one nobody has buried yet counts."""

    def dead() -> bool:
        status = Path(f"/proc/{pid}/status")
        try:
            os.kill(pid, 0)
            return status.exists() and "\nState:\tZ" in status.read_text()
        except (ProcessLookupError, FileNotFoundError):
            return True

    return await soon(dead)


async def soon(there: Callable[[], object]) -> bool:
    """True once it is there, within five seconds."""
    for _ in range(500):
        if there():
            return True
        await asyncio.sleep(0.01)
    return False


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


@settings(max_examples=40, deadline=None)
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
        assert all(adds_up(e) for e in of(events, Figures))
    await desk.session.close()
    kinds = [g.kind for g in desk.state.ledger.groups if not g.source.startswith("hook:")]
    assert kinds == ["user", "round", "round", "reply"] * 3
    assert sound(desk, model)
    for hook in hooks:
        fires = desk.state.hooks[hook.name].fires if hook.name in desk.state.hooks else 0
        assert not hook.max_fires or fires <= hook.max_fires
