"""Turns that broke off and go on: within a half reply, after a round, after a message nobody answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.turn.replies import MIN_REPEATED_CHARS, Continuation
from ctxchat.core.errors import CtxchatError, ModelError
from ctxchat.core.events import Event, Failed, TextDelta, TurnFinished, TurnStarted
from ctxchat.core.notes import CONTINUE_REQUEST
from ctxchat.core.options import Options
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, fails, says

LOST = ModelError("connection lost", kind="connection")
HALF = "The tide gauge at Pier 7 reports every ninety seconds "


async def resumed(desk: Desk) -> list[Event]:
    return [stamped.event async for stamped in desk.session.resume()]


def heard(events: list[Event]) -> str:
    return "".join(e.text for e in of(events, TextDelta))


async def test_a_half_reply_goes_on_without_a_message_of_the_person():
    model = ScriptedModel([fails(LOST, after=HALF), says("to the logger Cormorant.")])
    desk = Desk(model)
    await desk.say("hi")
    events = await resumed(desk)
    assert of(events, TurnStarted)[0].resumed and of(events, TurnFinished)[0].status == "done"
    assert [g.kind for g in desk.state.ledger.groups] == ["user", "reply", "note", "reply"]
    assert HALF + heard(events) == HALF + "to the logger Cormorant."
    half, asked = (item.message for item in model.requests[-1].view.items[-2:])
    assert half.interrupted and half.text.startswith(HALF.rstrip()), "the model is shown where it stopped"
    assert asked.text == CONTINUE_REQUEST and asked.synthetic
    assert desk.folded() == desk.state and desk.state.ledger.turn == 1


@pytest.mark.parametrize("again", [HALF, HALF.rstrip(), HALF[-MIN_REPEATED_CHARS:], HALF[4:]])
async def test_what_the_model_says_again_is_left_out(again: str):
    desk = Desk(ScriptedModel([fails(LOST, after=HALF), says(again + "to the logger Cormorant.")]))
    await desk.say("hi")
    events = await resumed(desk)
    assert heard(events) == "to the logger Cormorant."
    assert desk.state.ledger.groups[-1].first.text == "to the logger Cormorant."


async def test_it_may_break_off_again_and_again():
    model = ScriptedModel([fails(LOST, after="one "), fails(LOST, after="two "), says("three")])
    desk = Desk(model)
    await desk.say("hi")
    first = await resumed(desk)
    assert of(first, Failed)
    await resumed(desk)
    said = [g.first.text for g in desk.state.ledger.groups[1:] if g.kind == "reply"]
    assert said == ["one ", "two ", "three"]
    assert all(not problems(r.view) for r in model.requests)


async def test_after_its_last_round_and_after_a_message_without_reply():
    model = ScriptedModel(
        [calls(("echo", {"text": "x"})), says("done"), fails(ModelError("no", kind="auth")), says("yes")]
    )
    desk = Desk(model, tools=[Echo()], options=Options(max_rounds=1))
    assert of(await desk.say("go"), TurnFinished)[0].status == "max_rounds"
    assert of(await resumed(desk), TurnFinished)[0].text == "done"
    assert of(await desk.say("more"), Failed)
    assert of(await resumed(desk), TurnFinished)[0].text == "yes"
    assert [g.kind for g in desk.state.ledger.groups] == ["user", "round", "reply", "user", "reply"]


async def test_a_whole_reply_has_nothing_to_continue_and_nothing_happens():
    desk = Desk(ScriptedModel([says("whole"), says("never")]))
    for _ in range(2):
        with pytest.raises(CtxchatError, match="nothing to continue"):
            await resumed(desk)
        if not desk.state.ledger.groups:
            await desk.say("hi")
    assert len(desk.state.ledger.groups) == 2 and not desk.session.busy


# ── the continuation ──


def through(before: str, pieces: list[str]) -> str:
    continuation = Continuation(before)
    return "".join(continuation.new_text(piece) for piece in pieces) + continuation.release_held()


@given(st.text("ab \n", max_size=80), st.lists(st.text("ab \n", max_size=12), max_size=20))
def test_nothing_is_left_out_but_what_ends_the_text_before(before: str, pieces: list[str]):
    after = "".join(pieces)
    rest = through(before, pieces)
    dropped = len(after) - len(rest)
    gone = after[:dropped]
    assert after.endswith(rest)
    ends = (before, before.rstrip())
    assert any(end.endswith(gone[:n]) and not gone[n:].strip() for n in range(dropped + 1) for end in ends)


@given(st.text(min_size=MIN_REPEATED_CHARS, max_size=200), st.text(max_size=50), st.integers(1, 9))
def test_a_beginning_that_comes_back_whole_is_said_once(before: str, new: str, size: int):
    again = before + new
    assert through(before, [again[i : i + size] for i in range(0, len(again), size)]).strip() == new.strip()


def test_a_word_or_two_may_follow_itself():
    assert through("it went on and on and on", [" and", " on"]) == " and on"
