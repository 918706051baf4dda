"""A server that goes wrong in every way known: no fault ends a session, makes a later request invalid, or the gauge untrue."""

from __future__ import annotations

import asyncio

import pytest

from ctxchat.agent.options import Options
from ctxchat.core.events import Failed, TurnFinished
from ctxchat.core.view import problems
from ctxchat.models.process import Worker
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import adds_up, of
from tests.doubles.chaos import FAULTS, WELL, Chaos
from tests.doubles.http_model import ModelDouble
from tests.models.served import model_at

pytestmark = pytest.mark.asyncio(loop_scope="session")

NO_REPLY = ("nothing", "no words", "reset", "cut", "malformed", "garbled", "an error", "status", "too long")
"""What comes of these is an error or a half reply; all others are replies with something wrong about them."""

UNREADABLE = {"whole: nonsense", "whole: a page", "pieces: a list for a chunk", "lines: the end first"}


def sane(desk: Desk) -> None:
    """The gauge is near our own count, whatever has been said of usage, and all that must hold does."""
    figures, raw = desk.session.figures, desk.session.view.raw
    assert adds_up(figures) and 0.5 * raw < figures.used < 2 * raw + 500, (figures.used, raw)
    assert 0 <= figures.cost_usd < 1
    assert problems(desk.session.view) == [] and desk.folded() == desk.state


async def test_each_fault_once_and_a_good_turn_after_it(worker: Worker) -> None:
    """All in one session, so that what one leaves behind meets the next."""
    server, broken = Chaos(), dict[str, str]()
    async with ModelDouble(server) as double:
        desk = Desk(model_at(double, worker), tools=[Echo()], options=Options(retries=0, consent="off", prepare=False))
        for name, fault in FAULTS.items():
            server.next(fault)
            async with asyncio.timeout(60):
                events = await desk.say(f"Now {name}.")
            server.next()
            failed = of(events, Failed)
            if failed and (failed[0].kind == "internal" or not (name.startswith(NO_REPLY) or name in UNREADABLE)):
                broken[name] = f"{failed[0].kind}: {failed[0].text}"
            events = await desk.say("And on.")
            if of(events, TurnFinished)[0].text != WELL:
                broken[f"{name}, after it"] = str(of(events, Failed))
            sane(desk)
    assert broken == {}
    assert server.invalid == []
