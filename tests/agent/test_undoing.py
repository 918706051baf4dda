"""Undo that is looked at first, undo in part, redo: exact, in one journal transaction, refused where they cannot be exact."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.compaction.run import survived
from ctxchat.core.budget import Window
from ctxchat.core.errors import LedgerError
from ctxchat.core.events import Usage
from ctxchat.core.options import Options
from ctxchat.core.record import FactCount, PutBack
from ctxchat.core.summaries import BACK, earlier, id_ranges
from ctxchat.core.view import problems
from tests.agent.desk import Desk
from tests.agent.test_compaction import Writer
from tests.agent.test_undo_order import done, shown, steps, talked
from tests.doubles.scripted import ScriptedModel, says
from tests.examples import examples

LONG = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * 12


async def compacted(window: int, *, more: int = 0, strategy: str = "summarize") -> Desk:
    """Twelve turns, all but the last few put away in one compaction; then so many more turns."""
    options = Options(
        keep_recent=2, strategy=strategy, prepare=False, auto_compact="off", min_messages=1, output_reserved=500
    )
    model = ScriptedModel([says(f"answer {n}. {LONG}") for n in range(12 + more)], window=Window(window, "configured"))
    small = ScriptedModel([], name="small/model", window=Window(1_200, "configured"))
    desk = Desk(model, options=options, summariser=Writer(), others={"small/model": small})
    for number in range(12):
        await desk.say(f"question {number}? {LONG}")
    await desk.free_up()
    assert len(desk.state.ledger.compactions) == 1
    for _ in range(more):
        await desk.say(f"and then? {LONG}")
    return desk


async def test_an_undone_pass_is_kept_whole_in_the_state_and_in_the_journal():
    desk = await compacted(64_000)
    (change,) = desk.state.ledger.compactions
    await desk.session.changes.undo()
    assert desk.state.undone == (change,) and desk.state.ledger.compactions == ()
    assert desk.folded().undone == (change,)
    await desk.session.changes.redo()
    assert desk.state.undone == () and desk.folded().ledger.compactions == (change,)


async def test_a_look_tells_what_is_used_now_as_the_gauge_does():
    options = Options(keep_recent=2, strategy="truncate", prepare=False, auto_compact="off", min_messages=1)
    script = [*(says(f"answer {n}. {LONG}") for n in range(6)), says("short", usage=Usage(9_000, 10))]
    desk = Desk(ScriptedModel(script, window=Window(64_000, "configured")), options=options)
    for number in range(6):
        await desk.say(f"question {number}? {LONG}")
    await desk.free_up()
    await desk.say("and now?")
    context_usage = desk.session.context_usage
    assert context_usage.used == 9_010 and not context_usage.estimated, "a server that counts unlike us"
    assert (await desk.session.changes.preview_undo()).before == context_usage


async def test_a_look_is_what_the_undo_then_does_and_changes_nothing():
    desk = await compacted(64_000)
    before, entries = shown(desk), len(desk.journal.records)
    looked = await desk.session.changes.preview_undo()
    assert looked.fits and looked.part_groups == () and looked.messages > 10
    assert shown(desk) == before and len(desk.journal.records) == entries
    assert (await desk.session.changes.undo()).used == looked.after.used


async def test_what_an_earlier_pass_put_away_does_not_come_back_with_the_later_one():
    desk = await compacted(64_000, more=4)
    await desk.free_up()
    first, last = desk.state.ledger.compactions
    assert first.record is not None and last.record is not None and first.record.folded_messages > 10
    looked = await desk.session.changes.preview_undo()
    assert looked.change == last and looked.messages == last.record.folded_messages


async def test_what_an_undone_pass_left_to_rest_runs_again_with_its_redo():
    options = Options(keep_recent=2, strategy="truncate", prepare=False, min_messages=1)
    desk = Desk(ScriptedModel([*(says(LONG) for _ in range(6))], window=Window(64_000, "configured")), options=options)
    for _ in range(6):
        await desk.say(LONG)
    await desk.free_up()
    assert (await desk.session.changes.undo()).automatic.standing == "snoozed"
    assert (await desk.session.changes.redo()).automatic.standing == "auto"


async def test_the_part_that_fits_comes_back_and_the_rest_stays_put_away():
    desk = await compacted(8_000, more=4)
    (change,) = desk.state.ledger.compactions
    put_away = [g for e in change.edits for g in e.covers]
    estimated = desk.conversation.expected(desk.session.view, 1)
    looked = await desk.session.changes.preview_undo(change.id)
    assert looked.after.excess > 0 and looked.after_part is not None and not looked.fits
    assert looked.part_groups == tuple(put_away[-len(looked.part_groups) :]) != tuple(put_away), "the newest of them"
    assert desk.state.ledger.group(looked.part_groups[0]).kind == "user", "from a question on"
    context_usage = await desk.session.changes.undo(change.id, looked.part_groups)
    assert context_usage.used == looked.after_part.used < context_usage.trigger_tokens
    assert problems(desk.session.view) == []
    (left,) = desk.state.ledger.compactions
    assert left.id == change.id and left.edits[0].covers == tuple(put_away[: -len(looked.part_groups)])
    assert left.record is not None and change.record is not None
    assert left.record.folded_messages == change.record.folded_messages - looked.part_messages
    tokens = looked.after_part.used - estimated.used
    assert left.record.back == PutBack(looked.part_messages, tokens), "what came back is told"
    assert left.record.freed == change.record.freed - tokens and left.record.after == change.record.after
    assert desk.folded().ledger == desk.state.ledger and desk.state.undone == ()
    # More would have been too much: the part is as large as it can be, to within a turn and the note that came with it.
    turn_more = sum(i.tokens for i in desk.session.view.items if i.group in looked.part_groups[:4])
    assert context_usage.used + turn_more * context_usage.used / desk.session.view.raw >= context_usage.trigger_tokens
    await desk.session.changes.undo(change.id)
    assert {i.group for i in desk.session.view.items if i.group}.issuperset(put_away)


@pytest.mark.parametrize("strategy", ["summarize", "truncate"])
async def test_what_comes_back_in_part_is_no_longer_in_the_summary(strategy: str):
    desk = await compacted(64_000, more=2, strategy=strategy)
    (change,) = desk.state.ledger.compactions
    put_away = change.edits[-1].covers
    for back in (put_away[-4:], put_away[2:4]):
        await desk.session.changes.undo(change.id, back)
        (left,) = desk.state.ledger.compactions
        summary = next(item.message.text for item in desk.session.view.items if item.section == "summary")
        covers = left.edits[-1].covers
        seqs = [m.seq for g in covers for m in desk.state.ledger.group(g).messages]
        assert f"Covers messages {id_ranges(seqs)} (" in summary
        shown = "\n".join(item.message.text for item in desk.session.view.items)
        assert all(shown.count(f"question {n}?") == 1 for n in range(12)), "each once, in the summary or as it was"
        again = [m.seq for g in put_away if g not in covers for m in desk.state.ledger.group(g).messages]
        assert (BACK.format(id_ranges(again)) in summary) == (strategy == "summarize"), (
            "what a model wrote tells of more"
        )
    assert desk.folded().ledger == desk.state.ledger
    evidence = left.edits[-1].digest.evidence if left.edits[-1].digest else None
    assert evidence and not {fact.seq for fact in evidence.facts}.intersection(again)


async def test_an_earlier_summary_comes_back_whole_or_not_at_all():
    desk = await compacted(64_000, more=6)
    (first,) = desk.state.ledger.compactions
    await desk.free_up()
    second = desk.state.ledger.compactions[-1]
    covers = second.edits[0].covers
    inner = first.edits[0].covers
    with pytest.raises(LedgerError, match="archived none of these"):
        await desk.session.changes.undo(second.id, inner[-2:])
    await desk.session.changes.undo(second.id, covers[len(inner) - 2 :])
    left = desk.state.ledger.compactions[-1]
    assert left.edits[0].covers == inner and len(earlier(desk.state.ledger)) == 1
    shown = "\n".join(item.message.text for item in desk.session.view.items)
    assert all(shown.count(f"question {n}?") == 1 for n in range(12))


async def test_nothing_is_offered_where_no_part_fits():
    desk = await compacted(64_000)
    await desk.session.setup.switch_model("small/model")
    looked = await desk.session.changes.preview_undo()
    assert looked.before.used >= looked.before.trigger_tokens, "it is too full already"
    assert looked.after.excess > 0 and looked.after_part is None and looked.part_groups == ()


async def test_a_part_under_a_later_pass_cannot_come_back_alone():
    desk = await compacted(64_000, more=6)
    (first,) = desk.state.ledger.compactions
    put_away = first.edits[0].covers
    await desk.free_up()
    assert len(desk.state.ledger.compactions) == 2
    looked = await desk.session.changes.preview_undo(first.id)
    assert looked.messages == 0, "the later one stands for them"
    before = shown(desk)
    with pytest.raises(LedgerError, match="on top of it"):
        await desk.session.changes.undo(first.id, put_away[-2:])
    assert shown(desk) == before


async def test_a_redo_is_refused_where_something_was_made_of_the_same_messages_since():
    desk = await compacted(64_000)
    (change,) = desk.state.ledger.compactions
    with pytest.raises(LedgerError, match=r"nothing to redo\.$"):
        await desk.session.changes.redo()
    await desk.session.changes.undo()
    await desk.session.changes.drop(change.edits[0].covers[1])
    with pytest.raises(LedgerError, match="made of the same messages"):
        await desk.session.changes.redo(change.id)
    await desk.session.changes.undo()
    await desk.session.changes.redo(change.id)
    assert desk.state.ledger.changes == (change,)


async def test_a_redo_after_an_undo_of_a_part_says_what_to_do():
    desk = await compacted(64_000)
    (change,) = desk.state.ledger.compactions
    await desk.session.changes.undo(change.id, change.edits[0].covers[-2:])
    with pytest.raises(LedgerError, match=r"the last undo was of a part only\. F8"):
        await desk.session.changes.redo()


async def there_and_back_and_there(wanted: list[tuple[str, int]], chance: Any) -> None:
    """Everything undone, then redone in the opposite order where that is allowed: each step is the exact way back."""
    desk = await talked()
    made = [change for verb, place in wanted if (change := await done(desk, verb, place))]
    seen = []
    for change in chance.sample(made, len(made)):
        seen.append((change, shown(desk), desk.state.ledger.changes))
        await desk.session.changes.undo(change)
    for change, before, changes in reversed(seen):
        try:
            await desk.session.changes.redo(change)
        except LedgerError:
            return  # a change made earlier may stand where this one was on top of it
        assert {c.id for c in desk.state.ledger.changes} == {c.id for c in changes}
        assert shown(desk) == before
    assert desk.state.undone == () and desk.folded().ledger == desk.state.ledger


@examples(12, 100)  # each is a session with all its changes, there and back
@given(steps, st.randoms(use_true_random=False))
def test_redoing_is_the_exact_way_back_from_undoing(wanted: list[tuple[str, int]], chance: Random) -> None:
    asyncio.run(there_and_back_and_there(wanted, chance))


@pytest.mark.parametrize(
    ("found", "kept", "words"),
    [
        (0, 0, ""),
        (1, 1, ", kept 1 fact"),
        (1, 0, ", kept 0 of 1 fact"),
        (3, 3, ", kept all 3 facts"),
        (3, 1, ", kept 1 of 3 facts"),
    ],
)
def test_facts_are_counted_in_plain_english(found: int, kept: int, words: str) -> None:
    assert survived(FactCount(found, kept)) == words
