"""What calls cost by a model's prices: parts of a prompt, steps by its length, and the next call warm and cold."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import Usage
from ctxchat.core.prices import ModelPrices, PriceStep, Rates, cost, next_cost

TOKENS = st.integers(0, 2_000_000)


@st.composite
def rates(draw: st.DrawFn) -> Rates:
    """As they are: a read costs no more than what is new, a write no less, one for longer no less than that."""
    new = draw(st.floats(0, 100))
    written = new * draw(st.floats(1, 2))
    long = written * draw(st.floats(1, 2))
    return Rates(new, draw(st.floats(0, 500)), new * draw(st.floats(0, 1)), written, long)


@st.composite
def model_prices(draw: st.DrawFn) -> ModelPrices:
    """Steps that make nothing cheaper."""
    base, steps = draw(rates()), []
    for above in sorted(draw(st.sets(st.integers(1, 1_000_000), max_size=3))):
        dearer = draw(st.floats(1, 6))
        fields = {name: price * dearer ** (len(steps) + 1) for name, price in msgspec.structs.asdict(base).items()}
        steps.append(PriceStep(above, Rates(**fields)))
    return ModelPrices(base, tuple(steps), least_cached=draw(st.sampled_from([0, 512, 4096])))


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    cached, written, plain = draw(TOKENS), draw(TOKENS), draw(TOKENS)
    return Usage(
        *(cached + written + plain, draw(TOKENS), cached), written=written, written_long=draw(st.integers(0, written))
    )


@given(model_prices(), usages())
def test_a_call_costs_what_its_parts_do(prices: ModelPrices, usage: Usage) -> None:
    held = prices.rates_at(usage.prompt)
    plain = usage.prompt - usage.cached - usage.written
    parts = [
        plain * held.input,
        usage.cached * held.cached,
        (usage.written - usage.written_long) * held.written,
        usage.written_long * held.written_long,
        usage.completion * held.output,
    ]
    assert cost(prices, usage) == pytest.approx(sum(parts) / 1e6)


@given(model_prices(), usages())
def test_figures_that_do_not_fit_together_never_make_a_call_cheaper_than_its_cache(
    prices: ModelPrices, usage: Usage
) -> None:
    odd = Usage(usage.cached, 0, usage.prompt, written=usage.written, written_long=usage.prompt * 2)
    assert cost(prices, odd) == pytest.approx(odd.prompt * prices.rates_at(odd.prompt).cached / 1e6)


@given(model_prices(), TOKENS, TOKENS, st.booleans())
def test_a_warm_cache_never_makes_the_next_call_dearer(
    prices: ModelPrices, warm: int, new: int, long_life: bool
) -> None:
    kept = next_cost(prices, warm, new, long_life=long_life)
    cold = next_cost(prices, 0, warm + new, long_life=long_life)
    assert kept <= cold * (1 + 1e-9)


@given(model_prices(), TOKENS, TOKENS, st.integers(0, 100_000))
def test_a_longer_prompt_is_never_cheaper(prices: ModelPrices, warm: int, new: int, more: int) -> None:
    least = prices.least_cached
    if warm + new >= least or warm + new + more < least:  # being kept costs something
        assert next_cost(prices, warm, new) <= next_cost(prices, warm, new + more) * (1 + 1e-9)


@given(model_prices(), st.data())
def test_a_step_holds_for_the_whole_prompt_once_it_is_passed(prices: ModelPrices, data: st.DataObject) -> None:
    assert prices.rates_at(0) == prices.rates
    if prices.steps:
        place = data.draw(st.integers(0, len(prices.steps) - 1))
        step = prices.steps[place]
        before = prices.steps[place - 1].rates if place else prices.rates
        assert (prices.rates_at(step.above), prices.rates_at(step.above + 1)) == (before, step.rates)


def test_a_prompt_that_is_too_short_to_be_kept_is_neither_read_nor_written() -> None:
    prices = ModelPrices(Rates(10, 0, 1, 12.5, 20), least_cached=512)
    assert next_cost(prices, 400, 100) == pytest.approx(500 * 10 / 1e6)
    assert next_cost(prices, 400, 112) == pytest.approx((400 * 1 + 112 * 12.5) / 1e6)
    assert next_cost(prices, 400, 112, long_life=True) == pytest.approx((400 * 1 + 112 * 20) / 1e6)
