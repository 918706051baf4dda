"""Spending limits: what a turn, a session, a day and a sub-agent's task may cost at most, in US dollars or tokens, and the
longest reply with which a request keeps to them. Pure; `agent.spending_budget` applies them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from ctxchat.core.prices import TOKENS_PER_PRICE, ModelPrices

Scope = Literal["turn", "session", "day", "task"]
"""What a limit is for. A `task` is the work of one sub-agent."""

SCOPES: tuple[Scope, ...] = ("turn", "session", "day")
"""The scopes whose limits hold for a session and all its sub-agents together."""

WARNING_SHARE = 0.8
"""The share of a limit at which the person is warned."""

MIN_OUTPUT = 1_000
"""The fewest tokens for a reply: a request is not made where the limits leave less than this, or less than it asks for."""


class SpendingLimits(msgspec.Struct, frozen=True):
    """The limits that are set, in US dollars, and in tokens (prompts and replies together) where the name says so; 0 means no
    limit. A day is one of UTC and counts all sessions."""

    turn: float = 0.0
    session: float = 0.0
    day: float = 0.0
    turn_tokens: int = 0
    session_tokens: int = 0
    task: float = 0.0
    task_tokens: int = 0


class Spend(msgspec.Struct, frozen=True):
    """An amount spent, or to be spent at most."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.usd + other.usd, self.tokens + other.tokens)


class Limit(msgspec.Struct, frozen=True):
    """One limit (`most`) and how much of it is `spent`, in US dollars, or in tokens where `in_tokens`."""

    scope: Scope
    most: float
    spent: float
    in_tokens: bool = False

    @property
    def left(self) -> float:
        """What may still be spent; 0 where the limit is passed."""
        return max(0.0, self.most - self.spent)

    @property
    def words(self) -> str:
        """For a person: `$4.80 of $5.00 for this session is spent`, `4,800 of 5,000 tokens for this turn are spent`."""
        spent = self.amount(self.spent).removesuffix(" tokens")
        are = "are" if self.in_tokens else "is"
        return f"{spent} of {self.amount(self.most)} for this {self.scope} {are} spent"

    def amount(self, of: float) -> str:
        """An amount in the limit's unit: `$4.80`, or `12,000 tokens`."""
        return f"{of:,.0f} tokens" if self.in_tokens else f"${of:,.2f}"

    @property
    def extended(self) -> float:
        """The limit after a person agreed to spend the same amount again, from what is spent now. A turn's stays the same: its
        spending is counted from 0 again."""
        return self.most if self.scope == "turn" else self.spent + self.most


def limits_in_force(limits: SpendingLimits, spent: Mapping[Scope, Spend]) -> Iterator[Limit]:
    """The limits that are set for the scopes in `spent`, each with what was spent."""
    dollars = {"turn": limits.turn, "session": limits.session, "day": limits.day, "task": limits.task}
    tokens = {"turn": limits.turn_tokens, "session": limits.session_tokens, "task": limits.task_tokens}
    for scope, so_far in spent.items():
        if (most := dollars[scope]) > 0:
            yield Limit(scope, most, so_far.usd)
    for scope, so_far in spent.items():
        if (most := tokens.get(scope, 0)) > 0:
            yield Limit(scope, most, so_far.tokens, in_tokens=True)


def dearest(prices: ModelPrices | None, prompt: int, output: int) -> Spend:
    """The most that a call with `prompt` tokens and a reply of `output` tokens can cost: all of its prompt at the highest of the
    rates for prompts. Without `prices` only its tokens count."""
    if prices is None:
        return Spend(0.0, prompt + output)
    rates = prices.rates_at(prompt)
    highest = max(rates.input, rates.written, rates.written_long, rates.cached)
    return Spend((prompt * highest + output * rates.output) / TOKENS_PER_PRICE, prompt + output)


def longest_reply(limit: Limit, prices: ModelPrices | None, prompt: int) -> int | None:
    """The most tokens that a reply may have for the call to keep to this limit even at its highest cost; None where the limit
    does not restrict it, negative where the prompt alone could pass the limit."""
    if limit.in_tokens:
        return int(limit.left) - prompt
    if prices is None:
        return None
    left, rate = limit.left - dearest(prices, prompt, 0).usd, prices.rates_at(prompt).output
    if rate <= 0:
        return None if left >= 0 else -1
    return int(left / rate * TOKENS_PER_PRICE)
