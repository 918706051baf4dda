"""The cache in words: never longer than it holds, never a price that nobody knows."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.cache_state import CacheBreak, CacheState, Hold, NextCall, PrefixRewrite
from ctxchat.core.context_usage import ContextUsage, PriceRise, TokenPrice
from ctxchat.core.times import iso
from ctxchat.presentation.cache_text import (
    anew_words,
    broke_words,
    cache_lines,
    cold_words,
    compacted_words,
    first_words,
    held_words,
    life_words,
)
from tests.tui.harbour import HarbourSession

NOW = 1_795_600_000.0
calls = st.builds(NextCall, st.none() | st.floats(0, 99), st.none() | st.floats(0, 999))
holds = st.builds(Hold, st.integers(1, 10**6), st.floats(NOW - 9_000, NOW + 9_000), st.booleans(), next=calls)
states = st.builds(
    CacheState, st.lists(holds, max_size=3).map(tuple), st.sampled_from(["cold", "unknown"]), calls, st.none()
)


@given(states)
def test_what_is_said_holds(cache: CacheState) -> None:
    lines = cache_lines(cache, NOW)
    hold = cache.held_at(NOW)
    said = " ".join(lines)
    assert ("warm" in said) == (hold is not None) == bool(held_words(cache, NOW))
    if found := re.search(r"warm (\d+) (min|h)", said):
        assert hold and hold.promised and int(found[1]) * (60 if found[2] == "min" else 3600) <= hold.until - NOW
    if cache.cold == NextCall() and (not hold or hold.next == NextCall()):
        assert "$" not in said and " s" not in said
    if not hold and cache.otherwise == "unknown":
        assert "cold" not in said


def test_its_words() -> None:
    dollars = Hold(9_000, NOW + 41 * 60, next=NextCall(0.03))
    assert cache_lines(CacheState((dollars,), "cold", NextCall(0.41)), NOW) == (
        "warm 41 min · next ≈ $0.03 + reply, cold ≈ $0.41",
    )
    probably = Hold(9_000, NOW + 60, False, next=NextCall(None, 0.6))
    assert cache_lines(CacheState((probably,), cold=NextCall(None, 21)), NOW) == (
        "probably warm · next ≈ 1 s, cold ≈ 21 s",
    )
    assert cache_lines(CacheState(otherwise="cold"), NOW) == ("cold",)
    assert cache_lines(CacheState(), NOW) == ()
    assert [life_words(s) for s in (59, 60, 7_199, 7_200, 43_000)] == ["<1 min", "1 min", "119 min", "2 h", "11 h"]


def test_a_cause_is_foreign_text() -> None:
    broke = CacheBreak("tools\x1b[31m\nof a server " * 40, at=iso(NOW))
    words = broke_words(CacheState(broke=broke))
    assert "\x1b" not in words and "\n" not in words and len(words) < 150 and words.startswith("broke ")


FIGURES = HarbourSession(window=200_000).context_usage
PRICE = TokenPrice(4e-6, 2e-7, 5e-6)


@given(states, st.integers(0, 200_000), st.integers(0, 200_000))
def test_both_prices_are_said_only_where_it_is_cold_and_a_summary_stands_ready(
    cache: CacheState, used: int, ghost: int
) -> None:
    context_usage = msgspec.structs.replace(FIGURES, cache=cache, used=used, price=PRICE)
    said = cold_words(context_usage, ghost, "shift+f8", NOW)
    if said:
        assert cache.warmth(NOW) == "cold" and cache.cold != NextCall()
    assert ("compacts first" in said) <= (0 < ghost < used)


def test_what_both_ways_cost() -> None:
    context_usage = msgspec.structs.replace(
        FIGURES, cache=CacheState(otherwise="cold", cold=NextCall(0.5)), used=100_000, price=PRICE
    )
    assert cold_words(context_usage, 0, "shift+f8", NOW) == "cold: sent as it is ≈ $0.50"
    both = "cold: sent as it is ≈ $0.50 · shift+f8 compacts first ≈ $0.20"
    assert cold_words(context_usage, 40_000, "shift+f8", NOW) == both
    local = msgspec.structs.replace(context_usage, cache=CacheState(otherwise="cold", cold=NextCall(None, 50.0)))
    assert cold_words(local, 40_000, "f9", NOW).endswith("≈ 50 s · f9 compacts first ≈ 20 s")
    cheap = msgspec.structs.replace(context_usage, cache=CacheState(otherwise="cold", cold=NextCall(0.001)))
    assert cold_words(cheap, 40_000, "f9", NOW) == ""


HELD = (Hold(90_000, NOW + 60, length=40), Hold(20_000, NOW + 60, length=5))
ANYWHERE = CacheState((Hold(90_000, NOW + 60, False, length=40),), cold=NextCall(None, 100.0))


def holding(cache: CacheState, price: TokenPrice = PRICE, **more: object) -> ContextUsage:
    return msgspec.structs.replace(FIGURES, cache=cache, used=100_000, price=price, **more)


def test_what_a_change_costs_is_said_before_it_is_made() -> None:
    context_usage = holding(CacheState(HELD, "cold", NextCall(0.5)))
    assert anew_words(context_usage, PrefixRewrite(39, 90_000), NOW) == "", "behind what is held a change costs nothing"
    said = anew_words(context_usage, PrefixRewrite(20, 50_000), NOW)
    assert said == "The server then reads 70.0k tokens anew: the next message costs $0.40 instead of $0.07."
    assert "60.0k" in anew_words(context_usage, PrefixRewrite(20, 50_000, 10_000), NOW), "what is dropped is not read"
    assert "90.0k" in anew_words(context_usage, PrefixRewrite(3, 95_000), NOW), (
        "nothing shorter is kept, whatever we count"
    )
    assert anew_words(context_usage, PrefixRewrite(20, 50_000), NOW + 60) == "", "it is cold"
    local = holding(ANYWHERE, TokenPrice())
    assert (
        anew_words(local, PrefixRewrite(20, 50_000), NOW)
        == "The server then reads 40.0k tokens anew, which takes 40 s."
    )


def test_the_reasoning_that_is_lost_is_said_with_the_price() -> None:
    context_usage = holding(CacheState(HELD[:1], "cold", NextCall(0.5)))
    said = anew_words(context_usage, PrefixRewrite(thoughts=2), NOW, at_most=True)
    assert said.startswith("The server then reads up to 90.0k tokens anew: the next message costs up to $0.50 instead")
    assert said.endswith(" The reasoning of 2 replies is not sent back then.")
    cold = anew_words(context_usage, PrefixRewrite(thoughts=1), NOW + 60)
    assert cold == "The reasoning of 1 reply is not sent back then."


def test_what_the_next_message_takes_after_a_compaction() -> None:
    context_usage, change = holding(CacheState(HELD, "cold", NextCall(0.5))), PrefixRewrite(9, 30_000)
    assert compacted_words(context_usage, 40_000, change, NOW) == "The next message costs $0.10 instead of $0.07."
    assert compacted_words(context_usage, 40_000, change, NOW + 60) == "The next message costs $0.20 instead of $0.50."
    dearer = holding(CacheState(HELD, "cold", NextCall(0.5)), price_step=PriceRise(60_000, 2.0))
    below = compacted_words(dearer, 40_000, PrefixRewrite(), NOW)
    assert below == "The next message costs $0.10 instead of $0.07.", "below the step"
    assert compacted_words(holding(CacheState(cold=NextCall(0.5))), 40_000, change, NOW) == "", "nobody knows"
    local = compacted_words(holding(ANYWHERE, TokenPrice()), 40_000, PrefixRewrite(4, 10_000), NOW)
    assert local == "The next message is read in 30 s instead of 10 s."


def test_a_model_that_has_read_nothing_is_told_with_what_the_next_message_takes() -> None:
    used = msgspec.structs.replace(FIGURES, used=100_000)
    assert first_words(used, NextCall(0.41)) == "It reads all 100.0k tokens anew: the next message costs ≈ $0.41."
    assert first_words(used, NextCall(0.01)) == first_words(used, NextCall()) == ""
