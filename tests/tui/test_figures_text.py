"""Figures in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.context_usage import ContextUsage
from ctxchat.presentation import usage_text as words
from ctxchat.presentation.text import short
from tests.tui.harbour import HarbourSession

FIGURES = HarbourSession().context_usage


def with_used(context_usage: ContextUsage, used: int, **fields: object) -> ContextUsage:
    return msgspec.structs.replace(context_usage, used=used, pressure=used / context_usage.limit, **fields)


@pytest.mark.parametrize(
    ("n", "text", "few"),
    [
        (0, "0", "0"),
        (999, "999", "999"),
        (1_000, "1.0k", "1k"),
        (12_340, "12.3k", "12.3k"),
        (118_400, "118.4k", "118k"),
        (200_000, "200.0k", "200k"),
        (999_950, "1.0M", "1M"),
        (1_500_000, "1.5M", "1.5M"),
    ],
)
def test_tokens_are_short(n: int, text: str, few: str) -> None:
    assert (short(n), words.brief(n)) == (text, few)


@pytest.mark.parametrize(
    ("n", "text"), [(999, "999"), (2_000, "2.0k"), (99_900, "99.9k"), (118_400, "118k"), (1_000_000, "1.0M")]
)
def test_what_grows_keeps_its_decimal(n: int, text: str) -> None:
    assert words.steady(n) == text


@given(st.floats(0, 50))
def test_a_percentage_never_belies_the_limit(ratio: float) -> None:
    number = int(words.percent(ratio).removesuffix(" %"))
    assert (number >= 100) == (ratio >= 1)
    assert (number > 100) == (ratio > 1)
    assert abs(number - ratio * 100) <= 1


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_brief_is_never_longer(n: int, m: int) -> None:
    assert len(words.brief(n)) <= len(short(n))
    if n < m and words.brief(n)[-1] == words.brief(m)[-1] and not words.brief(n)[-1].isdigit():
        assert float(words.brief(n)[:-1]) <= float(words.brief(m)[:-1])


def test_an_estimate_says_so() -> None:
    assert all(t.startswith("~") for t in words.gauge_words(FIGURES))
    counted = msgspec.structs.replace(FIGURES, estimated=False)
    assert not any("~" in t for t in words.gauge_words(counted))
    assert "about" in words.sentence(FIGURES) and "about" not in words.sentence(counted)


def test_before_anything_is_counted_no_figure_is_told() -> None:
    fresh = msgspec.structs.replace(FIGURES, used=0, pressure=0.0)
    for window in (fresh.window, 0):
        told = (*words.gauge_words(msgspec.structs.replace(fresh, window=window)), words.sentence(fresh))
        assert not any(each.isdigit() for each in "".join(told)) and "counting" in told[0]


def test_an_unknown_window_is_said_and_divides_nothing() -> None:
    unknown = msgspec.structs.replace(FIGURES, window=0, limit=0, pressure=0.0)
    assert words.window_words(unknown) == "window unknown"
    assert "unknown" in words.sentence(unknown) and "unknown" in words.gauge_words(unknown)[0]
    assert words.part_words(unknown, "user").startswith("you: ~")


def test_where_the_window_was_learned_is_said() -> None:
    assert words.window_words(FIGURES) == "window 32k, catalogue"
    knowledge = msgspec.structs.replace(FIGURES, window_source="learned")
    assert words.window_words(knowledge) == "window 32k, learned from a rejection"


def test_the_draft_is_told_with_what_it_leads_to() -> None:
    desk = HarbourSession()
    assert words.draft_words(desk.context_usage) == ""
    assert words.draft_words(desk.with_draft("a few words")).endswith(" %")
    assert words.draft_words(desk.with_draft("word " * 10_000)).endswith("compaction would start")
    assert "over the limit by 49.4k, compaction would start" in words.draft_words(desk.with_draft("word " * 40_000))


def test_time_passes_in_words() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    ages = [words.age((now - timedelta(minutes=m)).isoformat(), now) for m in (0, 3, 150, 3_000, 60_000)]
    assert ages[:4] == ["now", "3 min", "2 h", "2 days"]
    assert "2026" in ages[4]
    assert words.age("no time", now) == "" == words.day_and_clock("")


def test_money_and_gains() -> None:
    assert [words.money(x) for x in (0, 0.004, 0.04, 12.3)] == ["$0", "<$0.01", "$0.04", "$12.30"]
    assert [words.gain(n) for n in (14_200, 0, -1_000)] == ["−14.2k", "0", "+1.0k"]
    assert words.share(1, 0) == "0 %"
