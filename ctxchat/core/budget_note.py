"""The line that tells the model how full its window is, once that matters. Decides nothing about compaction."""

from __future__ import annotations

from ctxchat.core.figures import Figures, starts_at
from ctxchat.core.words import percent, short

FROM = 0.8
"""Share of the trigger from which there is something to say."""


def budget_note(figures: Figures) -> str:
    """The line about a request that holds so much; empty while there is room enough, or where nobody knows how much there is."""
    if figures.window_source == "assumed" or figures.used < FROM * figures.trigger_tokens:
        return ""
    held = f"{short(figures.used)} of {short(figures.limit)} tokens"
    line = f"Your context window is about {percent(figures.pressure)} full ({held})."
    if 0 < (start := starts_at(figures)) <= figures.limit:  # above the limit where it is snoozed
        inside = f" from {percent(figures.automatic.inside)} on, and" if figures.automatic.inside else ""
        before = f"from {percent(start / figures.limit)} on before the user's next message"
        line += f" Older parts become a summary{inside} {before}; recall finds them."
    return f"{line} Read in parts and keep what you need in your own words. This is no request."
