"""Changes by hand that wait for the next compaction: nothing sent changes until then, and then they are its first step."""

from __future__ import annotations

from itertools import takewhile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.session_config import Configure, SessionConfig
from ctxchat.core.budget import Window
from ctxchat.core.changes import deferred_edits, drop_change, rewind_change
from ctxchat.core.errors import LedgerError, UsageError
from ctxchat.core.events import Notice, Usage
from ctxchat.core.journal import Changed, Deferred, Sealed, SessionState, fold
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from ctxchat.core.strategies.base import DEFERRED
from ctxchat.core.view import problems
from ctxchat.storage.sessions import consistent
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import Writer
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.tui.harbour import state

LONG = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * 12


async def talked(turns: int = 8, window: int = 64_000, configure: Configure | None = None, **options: object) -> Desk:
    """So many turns of two long messages each."""
    usual = {"keep_recent": 2, "prepare": False, "auto_compact": "off", "min_messages": 1, "output_reserved": 500}
    model = ScriptedModel([says(f"answer {n}. {LONG}") for n in range(turns + 6)], window=Window(window, "configured"))
    desk = Desk(model, options=Options(**(usual | options)), summariser=Writer(), configure=configure)  # type: ignore[arg-type]
    for number in range(turns):
        await desk.say(f"question {number}? {LONG}")
    return desk


def group_of(desk: Desk, words: str) -> str:
    return next(g.id for g in desk.state.ledger.groups if g.first.text.startswith(words))


async def test_nothing_that_is_sent_changes_until_the_next_compaction_which_does_it_first():
    desk = await talked()
    before = desk.session.view
    dropped, shrunk = group_of(desk, "question 2"), group_of(desk, "question 7")
    await desk.session.changes.defer(dropped, "drop")
    await desk.session.changes.defer(shrunk, "shrink")
    assert desk.session.view.items == before.items and desk.state.ledger.changes == ()
    assert desk.folded() == desk.state and desk.state.deferred == {dropped: "drop", shrunk: "shrink"}

    preview = await desk.session.preview()
    assert preview.plan and preview.plan.steps[0].name == DEFERRED
    assert preview.steps[0].tokens_freed > 300
    await desk.free_up()
    (change,) = desk.state.ledger.compactions
    texts = [item.message.text for item in desk.session.view.items]
    assert not any("question 2" in text for text in texts)
    assert next(text for text in texts if text.startswith("question 7")).count("\n") == 0
    assert desk.state.deferred == {} and desk.folded() == desk.state and not problems(desk.session.view)

    await desk.session.changes.undo(change.id)
    assert desk.session.view.items == before.items and desk.state.deferred == {}


async def test_another_agent_that_was_put_off_comes_with_the_compaction_in_the_middle_of_a_turn():
    rounds = [calls(("echo", {"text": f"{n} {LONG * 9}"})) for n in range(9)]
    model = ScriptedModel([*rounds, says("Done."), says("Well.")], window=Window(16_000, "configured"))
    desk = Desk(
        model,
        tools=[Echo()],
        options=Options(keep_recent=2, prepare=False, min_messages=1, output_reserved=500),
        summariser=Writer(),
        configure=lambda agent, name: msgspec.structs.replace(
            desk.config, agent=agent or "", system="You review." if agent else desk.config.system
        ),
    )
    await desk.session.setup.defer_setup(agent="reviewer", effort="")
    told = await desk.say("go on")
    heads = [request.view.items[0].message.text for request in model.requests]
    place = heads.index("You review.")
    before = takewhile(lambda e: not isinstance(e, CompactionRecord), told)
    first = sum(isinstance(event, Usage) for event in before)
    assert set(heads[:place]) == {"You are a test."} and set(heads[place:]) == {"You review."} and place == first
    (notice,) = [e.text for e in told if isinstance(e, Notice) and "In force" in e.text]
    assert notice == "In force with this compaction: agent reviewer, effort as the settings say."
    assert desk.state.agent == "reviewer" and desk.folded() == desk.state
    await desk.say("well?")
    assert model.requests[-1].view.items[0] == model.requests[place].view.items[0], "one break"


async def test_another_model_that_was_put_off_answers_from_the_compaction_on():
    rounds = [calls(("echo", {"text": f"{n} {LONG * 9}"})) for n in range(9)]
    window = Window(16_000, "configured")
    old, new = ScriptedModel(rounds, window=window), ScriptedModel([says("Done.")], name="a/new", window=window)
    desk = Desk(
        old,
        tools=[Echo()],
        options=Options(keep_recent=2, prepare=False, min_messages=1, output_reserved=500),
        summariser=Writer(),
        others={"a/new": new},
    )
    await desk.session.setup.defer_setup(model="a/new")
    told = await desk.say("go on")
    assert any(e.text == "In force with this compaction: model a/new." for e in told if isinstance(e, Notice))
    assert old.requests and new.requests and desk.state.model == "a/new" and desk.folded() == desk.state
    assert not desk.session.setup.deferred


async def test_an_agent_that_is_gone_when_its_compaction_comes_is_said():
    gone = UsageError("There is no agent reviewer.")
    config = Desk(ScriptedModel([])).config
    found = iter([config, gone])

    def configure(agent: str | None, name: str) -> SessionConfig:
        one = next(found, config)
        if isinstance(one, UsageError):
            raise one
        return one

    desk = await talked(configure=configure)
    await desk.session.setup.defer_setup(agent="reviewer")
    told = await desk.free_up()
    assert gone.text in [e.text for e in told if isinstance(e, Notice)]
    assert not desk.session.setup.deferred and desk.state.agent is None


