"""What a model costs and how long its provider keeps what it was sent, as values, and what a call costs by them. Pure.

All rates are US dollars a million tokens. A prompt's tokens are each one of three: read from the provider's cache, written to it,
or neither.
"""

from __future__ import annotations

import msgspec

from ctxchat.core.events import Usage

TOKENS_PER_PRICE = 1_000_000


class Rates(msgspec.Struct, frozen=True):
    """US dollars a million tokens. `cached` is for prompt tokens that come from the provider's cache, `written` for those that go
    into it, `written_long` for those kept there for its longer life. Where a provider does not price these by themselves they
    cost what `input` does."""

    input: float
    output: float
    cached: float
    written: float
    written_long: float


class PriceStep(msgspec.Struct, frozen=True):
    """What a call costs, all of it, once its prompt holds more than `above` tokens."""

    above: int
    rates: Rates


class ModelPrices(msgspec.Struct, frozen=True):
    """What a model costs. `steps` begin where they say, the lowest first. `cache_life` and `long_cache_life` are the seconds for
    which the provider promises to keep a prompt from when it was last sent, 0 where it promises nothing; prompts of fewer tokens
    than `least_cached` are not kept at all."""

    rates: Rates
    steps: tuple[PriceStep, ...] = ()
    cache_life: int = 0
    long_cache_life: int = 0
    least_cached: int = 0

    def rates_at(self, prompt: int) -> Rates:
        """What a call with so many prompt tokens costs."""
        return next((step.rates for step in reversed(self.steps) if prompt > step.above), self.rates)


def cost(prices: ModelPrices, usage: Usage) -> float:
    """US dollars for a call that a server counted so."""
    rates = prices.rates_at(usage.prompt)
    cached = min(usage.cached, usage.prompt)
    written = min(usage.written, usage.prompt - cached)
    long = min(usage.written_long, written)
    total = (usage.prompt - cached - written) * rates.input
    total += cached * rates.cached + (written - long) * rates.written + long * rates.written_long
    return (total + usage.completion * rates.output) / TOKENS_PER_PRICE


def next_cost(
    prices: ModelPrices, warm_tokens: int, new_tokens: int, reply_tokens: int, *, long_life: bool = False
) -> float:
    """US dollars for the next call: `warm_tokens` of its prompt are still in the provider's cache (0: it is cold), `new_tokens`
    are written to it, for its longer life where that is asked for, and the reply takes `reply_tokens`."""
    prompt = warm_tokens + new_tokens
    kept = prompt >= prices.least_cached
    usage = Usage(
        prompt,
        reply_tokens,
        cached=warm_tokens if kept else 0,
        written=new_tokens if kept else 0,
        written_long=new_tokens if kept and long_life else 0,
    )
    return cost(prices, usage)
