"""A server that goes wrong in every way known: no fault ends a session, makes a later request invalid, or the gauge untrue."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from ctxchat.core.events import Failed, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.view import problems
from ctxchat.models.direct import Connections
from ctxchat.storage import loading
from ctxchat.storage.database import Database
from ctxchat.storage.journal import begin_journal
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import adds_up, of
from tests.doubles.chaos import FAULTS, WELL, Chaos
from tests.doubles.http_model import ModelDouble
from tests.models.served import Way, model_at

pytestmark = pytest.mark.asyncio(loop_scope="session")

NO_REPLY = ("nothing", "no words", "reset", "cut", "malformed", "garbled", "an error", "status", "too long")
"""What comes of these is an error or a half reply; all others are replies with something wrong about them."""

UNREADABLE = {"whole: nonsense", "whole: a page", "pieces: a list for a chunk", "lines: the end first"}


def sane(desk: Desk) -> None:
    """All that must hold does."""
    near(desk)
    assert problems(desk.session.view) == [] and desk.folded() == desk.state


def near(desk: Desk) -> None:
    """The gauge is near our own count, whatever has been said of usage."""
    context_usage, raw = desk.session.context_usage, desk.session.view.raw
    assert adds_up(context_usage) and 0.5 * raw < context_usage.used < 2 * raw + 500, (context_usage.used, raw)
    assert 0 <= context_usage.cost_usd < 1


async def test_each_fault_once_and_a_good_turn_after_it(connections: Connections) -> None:
    """All in one session, so that what one leaves behind meets the next. That litellm makes the same of them is shown by
    `test_lanes`."""
    server, broken = Chaos(), dict[str, str]()
    async with ModelDouble(server) as double:
        desk = Desk(
            model_at(double, connections), tools=[Echo()], options=Options(retries=0, auto_compact="off", prepare=False)
        )
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


@pytest.mark.long
async def test_a_thousand_turns_of_it_with_a_fifth_cancelled(way: Way, tmp_path: Path) -> None:
    """One session in a real store; every other turn meets a fault, every fifth is cancelled somewhere. `pytest -s` tells the
    figures."""
    chance, server, ends = random.Random(11), Chaos(), Counter[str]()
    with Database(tmp_path / "data") as database:
        journal = begin_journal(database, "m", "/").journal
        async with ModelDouble(server) as double:
            options = Options(retries=0, auto_compact="off", prepare=False)
            desk = Desk(model_at(double, way), tools=[Echo()], options=options, journal=journal)  # type: ignore[arg-type]
            await desk.say("begin")
            tasks, files = len(asyncio.all_tasks()), open_files()
            for turn in range(1000):
                server.next(*[chance.choice([*FAULTS.values()])] * chance.randint(0, 1))
                cancelled = chance.random() < 0.2
                ends[await ended(desk, f"turn {turn}", chance.random() * 0.1 if cancelled else 60)] += 1
                assert problems(desk.session.view) == [] and adds_up(desk.session.context_usage)
            server.next()
            assert of(await desk.say("the last"), TurnFinished)[0].text == WELL
            near(desk)
            if isinstance(way, Connections):
                await way.close()  # what is kept for the next request, the server's end of each with it
            async with asyncio.timeout(60):
                while len(asyncio.all_tasks()) > tasks + 1 or open_files() > files + 4:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        assert server.invalid == [] and not ends["internal"]
        stored = loading.load_state(database, journal.session)
        assert stored.problems == () and stored.state.ledger.messages() == desk.state.ledger.messages()
        passes = len(stored.state.compactions)
        print(
            f"\n{server.requests} requests, none invalid; {dict(ends)}; {len(stored.state.ledger.groups)} groups, {passes} passes"
        )


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def ended(desk: Desk, text: str, seconds: float) -> str:
    """How a turn ended that is cancelled after so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            events = await desk.say(text)
    except TimeoutError:
        assert seconds < 60, "it hangs"
        return "cancelled"
    failed = of(events, Failed)
    return failed[0].kind if failed else of(events, TurnFinished)[0].status
