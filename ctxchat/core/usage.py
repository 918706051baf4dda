"""Checks the token counts and costs that servers report, and drops those that cannot be true. Pure.

What was sent and what came back is known; figures that cannot be of it are treated as if none had been given.
"""

from __future__ import annotations

from ctxchat.core.calibration import MAX_TOKENS, most_tokens
from ctxchat.core.events import Usage

MAX_HIDDEN_THOUGHT_TOKENS = 200_000
"""Tokens that a reply may hold beyond what was shown of it: what a model thought in silence."""

MAX_CALL_USD = 1_000
"""US dollars. A single call that is said to cost more is a mistake."""

MAX_TOKEN_USD = 0.01
"""US dollars a token, ten times what the dearest models take."""

MAX_EXTRAS_USD = 1.0
"""US dollars a call may cost beside its tokens (a search, an image)."""


def tokens(value: object) -> int:
    """A count as it came; 0 where it makes no sense."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return 0
    return int(value)


def dollars(value: object) -> float | None:
    """What something cost; None where that is no sensible amount: negative, NaN, or more than a call costs."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_CALL_USD:
        return None
    return float(value)


def sound(usage: Usage, sent: int, received: int) -> Usage:
    """The usage with figures that fit together, and fit what was `sent` (our raw tokens) and `received` (characters).

    Where prompt or completion cannot be true both are 0, which says that nothing was counted, and a cost made from them is 0
    too. If no counts were given, a plausible cost is kept: then the server named it itself.
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


def _cost(reported: object, tokens_of_it: int) -> float:
    cost = dollars(reported) or 0.0
    return cost if cost <= tokens_of_it * MAX_TOKEN_USD + MAX_EXTRAS_USD else 0.0
