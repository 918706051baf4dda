"""The gauge's arithmetic: parts add up, shares are exact, corrections converge."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.budget import Budget, Window, WorkingLimit, make_budget
from ctxchat.core.calibration import Anchor, Mix, level
from ctxchat.core.context_usage import (
    ContextUsage,
    Counting,
    forecast,
    forecast_span,
    inside_tokens,
    measure,
    soft_tokens,
)
from ctxchat.core.events import Usage
from ctxchat.core.grouping import single
from ctxchat.core.head import Head
from ctxchat.core.journal import Changed, Measured, Sealed, Undone, fold
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Message
from ctxchat.core.sections import SECTIONS
from ctxchat.core.tokens import TokenCounter, apportion, image_tokens, rough_count
from ctxchat.core.view import compile
from tests.core.histories import ledgers
from tests.core.test_view import HEAD
from tests.examples import examples

METER = TokenCounter()
tokens = st.integers(0, 2_000_000)


@examples(125, 500)
@given(
    ledgers,
    st.integers(0, 2_000_000),
    tokens,
    st.floats(0.01, 1.5),
    st.floats(0.01, 1.5),
    st.floats(0.25, 4),
    tokens,
    tokens,
    st.none() | st.builds(Anchor, tokens, st.builds(Mix, tokens, tokens), st.integers(0, 1)),
)
def test_parts_always_add_up(
    ledger: Ledger,
    window: int,
    reserved: int,
    trigger: float,
    target: float,
    ratio: float,
    draft: int,
    streamed: int,
    anchor: Anchor | None,
) -> None:
    budget = make_budget(Window(window, "assumed"), reserved, trigger, target)
    view = compile(ledger, HEAD, METER)
    got = measure(view, budget, Counting("m", level(ratio), anchor), draft=Mix(draft), streamed=Mix(streamed))
    inside = sum(s.tokens for s in got.sections if s.name not in {"reserved", "free"})
    assert [s.name for s in got.sections] == list(SECTIONS)
    assert inside == got.used
    assert all(s.tokens >= 0 for s in got.sections)
    total = sum(s.tokens for s in got.sections)
    assert total == got.window if got.used <= got.limit else total >= got.window
    assert 0 < got.trigger_tokens <= got.limit
    assert got.target_tokens <= got.trigger_tokens
    assert msgspec.json.decode(msgspec.json.encode(got), type=ContextUsage) == got


def test_what_streams_in_counts_as_the_assistants_and_a_draft_as_a_draft() -> None:
    budget = make_budget(Window(10_000, "loaded"), 0, 0.8, 0.5)
    view = compile(Ledger(groups=(single("user", Message(1, "user", "hi"), 1),)), Head(), METER)
    got = measure(view, budget, Counting("m"), draft=Mix(30), streamed=Mix(70))
    assert (got.tokens("draft"), got.tokens("assistant"), got.used) == (30, 70, view.raw + 100)


@given(st.integers(1_000, 10**6), st.floats(0.1, 0.98), st.floats(0.05, 0.9), st.integers(0, 10**6))
def test_a_working_limit_is_where_room_is_made_and_lets_nothing_begin_later(
    window: int, trigger: float, target: float, working: int
) -> None:
    usual = make_budget(Window(window, "loaded"), 0, trigger, target)
    budget = make_budget(Window(window, "loaded"), 0, trigger, target, working=WorkingLimit(working))
    if not 0 < working < usual.limit:
        assert budget == usual
        return
    assert budget.trigger == min(usual.trigger, working) and budget.target <= min(usual.target, budget.trigger)
    context_usage = measure(compile(Ledger(), Head(), METER), budget, Counting("m"))
    assert context_usage.working_limit == working
    assert soft_tokens(context_usage, 0.6) < working and inside_tokens(context_usage, 0.85) <= working


def test_a_window_of_nothing_divides_nothing_by_zero() -> None:
    budget = Budget(window=Window(0, "assumed"), reserved=0, trigger=0, target=0)
    got = measure(compile(Ledger(), Head(), METER), budget, Counting(""))
    assert (got.used, got.pressure, got.limit) == (0, 0, 1)


@examples(37, 150)
@given(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_apportioning_is_exact_and_fair(total: int, weights: list[int]) -> None:
    parts = apportion(total, weights)
    if sum(weights):
        assert sum(parts) == total
        assert all(abs(p - total * w / sum(weights)) < 1 + 1e-6 for p, w in zip(parts, weights, strict=True))
    assert all(p >= 0 for p in parts)
    assert all(p == 0 for p, w in zip(parts, weights, strict=True) if w == 0)


@examples(37, 150)
@given(st.text(st.characters(), max_size=200))
def test_the_rough_count_never_raises(text: str) -> None:
    assert 0 <= rough_count(text) <= 3 * len(text) + 1


def test_images_cost_by_their_size() -> None:
    assert image_tokens(512, 512) == 85 + 170
    assert image_tokens(1024, 1024) == 765
    assert image_tokens(4096, 8192) == 1105
    assert image_tokens(100_000, 10) == 85 + 170 * 4
    assert image_tokens(0, 0) == 765


def test_forecast_needs_a_trend() -> None:
    assert forecast([], 10, 100) is None
    assert forecast([50, 40], 40, 100) is None
    assert forecast([10, 20, 30], 30, 100) == 7
    assert forecast([10, 20, 30], 300, 100) == 0


def test_people_are_told_a_span_or_nothing() -> None:
    assert forecast_span([10, 20, 30], 30, 100) is None, "two turns are no pace"
    assert forecast_span([0, 10, 20, 30], 30, 100) == (7, 7)
    assert forecast_span([0, 8, 20, 30], 30, 100) == (6, 7)
    assert forecast_span([0, 1, 2, 90], 90, 300) is None, "one long result among short ones: nobody knows"
    assert forecast_span([0, 10, 20, 30], 300, 100) == (0, 0)


def test_a_change_makes_an_older_anchor_void_until_it_is_undone() -> None:
    group = single("user", Message(1, "user", "hi"), 1)
    measured = Measured("m", Usage(100, 5), used=105, anchor=Anchor(105, Mix(90), 0))
    state = fold([Sealed((group,)), measured])
    assert state.anchor is not None
    pinned = fold([Changed(Change("c", "pin", pins=("g1",)))], state)
    assert pinned.anchor is None
    assert fold([Undone("c")], pinned).anchor == state.anchor
    other = fold([Undone("c"), Changed(Change("c", "pin", pins=("g1", "g1")))], fold([measured], pinned))
    assert other.anchor is None, "it has the same id, as what is left of a compaction has, and is another change"
