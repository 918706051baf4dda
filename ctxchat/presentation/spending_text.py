"""Writes the cost of a session as text: for what, by model, day and turn. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxchat.core.errors import UsageError
from ctxchat.core.journal import SessionState
from ctxchat.core.limits import SCOPES, Limit, Scope
from ctxchat.presentation.fill import bar
from ctxchat.presentation.text import one_line
from ctxchat.presentation.usage_text import money

MAX_LIMIT = 1_000_000_000
"""US dollars, or tokens."""

MAX_MODEL_CHARS = 60
"""Characters of a model's name that are shown."""


def spending_lines(state: SessionState) -> tuple[str, ...]:
    """A line each for the sum and what it was for, the models, the days, and the last turns."""
    spending = state.spending
    if not state.cost_usd:
        return ("No cost of this session is known.",)
    parts = _parts(spending.by_purpose) if len(spending.by_purpose) > 1 else next(iter(spending.by_purpose), "")
    lines = [f"This session has cost {money(state.cost_usd)}{f': {parts}' if parts else ''}."]
    lines += [f"By model: {_parts(spending.by_model)}."]
    if len(spending.by_day) > 1:
        lines.append(f"By day (UTC): {_parts(dict(sorted(spending.by_day.items(), reverse=True)))}.")
    if spending.turns:
        lines.append(_turns(spending.turns, spending.open))
    return tuple(lines)


def _turns(turns: Sequence[float], since: float) -> str:
    """The last turn, what came since, and those before it as bars: a row of figures says nothing."""
    *before, last = turns
    line = f"The last turn cost {money(last)}{f', and {money(since)} since' if since else ''}."
    if not before:
        return line
    low, high = money(min(turns)), money(max(turns))
    each = f"{low} each" if low == high else f"{low} to {high}"
    bars = "".join(bar(round(usd * 1_000_000), round(max(turns) * 1_000_000)) for usd in turns)
    return f"{line} The last {len(turns)}: {bars}  {each}."


def limit_lines(limits: Sequence[Limit]) -> tuple[str, ...]:
    """A line for each limit that is set."""
    if not limits:
        return ("No limit is set. `/limit session 5` sets one for this session, [limits] in the settings for good.",)
    return tuple(f"{limit.words}." for limit in limits)


def wanted_limit(text: str) -> tuple[Scope, float, bool]:
    """`session 5`, `day $2.50`, `turn 200,000 tokens`: which limit, how much, and whether that is tokens instead of US dollars.
    Raises UsageError."""
    scope, _, amount = text.strip().partition(" ")
    in_tokens = amount.endswith("tokens")
    try:
        most = wanted_amount(amount.removesuffix("tokens"))
        if scope in SCOPES and not (in_tokens and scope == "day"):
            return scope, most, in_tokens
    except UsageError:
        pass
    raise UsageError(
        f"{one_line(text, 40)} is no limit.",
        "Say `turn`, `session` or `day`, then US dollars, or a number and `tokens` for a turn or session; 0 for none.",
    )


def wanted_amount(text: str) -> float:
    """`5`, `$2.50`, `200,000`: US dollars or tokens. Raises UsageError."""
    try:
        amount = float(text.strip().removeprefix("$").replace(",", ""))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < MAX_LIMIT:
        raise UsageError(f"{one_line(text, 40)} is no amount.", "Write a number, like 5; 0 for no limit.")
    return amount


def _parts(sums: Mapping[str, float]) -> str:
    return ", ".join(f"{one_line(name, MAX_MODEL_CHARS) or 'unknown'} {money(usd)}" for name, usd in sums.items())
