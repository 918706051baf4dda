"""A summary asked for behind the conversation itself: where that costs less, shows as much, and the model does as asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.agent.compaction.within import cheaper_within
from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.cache_state import HeldPrefix, Hold
from ctxchat.core.context_usage import TokenPrice
from ctxchat.core.events import Usage
from ctxchat.core.journal import PrefixRead, SessionState, fold
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest
from ctxchat.core.prefix_guard import MarkedPrefix, SentPrefix
from ctxchat.core.prices import ModelPrices, Rates
from ctxchat.core.record import CompactionRecord
from ctxchat.core.times import epoch, iso
from tests.agent.desk import Desk
from tests.agent.test_cache_gauge import WallClock
from tests.agent.test_compaction import LONG
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, calls, says

PRICES = ModelPrices(Rates(4, 20, 0.2, 5, 8), cache_life=300)
RECORD = "## Goal\nKnow the gauge at pier seven. " + "It reports every ninety seconds to the logger. " * 6
ASKED = "Write the record now."
START = epoch("2026-11-27T09:00:00.000Z")

tokens = st.integers(0, 1_000_000)


@given(tokens, tokens, tokens, st.floats(0.01, 20), st.floats(0, 1), st.booleans())
def test_it_is_asked_there_only_where_that_costs_less(
    held: int, more: int, own: int, written: float, share: float, prefilled: bool
) -> None:
    hold, price = Hold(held, 0.0), TokenPrice(written, written * share, written)
    cheaper = cheaper_within(hold, held + more, own, price, prefilled=prefilled)
    assert cheaper == (held * price.cached + more * written < own * written)
    assert cheaper_within(hold, held + more, own, TokenPrice(), prefilled=True) == (more < own)
    assert not cheaper_within(hold, held + more, own, TokenPrice(), prefilled=False), "nobody knows what it would cost"


def asked(request: ModelRequest) -> str:
    return request.view.items[-1].message.text


def desk_of(*summaries: Reply, written: int = 1) -> Desk:
    """A session whose requests a server keeps for five minutes."""
    left = list(summaries)

    def reply(request: ModelRequest) -> Reply:
        if ASKED in asked(request):
            return left.pop(0)
        return says(LONG, usage=Usage(request.view.raw, 400, written=request.view.raw * written))

    model = ScriptedModel([reply] * 99, window=Window(60_000, "configured"), prices=PRICES, rules=CacheRules(300))
    options = Options(keep_recent=2, strategy="summarize", prepare=False, min_messages=1, auto_compact="off")
    clock = WallClock()
    return Desk(model, options=options, summariser=ModelSummariser(model, clock, own=True), clock=clock)


async def compacted(desk: Desk, minutes: int = 0) -> tuple[CompactionRecord, list[ModelRequest]]:
    for number in range(10):
        await desk.say(f"question {number} {LONG}")
    clock, model = desk.clock, desk.conversation.model
    assert isinstance(clock, WallClock) and isinstance(model, ScriptedModel)
    clock.wall += 60 * minutes
    sent = len(model.requests)
    [record] = of(await desk.free_up(), CompactionRecord)
    return record, model.requests[sent:]


async def test_it_is_the_last_request_and_one_message_more() -> None:
    desk = desk_of(says(RECORD))
    before = list(desk.session.view.items)
    record, requests = await compacted(desk)
    assert record.outcome == "compacted" and record.summary == RECORD.strip()
    [request] = requests
    model = desk.conversation.model
    assert isinstance(model, ScriptedModel)
    last = model.requests[-2]
    shown = [item.message for item in request.view.items]
    assert shown[: len(last.view.items)] == [item.message for item in last.view.items] and not before
    assert (request.view.tools, request.session, request.effort) == (last.view.tools, last.session, last.effort)


@pytest.mark.parametrize(("written", "minutes"), [(1, 6), (0, 0)])
async def test_one_that_nobody_holds_is_not_sent_again(written: int, minutes: int) -> None:
    record, [request] = await compacted(desk_of(says(RECORD), written=written), minutes)
    assert record.outcome == "compacted" and len(request.view.items) == 2


async def test_a_model_that_goes_on_with_the_work_is_asked_as_any_other() -> None:
    record, requests = await compacted(desk_of(calls(("shell", {"command": "make"})), says(RECORD)))
    assert record.outcome == "compacted" and record.summary == RECORD.strip()
    assert [len(request.view.items) == 2 for request in requests] == [False, True]


async def test_what_was_made_shorter_is_told_as_it_was() -> None:
    desk = desk_of(says(RECORD))
    for number in range(10):
        await desk.say(f"question {number} {LONG}")
    group = next(g for g in desk.state.ledger.groups if g.kind == "user")
    await desk.session.changes.shrink(group.id)
    [record] = of(await desk.free_up(), CompactionRecord)
    model = desk.conversation.model
    assert isinstance(model, ScriptedModel) and record.outcome == "compacted"
    assert len(model.requests[-1].view.items) == 2


async def test_only_a_call_behind_the_conversation_tells_what_is_held_of_it() -> None:
    """A model that went on with the work is asked again with a text, of which its server may have something cached as well."""
    going_on = calls(("shell", {"command": "make"}), usage=Usage(9_000, 20, cached=7_000, written=2_000))
    desk = desk_of(going_on, says(RECORD, usage=Usage(3_000, 300, cached=2_900)))
    await compacted(desk)
    assert [r.cached for r in desk.journal.records if isinstance(r, PrefixRead)] == [7_000]


@pytest.mark.parametrize(
    ("cached", "marked", "held", "renewed"),
    [(9_000, False, 2, True), (2_000, False, 1, False), (0, False, 0, False), (2_000, True, 2, False)],
)
def test_what_such_a_call_read_is_held_anew_and_what_it_did_not_is_gone(
    cached: int, marked: bool, held: int, renewed: bool
) -> None:
    """Where beginnings are marked, what was not read was written again: it lasts as long at least as was known."""
    head, end = HeldPrefix(2, "head", 2_000, START + 100, 300), HeldPrefix(9, "end", 9_000, START + 100, 300)
    marks = (MarkedPrefix(2, "head", 0.2),) if marked else ()
    sent = SentPrefix("m", 9, "end", {}, started=iso(START - 200), life=300, marked=marks)
    state = SessionState(sent={"m": sent}, held={"m": (head, end)})
    after = fold([PrefixRead("m", iso(START), cached)], state).held["m"]
    assert len(after) == held
    assert any(each.digest == "end" and each.until == START + 300 for each in after) == renewed
