"""Spending limits: what a turn, a session and a day may cost at most, in US dollars and in tokens, and how long a reply may be so
that a request passes none of them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from ctxchat.core.prices import TOKENS_PER_PRICE, ModelPrices

Scope = Literal["turn", "session", "day", "task"]
"""A `task` is that of one sub-agent."""

SCOPES: tuple[Scope, ...] = ("turn", "session", "day")
"""Those that hold for a session and all its sub-agents together."""

WARNING_SHARE = 0.8
"""Share of a limit from which a person is told."""

MIN_OUTPUT = 1_000
"""Tokens: a request whose reply would have room for fewer is not made (or for fewer than it asks for)."""


class SpendingLimits(msgspec.Struct, frozen=True):
    """0 for none. A day is a day of UTC, of all sessions; tokens are those of prompts and replies together."""

    turn: float = 0.0
    session: float = 0.0
    day: float = 0.0
    turn_tokens: int = 0
    session_tokens: int = 0
    task: float = 0.0
    task_tokens: int = 0


class Spend(msgspec.Struct, frozen=True):
    """What was paid, or may be at most."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.usd + other.usd, self.tokens + other.tokens)


class Limit(msgspec.Struct, frozen=True):
    """One of the limits, and what of it is spent: US dollars, or tokens where `in_tokens`."""

    scope: Scope
    most: float
    spent: float
    in_tokens: bool = False

    @property
    def left(self) -> float:
        """What may still be spent, 0 where it is passed."""
        return max(0.0, self.most - self.spent)

    @property
    def words(self) -> str:
        """`$4.80 of $5.00 for this session`."""
        return f"{self.amount(self.spent)} of {self.amount(self.most)} for this {self.scope}"

    def amount(self, of: float) -> str:
        """`$4.80`, or `12,000 tokens`."""
        return f"{of:,.0f} tokens" if self.in_tokens else f"${of:,.2f}"

    @property
    def extended(self) -> float:
        """What the limit would be with as much again from here. That of a turn: what comes after a question is another turn's."""
        return self.most if self.scope == "turn" else self.spent + self.most


def limits_in_force(limits: SpendingLimits, spent: Mapping[Scope, Spend]) -> Iterator[Limit]:
    """Those that are set for these scopes, with what was spent of each."""
    dollars = {"turn": limits.turn, "session": limits.session, "day": limits.day, "task": limits.task}
    tokens = {"turn": limits.turn_tokens, "session": limits.session_tokens, "task": limits.task_tokens}
    for scope, so_far in spent.items():
        if (most := dollars[scope]) > 0:
            yield Limit(scope, most, so_far.usd)
    for scope, so_far in spent.items():
        if (most := tokens.get(scope, 0)) > 0:
            yield Limit(scope, most, so_far.tokens, in_tokens=True)


def dearest(prices: ModelPrices | None, prompt: int, output: int) -> Spend:
    """The most that a call with so many prompt tokens and at most so many of a reply can cost: nothing of the prompt is cached,
    all of it is written to the cache."""
    if prices is None:
        return Spend(0.0, prompt + output)
    rates = prices.rates_at(prompt)
    of_prompt = max(rates.input, rates.written, rates.written_long, rates.cached)
    return Spend((prompt * of_prompt + output * rates.output) / TOKENS_PER_PRICE, prompt + output)


def longest_reply(limit: Limit, prices: ModelPrices | None, prompt: int) -> int | None:
    """Tokens a reply may have so that the call keeps to this limit at its dearest; None where that limits nothing. Below 0 where
    the prompt alone would pass it."""
    if limit.in_tokens:
        return int(limit.left) - prompt
    if prices is None:
        return None
    left, rate = limit.left - dearest(prices, prompt, 0).usd, prices.rates_at(prompt).output
    if rate <= 0:
        return None if left >= 0 else -1
    return int(left / rate * TOKENS_PER_PRICE)
