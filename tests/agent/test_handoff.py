"""Handing work to a fresh session: what its first message holds, what the model adds, what is said where."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ctxchat.core.errors import CtxchatError, ModelError
from ctxchat.core.events import Usage
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from tests.agent.desk import Desk, Echo
from tests.agent.test_long_turns import Writer
from tests.doubles.scripted import ScriptedModel, calls, says


class Recorder:
    """Writes what it is told, and keeps what it was given."""

    model = "writer"

    def __init__(self, text: str, problem: ModelError | None = None) -> None:
        self.text, self.problem = text, problem
        self.tasks: list[SummaryTask] = []

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage]:
        self.tasks.append(task)
        yield self.text
        yield Usage(10, 5, cost_usd=0.25)
        if self.problem:
            raise self.problem


def working(**more: object) -> Desk:
    wanted = calls(("echo", {"text": "src/tide.py is read", "times": 1}))
    model = ScriptedModel([says("Noted."), wanted, says("The gauge drifts: see `read_tide()`."), *[says("ok")] * 9])
    return Desk(model, tools=[Echo()], **more)  # type: ignore[arg-type]


async def test_goal_rules_state_and_the_way_back_stand_in_the_draft() -> None:
    desk = working()
    await desk.say("Never touch the firmware. Find out why the gauge drifts.")
    await desk.say("Look at src/tide.py with three samples")
    text = await desk.session.handoff.draft("mend the drift")
    assert text.startswith("Go on with this work: mend the drift")
    assert "session s1" in text and "s1/m12" in text
    assert "Never touch the firmware. Find out why the gauge drifts." in text and "three samples" in text
    assert text.count("The gauge drifts: see `read_tide()`.") == 1 and "echo" in text
    assert (await desk.session.handoff.draft("")).startswith("Go on with this work: Look at src/tide.py")


async def test_a_summary_in_force_is_part_of_it_and_of_a_model_it_stands_around_the_record() -> None:
    desk = working(summariser=Writer("## Goal\nKnow the gauge."), options=Options(keep_recent=2))
    for text in ("one " * 400, "two " * 400, "three " * 400):
        await desk.say(text)
    await desk.free_up()
    assert "Know the gauge." in await desk.session.handoff.draft("")
    text = await desk.session.handoff.draft("", "## Goal\nWritten for it.")
    assert "Written for it." in text and "Know the gauge." not in text and "# How it stands" not in text


async def test_nothing_said_is_nothing_to_hand_off_and_an_interrupted_turn_is_told() -> None:
    desk = working()
    with pytest.raises(CtxchatError, match="nothing to hand off"):
        await desk.session.handoff.draft("")
    stream = desk.session.send("go")
    async for stamped in stream:
        if type(stamped.event).__name__ == "TextDelta":
            break
    await stream.aclose()
    assert "not finished" in await desk.session.handoff.draft("")


async def test_the_model_writes_it_on_request_and_its_cost_is_booked_even_where_it_fails() -> None:
    writer = Recorder("## Goal\nAll of it.")
    desk = working(summariser=writer)
    await desk.say("Find out why.")
    pieces = [piece async for piece in desk.session.handoff.by_model("mend it")]
    assert pieces == ["## Goal\nAll of it."] and "mend it" in writer.tasks[0].instructions
    assert writer.tasks[0].groups[0].first.text == "Find out why."
    writer.problem = ModelError("gone", kind="connection")
    with pytest.raises(ModelError):
        [piece async for piece in desk.session.handoff.by_model("")]
    await desk.say("and?")
    assert desk.state.cost_usd == pytest.approx(0.5)


async def test_the_session_says_where_its_work_went() -> None:
    desk = working()
    await desk.say("Find out why.")
    await desk.session.handoff.record_handoff("s2", "the drift")
    note = desk.state.ledger.groups[-1]
    assert (note.kind, note.source) == ("note", "handoff:s2")
    assert "session s2 (“the drift”)" in note.first.text and desk.folded() == desk.state
