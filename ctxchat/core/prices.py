"""Prices of models as values, and the cost of a call computed from them. Pure.

All rates are US dollars per million tokens. Each token of a prompt is either read from the provider's cache, or written to it, or
neither, at a rate of its own.
"""

from __future__ import annotations

import msgspec

from ctxchat.core.events import Usage

TOKENS_PER_PRICE = 1_000_000


class Rates(msgspec.Struct, frozen=True):
    """US dollars per million tokens: `cached` for prompt tokens read from the provider's cache, `written` for those written to
    it, `written_long` for those written with the longer lifetime, `input` for all others. Where a provider has no price of its
    own for one of these, it is that of `input`."""

    input: float
    output: float
    cached: float
    written: float
    written_long: float


class PriceStep(msgspec.Struct, frozen=True):
    """The rates of a call, for all its tokens, where its prompt has more than `above` tokens."""

    above: int
    rates: Rates


class ModelPrices(msgspec.Struct, frozen=True):
    """The prices of a model: `rates`, and `steps` for long prompts, the lowest first.

    `cache_life` and `long_cache_life` are the seconds for which the provider promises to cache a prompt after it was last sent
    (0: no promise). A prompt of fewer than `least_cached` tokens is not cached.
    """

    rates: Rates
    steps: tuple[PriceStep, ...] = ()
    cache_life: int = 0
    long_cache_life: int = 0
    least_cached: int = 0

    def rates_at(self, prompt: int) -> Rates:
        """The rates of a call whose prompt has `prompt` tokens."""
        return next((step.rates for step in reversed(self.steps) if prompt > step.above), self.rates)


def cost(prices: ModelPrices, usage: Usage) -> float:
    """The cost of a call in US dollars, by the token counts that the server reported."""
    rates = prices.rates_at(usage.prompt)
    cached = min(usage.cached, usage.prompt)
    written = min(usage.written, usage.prompt - cached)
    long = min(usage.written_long, written)
    total = (usage.prompt - cached - written) * rates.input
    total += cached * rates.cached + (written - long) * rates.written + long * rates.written_long
    return (total + usage.completion * rates.output) / TOKENS_PER_PRICE


def next_cost(prices: ModelPrices, warm_tokens: int, new_tokens: int, *, long_life: bool = False) -> float:
    """The cost of the prompt of the next call in US dollars: `warm_tokens` of it are read from the provider's cache, `new_tokens`
    are written to it (with the longer lifetime where `long_life`)."""
    prompt = warm_tokens + new_tokens
    cacheable = prompt >= prices.least_cached
    usage = Usage(
        prompt,
        0,
        cached=warm_tokens if cacheable else 0,
        written=new_tokens if cacheable else 0,
        written_long=new_tokens if cacheable and long_life else 0,
    )
    return cost(prices, usage)
