"""The line that tells the model how full its window is, once that matters. Decides nothing about compaction."""

from __future__ import annotations

from ctxchat.core.context_usage import ContextUsage, starts_at
from ctxchat.core.quantities import percent, short

BUDGET = "budget"
"""The source of what a model is told of its window."""

STEPS = (0.8, 0.9, 0.95)
"""Shares of the trigger at each of which there is something to say, once."""


def budget_note(context_usage: ContextUsage) -> tuple[str, str]:
    """Which step a request of so many tokens has reached, as a text that sorts by fullness, and the line about it; both empty
    while there is room enough, or where nobody knows how much there is."""
    reached = [step for step in STEPS if context_usage.used >= step * context_usage.trigger_tokens]
    if context_usage.window_source == "assumed" or not reached:
        return "", ""
    held = f"{short(context_usage.used)} of {short(context_usage.limit)} tokens"
    line = f"Your context window is about {percent(context_usage.pressure)} full ({held})."
    if 0 < (start := starts_at(context_usage)) <= context_usage.limit:  # above the limit where it is snoozed
        inside = f" from {percent(context_usage.automatic.inside)} on, and" if context_usage.automatic.inside else ""
        before = f"from {percent(start / context_usage.limit)} on before the user's next message"
        line += f" Older parts become a summary{inside} {before}; recall finds them."
    return f"{reached[-1]:.2f}", f"{line} Read in parts and keep what you need in your own words. This is no request."
