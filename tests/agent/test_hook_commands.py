"""Commands of hooks: in the workspace, without keys, and with nothing of them left running."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxchat.bootstrap.hooks import HookCommands
from ctxchat.core.events import (
    TurnFinished,
)
from ctxchat.core.hooks import (
    Hook,
    HookEvent,
    RunCommand,
)
from tests.agent.desk import Echo
from tests.agent.hooked import Hooked, sent, sound, told
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says


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
    assert await sound(desk, model)


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
    assert await sound(desk, model)


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
    hook = command("echo x >> runs; (sleep 61 & echo $! > child; wait)", timeout=3)
    desk, _ = with_command(hook, tmp_path, turns=2)
    events = await desk.say("one")
    assert len(told(events)) == 1 and "did not end within 3 s" in told(events)[0]
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
    """True once it is there; a minute is for what never comes."""
    for _ in range(6000):
        if there():
            return True
        await asyncio.sleep(0.01)
    return False
