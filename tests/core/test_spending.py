"""What a session has cost: every part adds up to the sum, whatever was paid and in whatever order."""

from __future__ import annotations

from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import Usage
from ctxchat.core.journal import CompactionFinished, Measured, Record, SessionState, Spent, fold
from ctxchat.core.record import CompactionRecord
from ctxchat.presentation.spending_text import spending_lines

usd = st.floats(0, 5)
models = st.sampled_from(["a/m", "b/m"])
days = st.sampled_from(["", "2026-11-24T10:00:00.000Z", "2026-11-25T10:00:00.000Z"])
measured = st.builds(
    lambda model, cost, at, end: Measured(model, Usage(10, 5, cost_usd=cost), 15, at=at, turn_end=end),
    models,
    usd,
    days,
    st.booleans(),
)
spent = st.builds(Spent, models, usd, st.sampled_from(["replies", "summaries", "sub-agents", "other"]))


@given(st.lists(measured | spent, max_size=30))
def test_every_part_adds_up_to_the_sum(records: list[Record]) -> None:
    state = fold(
        [*records, CompactionFinished(CompactionRecord("k1", "auto", "s", "failed", model="a/m", cost_usd=0.5))]
    )
    spending = state.spending
    for part in (spending.by_model, spending.by_day, spending.by_purpose):
        assert isclose(sum(part.values()), state.cost_usd, abs_tol=1e-9)
    ends = sum(isinstance(record, Measured) and record.turn_end for record in records)
    assert len(spending.turns) == min(12, ends)
    if ends <= 12:
        assert isclose(sum(spending.turns) + spending.open, state.cost_usd, abs_tol=1e-9)
    assert all(spending_lines(state))


def test_its_words() -> None:
    assert spending_lines(SessionState()) == ("No cost of this session is known.",)
    state = fold(
        [
            Measured("a/m", Usage(1, 1, cost_usd=0.5), 2, at="2026-11-24T10:00:00.000Z", turn_end=True),
            Spent("b/m", 0.25, "summaries"),
            Measured("a/m", Usage(1, 1, cost_usd=0.1), 2, at="2026-11-25T10:00:00.000Z"),
        ]
    )
    assert spending_lines(state) == (
        "This session has cost $0.85: replies $0.60, summaries $0.25.",
        "By model: a/m $0.60, b/m $0.25.",
        "By day (UTC): 2026-11-25 $0.10, 2026-11-24 $0.75.",
        "The last turn cost $0.50, and $0.35 since.",
    )
    turns = [Measured("a/m", Usage(1, 1, cost_usd=usd), 2, turn_end=True) for usd in (0.1, 0.4, 0.2)]
    assert spending_lines(fold(turns))[-1] == "The last turn cost $0.20. The last 3: ▂█▄  $0.10 to $0.40."
