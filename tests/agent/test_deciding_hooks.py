"""Hooks that may say no, over the real agent and real commands: calls, messages, ends and compactions."""

from __future__ import annotations

import asyncio
import json
from itertools import repeat
from pathlib import Path

import pytest

from ctxchat.bootstrap.hooks import HookCommands
from ctxchat.core.budget import Window
from ctxchat.core.errors import CtxchatError, ModelError
from ctxchat.core.events import ApprovalRequested, Failed, Notice, Steered, ToolFinished, TurnFinished
from ctxchat.core.hooks import Hook, HookEvent, Notify, RunCommand, When
from ctxchat.core.options import Options
from ctxchat.core.permissions import Answer
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Echo
from tests.agent.hooked import LONG, Hooked, sent, sound, told
from tests.agent.test_steering import Mailbox, said
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, fails, says


def hook(
    event: HookEvent, command: str, matcher: str = "", form: str = "claude", name: str = "h", **more: object
) -> Hook:
    return Hook(name, event, RunCommand(command, form=form, matcher=matcher, timeout=20), **more)  # type: ignore[arg-type]


def desk(tmp_path: Path, model: ScriptedModel, *hooks: Hook, **more: object) -> Hooked:
    return Hooked(model, *hooks, run=HookCommands(tmp_path), tools=[Echo("shell"), Echo("grep")], **more)


@pytest.mark.parametrize("form", ["claude", "ctxchat"])
async def test_a_no_stops_the_call_and_the_model_knows_why(tmp_path: Path, form: str):
    guard = "cat > told; echo 'no rm here' >&2; exit 2"
    when = When() if form == "claude" else When(tool_name="shell")
    model = ScriptedModel([calls(("shell", {"text": "rm -rf /"}), ("grep", {"text": "fine"})), says("well")])
    work = desk(tmp_path, model, hook("tool_started", guard, "Bash" if form == "claude" else "", form, when=when))
    events = await work.say("go")
    ended = {e.name: e for e in of(events, ToolFinished)}
    assert ended["shell"].status == "error" and "no rm here" in ended["shell"].output and ended["grep"].output == "fine"
    assert "no rm here" in sent(model)[-1] and await sound(work, model)
    given = json.loads((tmp_path / "told").read_text())
    if form == "claude":
        assert given["hook_event_name"] == "PreToolUse" and given["tool_name"] == "Bash" and given["cwd"] == ""
        assert given["permission_mode"] == "default"
        assert given["tool_input"] == {"text": "rm -rf /"} and given["session_id"] == "s1"
    else:
        assert given["type"] == "tool_started" and given["moment"]["tool_name"] == "shell"
    await work.session.close()