async def test_it_is_kept_after_all_where_the_person_says_so_or_unticks_the_step():
    desk = await talked()
    waiting, kept = group_of(desk, "question 2"), group_of(desk, "question 6")
    await desk.session.changes.defer(waiting, "drop")
    await desk.session.changes.defer(kept, "drop")
    await desk.session.changes.undefer(kept)
    assert desk.state.deferred == {waiting: "drop"}

    preview = await desk.session.preview()
    others = await desk.session.planner.with_steps(preview, [s.name for s in preview.steps if s.name != DEFERRED])
    assert DEFERRED not in [s.name for s in others.steps]
    assert DEFERRED in [s.name for s in others.other_steps], "it can be ticked again"
    again = await desk.session.planner.with_steps(others, [DEFERRED, *(s.name for s in others.steps)])
    assert [s.name for s in again.steps] == [s.name for s in preview.steps]
    only = await desk.session.planner.with_steps(preview, [DEFERRED])
    assert [s.name for s in only.steps] == [DEFERRED]
    await desk.free_up([DEFERRED])
    (change,) = desk.state.ledger.compactions
    assert change.edits == deferred_edits(desk.state.ledger.undo(change.id), {waiting: "drop"})
    assert desk.state.deferred == {}


async def test_it_is_done_by_hand_however_little_that_frees():
    desk = await talked()
    await desk.say("hm")
    await desk.session.changes.defer(group_of(desk, "hm"), "drop")
    assert DEFERRED not in [step.name for step in (await desk.session.preview()).steps], "not what is being answered"
    await desk.say("go on")
    await desk.free_up([DEFERRED])
    (change,) = desk.state.ledger.compactions
    assert [edit.kind for edit in change.edits] == ["drop"] and desk.state.deferred == {}


async def test_where_that_is_room_enough_a_compaction_that_is_due_does_no_more():
    desk = await talked(10, 9_000, auto_compact="auto", compression_trigger=0.9, target=0.75)
    assert desk.state.ledger.compactions == ()
    for words in ("question 0", "answer 0", "question 1", "answer 1"):
        await desk.session.changes.defer(group_of(desk, words), "drop")
    for number in range(4):
        await desk.say(f"and then {number}? {LONG}")
    first = desk.state.ledger.compactions[0]
    assert {e.kind for e in first.edits} == {"drop"} and first.record and first.record.summary == ""


async def test_a_prepared_summary_of_what_shall_go_is_not_used():
    desk = await talked(10, 9_000, prepare=True, auto_compact="auto", compression_trigger=0.9)
    await desk.compactor._prefetch.wait()
    prepared = desk.state.prepared
    assert prepared is not None and desk.compactor.ghost
    await desk.session.changes.defer(prepared.covers[0], "drop")
    assert not desk.compactor.ghost
    await desk.session.changes.undefer(prepared.covers[0])
    assert desk.compactor.ghost


async def test_what_cannot_be_done_now_cannot_be_put_off():
    desk = await talked(2)
    with pytest.raises(LedgerError):
        await desk.session.changes.defer("g999", "drop")
    await desk.session.changes.drop(group_of(desk, "question 0"))
    with pytest.raises(LedgerError):
        await desk.session.changes.defer(group_of(desk, "question 0"), "shrink")
    await desk.session.changes.pin(group_of(desk, "answer 0"))
    with pytest.raises(LedgerError):
        await desk.session.changes.defer(group_of(desk, "answer 0"), "drop")
    assert desk.state.deferred == {}


async def test_what_was_put_off_stands_in_the_way_of_no_compaction_whatever_is_done_with_it():
    desk = await talked()
    waiting = [group_of(desk, words) for words in ("question 2", "question 3", "answer 6", "question 7")]
    for name in waiting:
        await desk.session.changes.defer(name, "drop")
    await desk.session.changes.pin(waiting[0])
    await desk.session.changes.shrink(waiting[1])
    changes = desk.session.changes
    await desk.conversation.write(Changed(rewind_change(desk.state.ledger, group_of(desk, "question 6"), "2026")))
    await changes.undo((await changes.preview_undo()).change.id)
    await desk.session.measure()
    assert desk.state.deferred == {}
    await desk.free_up()
    assert desk.state.ledger.compactions and not problems(desk.session.view)


@given(st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["drop", "shrink", "", "now"])), max_size=20))
def test_a_group_waits_until_it_was_changed_and_a_branch_knows_only_its_own(acts: list[tuple[int, str]]):
    groups = state(12).ledger.groups
    records: list[Sealed | Deferred | Changed] = [Sealed(groups)]
    found = SessionState()
    waiting: dict[str, str] = {}
    for place, act in acts:
        name = groups[place % len(groups)].id
        found = fold(records)
        if act == "now":
            try:
                records.append(Changed(drop_change(found.ledger, name, f"2026-11-28T10:00:{len(records):02}Z")))
            except LedgerError:
                continue
        else:
            records.append(Deferred(name, act))  # type: ignore[arg-type]
        waiting.pop(name, None)
        if act in ("drop", "shrink"):
            waiting[name] = act
    found = fold(records)
    assert found.deferred == waiting
    half = groups[: len(groups) // 2]
    branch = fold(consistent([Sealed(half), *records[1:]]))
    assert branch.skipped == () and set(branch.deferred) <= {g.id for g in half}
