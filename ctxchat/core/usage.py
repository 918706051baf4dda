"""What a server's figures are worth: counts and costs that make no sense are told from those that do. Pure."""

from __future__ import annotations

from ctxchat.core.events import Usage

MOST_TOKENS = 10**9
"""No request has more: a larger figure is a server's mistake, and past 2^63 no database takes it."""

MOST_DOLLARS = 10**6


def tokens(value: object) -> int:
    """A count as it came; 0 where it makes no sense."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return 0
    return int(value)


def dollars(value: object) -> float | None:
    """What something cost; None where it makes no sense, as NaN, which JSON cannot even say."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_DOLLARS:
        return None
    return float(value)


def sound(usage: Usage) -> Usage:
    """The usage with figures that fit together. Where prompt or completion make no sense both are 0, which says that nothing
    was counted; the cost stays where it is one."""
    cost = dollars(usage.cost_usd) or 0.0
    prompt, completion = tokens(usage.prompt), tokens(usage.completion)
    if not prompt or completion != usage.completion:
        return Usage(0, 0, cost_usd=cost, estimated=usage.estimated)
    cached, reasoning = min(tokens(usage.cached), prompt), min(tokens(usage.reasoning), completion)
    return Usage(prompt, completion, cached, reasoning, cost, usage.estimated)
