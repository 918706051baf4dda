"""Checks the token counts and costs that servers report, and drops those that cannot be true, by the size of the prompt that was
sent and of the reply that came. A dropped figure counts as not reported. Pure.
"""

from __future__ import annotations

from ctxchat.core.calibration import MAX_TOKENS, most_tokens
from ctxchat.core.events import Usage

MAX_HIDDEN_THOUGHT_TOKENS = 200_000
"""The most tokens of a reply that may not be visible: reasoning that the provider does not show."""

MAX_CALL_USD = 1_000
"""The highest believable cost of one call, in US dollars."""

MAX_TOKEN_USD = 0.01
"""The highest believable price of one token, in US dollars: ten times that of the dearest models."""

MAX_EXTRAS_USD = 1.0
"""The highest believable cost of a call besides its tokens (a search, an image), in US dollars."""


def tokens(value: object) -> int:
    """A reported token count; 0 where it is no possible count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return 0
    return int(value)


def dollars(value: object) -> float | None:
    """A reported cost in US dollars; None where it is no believable amount: negative, NaN, or more than `MAX_CALL_USD`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_CALL_USD:
        return None
    return float(value)


def sound(usage: Usage, sent: int, received: int) -> Usage:
    """The usage with figures that fit together, and fit the prompt that was `sent` (in our raw tokens) and the reply that was
    `received` (in characters).

    Where prompt or completion cannot be true, both become 0, as if nothing had been counted, and so does the cost, since it was
    computed from them. Where no counts were given, a believable cost is kept, since then the server stated it.
    """
    prompt, completion = tokens(usage.prompt), tokens(usage.completion)
    plausible = (
        0 < prompt <= most_tokens(sent) and completion == usage.completion <= 4 * received + MAX_HIDDEN_THOUGHT_TOKENS
    )
    cost = _cost(usage.cost_usd, prompt + completion if plausible else most_tokens(sent))
    if not plausible:
        return Usage(0, 0, cost_usd=0.0 if usage.prompt else cost, estimated=usage.estimated)
    cached, reasoning = min(tokens(usage.cached), prompt), min(tokens(usage.reasoning), completion)
    written = min(tokens(usage.written), prompt - cached)
    long = min(tokens(usage.written_long), written)
    return Usage(prompt, completion, cached, reasoning, cost, usage.estimated, written, long)


def _cost(reported: object, token_count: int) -> float:
    """The reported cost; 0 where that many tokens cannot cost so much."""
    cost = dollars(reported) or 0.0
    return cost if cost <= token_count * MAX_TOKEN_USD + MAX_EXTRAS_USD else 0.0
