"""The line below the gauge: what comes next, in every standing of compaction."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.automatic import Automatic, Standing
from ctxchat.presentation.outlook import outlook
from tests.tui.test_gauge import figures_of

NOW = 1_000_000.0


def line(used: int, ghost: int = 0, **more: object) -> tuple[str, ...]:
    return outlook(msgspec.structs.replace(figures_of({"user": used}, 32_768, 4_096), **more), ghost, NOW, "F8")


def test_how_far_it_is_and_what_stands_ready() -> None:
    assert line(20_000, trigger_tokens=26_900)[0] == "6.9k until compaction (26.9k)"
    assert line(27_000, 12_400, trigger_tokens=26_900)[:2] == (
        "compaction is due",
        "14.6k ready to free F8",
    )


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        ("asks", "6.9k until you are asked to compact (26.9k)"),
        ("off", "automatic compaction is off (context.auto_compact)"),
    ],
)
def test_who_begins_it(standing: Standing, said: str) -> None:
    assert line(20_000, trigger_tokens=26_900, automatic=Automatic(standing))[0] == said


@given(st.integers(1, 60_000), st.integers(0, 60_000), st.sampled_from(["auto", "asks", "off", "snoozed", "failed"]))
def test_no_figure_is_negative_and_something_is_said(used: int, ghost: int, standing: Standing) -> None:
    parts = line(used, ghost, trigger_tokens=26_900, automatic=Automatic(standing, turns=2))
    assert parts and all(part and "-" not in part and "−" not in part for part in parts)
