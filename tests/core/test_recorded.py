"""Recorded work as it comes in by an import: every strategy keeps its promises over it, and the ledger keeps its facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.evidence import Way, summarised, truncated
from benchmarks.pending import KEPT, STRATEGIES, cuts, look
from benchmarks.recorded import joined, run
from benchmarks.recordings import recordings
from ctxchat.core.applying import apply_plan
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import problems
from tests.core.histories import budget_of, see

METER = TokenCounter()
NAMES = sorted(builtin_strategies(PlanOptions()))


@cache
def session() -> tuple[Group, ...]:
    return joined(recordings())


def test_there_is_something_recorded() -> None:
    kinds = {g.kind for g in session()}
    assert len(session()) > 100 and {"user", "reply", "round"} <= kinds


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None)  # for each recording, and those are long
@given(
    keep=st.integers(0, 40),
    pins=st.sets(st.integers(0, 99), max_size=3),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    share=st.floats(0.05, 0.6),
)
def test_every_strategy_over_recorded_work(
    name: str, keep: int, pins: set[int], lengths: list[int], share: float
) -> None:
    options = PlanOptions(counter=METER, keep_recent=keep, keep_turns=1 + keep % 4)
    ledger, start, passes = Ledger(), 0, 0
    for length in lengths:
        ledger = ledger.append(*session()[start : start + length])
        start += length
        for place in [p for p in pins if p < len(ledger.groups)]:
            pins.discard(place)
            ledger = ledger.apply(Change(f"pin{place}", "pin", pins=(ledger.groups[place].id,)))
        before = see(ledger, options)
        budget = budget_of(max(1000, before.raw), before.raw, int(before.raw * share))
        plan = builtin_strategies(options)[name].plan(before, ledger, budget)
        if plan is None:
            continue
        text = "word " * max(s.summary_tokens for s in plan.steps) or "none"
        after = ledger.apply(apply_plan(ledger, plan, f"p{passes}", options, summary=text[:2000]))
        passes += 1
        shown = see(after, options)
        assert problems(shown) == [] and shown.raw < before.raw
        assert after.messages() == ledger.messages(), "the record is whole"
        assert len(earlier(after)) <= 1
        current = {i.message for i in before.items if i.group in ledger.current}
        assert current <= {i.message for i in shown.items}
        for group in after.pinned:
            assert [i.message for i in shown.items if i.group == group] == list(after.group(group).messages)
        assert see(after.undo(f"p{passes - 1}"), options) == before
        ledger = after


@settings(max_examples=40, deadline=None)
@given(
    kinds=st.lists(
        st.sampled_from(["asks", "asks", "answers", "is cut off", "calls", "calls"]), min_size=4, max_size=14
    ),
    strategy=st.sampled_from(STRATEGIES),
    keep=st.sampled_from(KEPT),
)
def test_what_is_pending_is_right_wherever_a_session_is_cut(kinds: list[str], strategy: str, keep: int) -> None:
    """Also in the middle of a round; `benchmarks.pending` tells what is open from the messages alone."""
    cut = look([*_said(kinds)], strategy, PlanOptions(counter=METER, keep_recent=keep, keep_turns=1, recent_results=0))
    assert cut is None or not cut.wrong


def test_what_is_pending_is_right_in_recorded_work() -> None:
    found = [cut for one in recordings() for _, _, cut in cuts(one.messages, 4, Random(3))]
    assert any(cut.open for cut in found) and not [cut for cut in found if cut.wrong]


def _said(kinds: Sequence[str]) -> Iterator[Message]:
    """Messages of these kinds; the answer to a call is missing now and then."""
    for number, kind in enumerate(kinds):
        seq = 2 * number + 1
        match kind:
            case "asks":
                yield Message(seq, "user", f"Request {number}: look at gauge {number}.\n\nAnd say what it shows.")
            case "calls":
                call = ToolCall(f"k{number}", "shell", '{"command": "make gauge"}')
                yield Message(seq, "assistant", "I look at it." * (number % 2), calls=(call,))
                if number % 3:
                    yield Message(seq + 1, "tool", "It shows 3 m. " * 90, call_id=call.id)
            case _:
                yield Message(seq, "assistant", "It shows 3 m. " * 90, interrupted=kind != "answers")


@pytest.mark.parametrize("way", [summarised, truncated])
def test_the_ledger_keeps_what_was_said_and_done(way: Way) -> None:
    told = run(session(), way, PlanOptions().facts_max_tokens, (1, 3, 10))
    for found, kept, _ in told.values():
        for kind in ("paths", "numbers", "commands"):
            assert kept[kind] >= 0.95 * found[kind], kind
    assert told[10][0]["paths"] > 30 and told[10][0]["commands"] > 10, "and there was something to keep"
