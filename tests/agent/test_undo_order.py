"""Pin, drop, shrink, restore, quote and compaction are each taken back exactly, in any order, through the session's own verbs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from random import Random
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ctxchat.core.budget import Window
from ctxchat.core.errors import LedgerError
from ctxchat.core.grouping import single
from ctxchat.core.messages import Message
from ctxchat.core.options import Options
from ctxchat.core.view import Item, problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import Writer
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.examples import examples

TURNS = 6
LONG = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * 12
VERBS = ("pin", "drop", "shrink", "restore", "quote", "compact")

steps = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 3 * TURNS)), min_size=1, max_size=9)


async def talked() -> Desk:
    """A session of six turns, every other one with a call and its result."""
    script: list[Any] = []
    for number in range(TURNS):
        script += [calls(("echo", {"text": f"{number} {LONG}"}))] if number % 2 else []
        script.append(says(f"answer {number}. {LONG}"))
    options = Options(keep_recent=2, strategy="summarize", prepare=False, auto_compact="off", min_messages=1)
    model = ScriptedModel(script, window=Window(64_000, "configured"))
    desk = Desk(model, tools=[Echo()], options=options, summariser=Writer(), mode="all")
    for number in range(TURNS):
        await desk.say(f"question {number}? {LONG}")
    return desk


def shown(desk: Desk) -> tuple[Item, ...]:
    """What a model would be sent."""
    assert problems(desk.session.view) == []
    return desk.session.view.items


async def done(desk: Desk, verb: str, place: int) -> str:
    """Do it to the group at a place; the id of the change, empty where it is refused."""
    session, groups = desk.session, desk.state.ledger.groups
    before = {c.id for c in desk.state.ledger.changes}
    group = groups[place % len(groups)]
    try:
        match verb:
            case "compact":
                preview = await session.preview()
                if preview.plan is not None:
                    async with aclosing(session.free_up(preview)) as events:
                        async for _ in events:
                            pass
            case "quote":
                await session.changes.quote(
                    single("user", Message(place + 1, "user", f"elsewhere {place}"), 3), "another"
                )
            case _:
                await getattr(session.changes, verb)(group.id)
    except LedgerError:
        return ""
    return next((c.id for c in desk.state.ledger.changes if c.id not in before), "")


async def there_and_back(wanted: list[tuple[str, int]], order: Any) -> None:
    desk = await talked()
    start, record = shown(desk), desk.state.ledger.groups
    made: list[str] = []
    for verb, place in wanted:
        before = shown(desk)
        if change := await done(desk, verb, place):
            made.append(change)
            await desk.session.changes.undo()  # the last one alone leads to the view right before it
            assert shown(desk) == before
            made.pop()
            if again := await done(desk, verb, place):
                made.append(again)
        else:
            assert shown(desk) == before
    for change in order(made):
        await desk.session.changes.undo(change)
    assert shown(desk) == start
    assert desk.state.ledger.changes == ()
    assert desk.state.ledger.groups[: len(record)] == record
    assert desk.folded().ledger == desk.state.ledger


@examples(12, 150)  # each is a session with all its changes, undone one by one
@example([("shrink", 3), ("drop", 3), ("compact", 0), ("pin", 9)], Random(0))
@example([("compact", 0), ("shrink", 9), ("restore", 3), ("drop", 9)], Random(1))
@given(steps, st.randoms(use_true_random=False))
def test_any_order_of_undo_leads_back_to_the_exact_view(wanted: list[tuple[str, int]], chance: Any) -> None:
    asyncio.run(there_and_back(wanted, lambda made: chance.sample(made, len(made))))


def test_every_verb_was_really_done() -> None:
    async def all_of_them() -> list[str]:
        desk = await talked()
        made = [await done(desk, verb, place) for place, verb in enumerate(VERBS)]
        assert len(shown(desk)) < 40
        return made

    assert all(asyncio.run(all_of_them()))


def test_what_was_shrunk_can_be_dropped_and_either_can_be_undone_first() -> None:
    async def both_ways() -> None:
        for first, second in ((0, 1), (1, 0)):
            desk = await talked()
            start = shown(desk)
            made = [await done(desk, verb, 3) for verb in ("shrink", "drop")]
            assert all(made)
            gone = desk.state.ledger.groups[3].id
            assert gone not in {item.group for item in shown(desk)}
            await desk.session.changes.undo(made[first])
            between = [item for item in shown(desk) if item.group == gone]
            assert bool(between) is (first == 1), "shortened where the drop was undone, gone where the shrinking was"
            await desk.session.changes.undo(made[second])
            assert shown(desk) == start

    asyncio.run(both_ways())