async def test_arguments_can_be_changed_a_question_wanted_and_a_word_added(tmp_path: Path):
    answer = {"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {"text": "safe"}}}
    after = {"decision": "block", "reason": "format it", "hookSpecificOutput": {"additionalContext": "and test it"}}
    (tmp_path / "answer").write_text(json.dumps(answer))
    (tmp_path / "after").write_text(json.dumps(after))
    hooks = (hook("tool_started", "cat answer"), hook("tool_finished", "cat after", name="after"))
    work = desk(tmp_path, ScriptedModel([calls(("shell", {"text": "raw"})), says("well")]), *hooks)
    asked = 0
    async for stamped in work.session.send("go"):
        if isinstance(stamped.event, ApprovalRequested):
            asked += 1
            work.session.permissions.answer(stamped.event.call_id, Answer("once"))
    result = next(m for m in work.state.ledger.messages() if m.role == "tool").text
    assert asked == 1 and result.startswith("safe\n[a hook changed the arguments of this call to")
    assert '"safe"' in result and result.endswith("\n[a hook says: format it\nand test it]")
    await work.session.close()


async def test_a_message_that_may_not_go_goes_nowhere_and_context_comes_as_a_note(tmp_path: Path):
    rule = "grep -q secret && { echo 'no secrets' >&2; exit 2; }; echo 'it is Monday'"
    model = ScriptedModel(repeat(says("well"), 3))
    work = desk(
        tmp_path, model, hook("turn_started", rule), hook("session_started", "echo welcome", "startup", name="s")
    )
    with pytest.raises(CtxchatError, match="no secrets"):
        await work.say("the secret is out")
    assert not work.state.ledger.groups and not model.views
    await work.say("hello")
    assert "it is Monday" in sent(model)[0] and "welcome" in sent(model)[0] and await sound(work, model)
    await work.session.close()


async def test_an_end_can_be_put_off_but_not_for_ever(tmp_path: Path):
    model = ScriptedModel(repeat(says("done"), 20))
    work = desk(tmp_path, model, hook("turn_finished", "cat >> told; echo 'run the tests' >&2; exit 2"))
    events = await work.say("go")
    assert of(events, TurnFinished)[0].status == "done" and len(model.views) == 6
    assert "run the tests" in sent(model)[1] and await sound(work, model)
    stops = [json.loads(line)["stop_hook_active"] for line in (tmp_path / "told").read_text().splitlines()]
    assert stops == [False, *repeat(True, 5)]
    await work.session.close()


async def test_a_compaction_can_be_vetoed_or_told_what_to_keep(tmp_path: Path):
    options = Options(keep_recent=2, strategy="summarize", prepare=False)
    veto = 'test -f allow && { echo \'{"hookSpecificOutput": {"additionalContext": "keep the tide table"}}\'; exit 0; }; exit 2'
    model = ScriptedModel(repeat(says(LONG * 2), 12), window=Window(12_000, "loaded"))
    kept: list[str] = []

    class Writer:
        model = "writer"

        async def summarise(self, task):
            kept.append(task.instructions)
            yield "a summary"

    work = desk(tmp_path, model, hook("compaction_started", veto), options=options, summariser=Writer())
    for _ in range(4):
        await work.say(LONG * 2)
    before = work.state.ledger.live()
    record = of(await work.free_up(), CompactionRecord)[-1]
    assert record.outcome == "rejected" and "does not allow" in record.detail and work.state.ledger.live() == before
    (tmp_path / "allow").touch()
    assert of(await work.free_up(), CompactionRecord)[-1].outcome == "compacted" and kept[-1] == "keep the tide table"
    await work.session.close()


async def test_a_broken_or_hanging_hook_costs_itself_only(tmp_path: Path):
    hooks = (
        hook("tool_started", "exit 1", name="broken"),
        hook("tool_started", "no-such-program", name="missing"),
        Hook("slow", "tool_started", RunCommand("sleep 60", form="claude", timeout=0.3)),
    )
    model = ScriptedModel([calls(("shell", {"text": "a"})), says("well")])
    work = desk(tmp_path, model, *hooks)
    events = await work.say("go")
    assert of(events, ToolFinished)[0].output == "a"
    words = " ".join(told(events))
    assert all(name in words for name in ("broken", "missing", "slow")) and "0.3 s" in words
    await work.session.close()


async def test_a_steering_message_whose_command_a_hook_stops_is_left_out_and_the_turn_goes_on(tmp_path: Path):
    state = PromptFile("state", "command", "", "State:\n!`date`", "/state.md")
    model = ScriptedModel([calls(("grep", {"text": "x"})), says("well")])
    work = desk(tmp_path, model, hook("tool_started", "echo no dates >&2; exit 2", "Bash"), prompts=[state])
    events = await said(work, "go", Mailbox(("/state", ()), ("go on", ())))
    assert [event.text for event in of(events, Steered)] == ["go on"]
    assert any("no dates" in notice.text and "It was: /state" in notice.text for notice in of(events, Notice))
    assert of(events, TurnFinished)[-1].status == "done" and not any("State:" in text for text in sent(model))
    await work.session.close()


@pytest.mark.parametrize("when", [When(message_count=1), When(session_messages=1), When(session_calls=1)])
async def test_every_condition_can_hold_where_the_answer_counts(tmp_path: Path, when: When):
    model = ScriptedModel(x for _ in range(9) for x in [calls(("grep", {"text": "x"})), says("well")])
    work = desk(tmp_path, model, hook("compaction_started", "touch ran", form="ctxchat", when=when))
    for _ in range(3):
        await work.say(LONG * 2)
    await work.free_up()
    assert (tmp_path / "ran").exists()
    await work.session.close()


async def test_a_call_that_is_asked_about_counts_among_the_sessions(tmp_path: Path):
    model = ScriptedModel([calls(("grep", {"text": "x"})), says("well")])
    work = desk(tmp_path, model, hook("tool_started", "cat > moment", form="ctxchat"))
    await work.say("go")
    moment = json.loads((tmp_path / "moment").read_text())["moment"]
    assert (moment["tool_calls"], moment["session_calls"]) == (1, 1)
    await work.session.close()


def specific(**fields: object) -> str:
    return f"cat >> told; echo '{json.dumps({'hookSpecificOutput': fields})}'"


def told_to(tmp_path: Path) -> list[dict[str, object]]:
    """What a command that keeps its input was given."""
    path = tmp_path / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_a_call_that_failed_is_told_and_one_that_never_ran_is_not(tmp_path: Path):
    model = ScriptedModel([calls(("grep", {"text": "crash"}), ("grep", {}), ("nothing", {})), says("well")])
    work = desk(tmp_path, model, hook("tool_failed", specific(additionalContext="look at the log"), "Grep"))
    ended = of(await work.say("go"), ToolFinished)
    (ran,) = [each for each in ended if "look at the log" in each.output]
    assert {each.status for each in ended} == {"error"} and "a bug of the tool" in ran.output
    (given,) = told_to(tmp_path)
    assert given["hook_event_name"] == "PostToolUseFailure" and given["tool_name"] == "Grep"
    assert given["is_interrupt"] is False and "a bug of the tool" in str(given["error"]) and "duration_ms" in given
    await work.session.close()


@pytest.mark.parametrize("event", ["round_finished", "tool_started", "tool_finished"])
async def test_a_hook_can_end_a_turn_with_a_round(tmp_path: Path, event: HookEvent):
    command = "cat >> told; echo 'the build is red' >&2; exit 2"
    if event != "round_finished":
        command = """cat >> told; echo '{"continue": false, "stopReason": "the build is red"}'"""
    model = ScriptedModel([calls(("grep", {"text": "a"}), ("grep", {"text": "b"})), says("on")])
    work = desk(tmp_path, model, hook(event, command))
    events = await work.say("go")
    assert len(model.views) == 1 and of(events, TurnFinished)[-1].status == "error"
    assert "the build is red" in of(events, Failed)[-1].text
    if event == "round_finished":
        (given,) = told_to(tmp_path)
        assert [call["tool_response"] for call in given["tool_calls"]] == ["a", "b"]  # type: ignore[attr-defined,index]
    await work.say("and?")
    assert "the build is red" in sent(model)[-1] and await sound(work, model)
    await work.session.close()


NO = specific(decision={"behavior": "deny", "message": "ask the harbour"})
STOP = specific(decision={"behavior": "deny", "message": "ask the harbour", "interrupt": True})


@pytest.mark.parametrize(
    ("command", "form", "asked", "rounds"),
    [
        (NO, "claude", 0, 2),
        (STOP, "claude", 0, 1),
        (specific(decision={"behavior": "allow"}), "claude", 1, 2),  # which grants nothing
        ("echo 'ask the harbour' >&2; exit 2", "claude", 1, 2),
        ("echo 'ask the harbour' >&2; exit 2", "ctxchat", 0, 2),
    ],
)
async def test_a_question_can_be_answered_with_a_no_only(
    tmp_path: Path, command: str, form: str, asked: int, rounds: int
):
    model = ScriptedModel([calls(("shell", {"text": "rm"})), says("well")])
    tools = [Echo("shell", writes=True)]
    work = Hooked(model, hook("approval_needed", command, form=form), run=HookCommands(tmp_path), tools=tools)
    events = await work.say("go", answers=["once"])
    ended = of(events, ToolFinished)[0]
    assert len(of(events, ApprovalRequested)) == asked and len(model.views) == rounds
    assert (ended.status, "ask the harbour" in ended.output) == (("ok", False) if asked else ("denied", True))
    if form == "claude" and "told" in command:
        (given,) = told_to(tmp_path)
        assert given["hook_event_name"] == "PermissionRequest" and given["tool_input"] == {"text": "rm"}
        assert "tool_use_id" not in given
    await work.session.close()


async def test_what_is_called_by_name_can_be_stopped_or_told_more(tmp_path: Path):
    state = PromptFile("state", "command", "", "State: $ARGUMENTS", "/state.md")
    deploy = PromptFile("deploy", "command", "", "Deploy.", "/deploy.md")
    hooks = (
        hook("command_called", "cat >> told; echo 'the tide is high'", "state", name="tide"),
        hook("command_called", "echo 'not today' >&2; exit 2", "deploy", name="guard"),
    )
    model = ScriptedModel(repeat(says("well"), 2))
    work = desk(tmp_path, model, *hooks, prompts=[state, deploy])
    with pytest.raises(CtxchatError, match="not today"):
        await work.say("/deploy now")
    await work.say("/state of things")
    (given,) = told_to(tmp_path)
    assert (given["expansion_type"], given["command_name"]) == ("slash_command", "state")
    assert (given["command_args"], given["prompt"]) == ("of things", "/state of things")
    assert len(model.views) == 1 and "the tide is high" in sent(model)[0] and await sound(work, model)
    await work.session.close()


async def test_words_at_the_end_have_the_model_go_on_and_a_failed_call_is_told(tmp_path: Path):
    model = ScriptedModel([says("done"), says("tested"), fails(ModelError("too many", kind="rate_limit"))])
    hooks = (
        hook("turn_finished", "test -f went || { touch went; " + specific(additionalContext="run the tests") + "; }"),
        hook("error", "cat >> failed", "rate_limit|overloaded", name="failed"),
        hook("error", "cat >> other", "authentication_failed", name="other"),
    )
    work = desk(tmp_path, model, *hooks, options=Options(retries=0))
    await work.say("go")
    assert len(model.views) == 2 and "run the tests" in sent(model)[1]
    await work.say("again")
    given = json.loads((tmp_path / "failed").read_text())
    assert given["hook_event_name"] == "StopFailure" and given["error"] == "rate_limit" and given["error_details"]
    assert not (tmp_path / "other").exists()
    await work.session.close()


async def test_hooks_of_ours_see_the_new_events_too(tmp_path: Path):
    events: tuple[HookEvent, ...] = ("tool_failed", "round_finished", "approval_needed", "command_called")
    hooks = [Hook(f"at {event}", event, Notify(f"saw {event}")) for event in events]
    hooks += [Hook("only grep", "tool_failed", Notify("grep failed"), When(tool_name="grep"))]
    model = ScriptedModel([calls(("shell", {"text": "crash"})), says("well")])
    tools = [Echo("shell", writes=True)]
    state = PromptFile("state", "command", "", "State", "/state.md")
    work = Hooked(model, *hooks, run=HookCommands(tmp_path), tools=tools, prompts=[state])
    words = told(await work.say("/state", answers=["once"]))
    assert [f"saw {event}" in words for event in events] == [True] * 4 and "grep failed" not in words
    await work.session.close()


async def test_nobody_waits_for_what_runs_beside_and_what_it_says_comes_later(tmp_path: Path):
    answer = json.dumps({"decision": "block", "hookSpecificOutput": {"additionalContext": "the tests are green"}})
    slow = f"while ! test -f go; do sleep 0.02; done; echo '{answer}'"
    beside = Hook("beside", "tool_started", RunCommand(slow, form="claude", timeout=30, background=True))
    model = ScriptedModel([calls(("grep", {"text": "a"})), says("well"), says("on")])
    work = desk(tmp_path, model, beside, hook("session_finished", "sleep 0.2; touch ended", name="last"))
    events = await work.say("go")
    assert of(events, ToolFinished)[0].status == "ok" and of(events, TurnFinished)[-1].status == "done"
    (tmp_path / "go").touch()
    while not work.hooks._notes:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await work.say("and?")
    assert "the tests are green" in sent(model)[-1] and await sound(work, model)
    await work.session.close()
    assert (tmp_path / "ended").exists() and not work.hooks._background
