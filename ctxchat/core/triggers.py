"""When a pass is due. Pure arithmetic on figures; whoever asks decides what to do about it."""

from __future__ import annotations

from typing import Literal

from ctxchat.core.figures import Figures
from ctxchat.core.sections import SectionName

Due = Literal["no", "prepare", "compact", "overhead"]

OVERHEAD: tuple[SectionName, ...] = ("system", "tools", "memory", "injected")
FIXED: tuple[SectionName, ...] = (*OVERHEAD, "pinned")
"""What no compaction can make smaller: the overhead, and what a person wants kept word for word."""


def overhead(figures: Figures) -> int:
    """Tokens around the conversation, which are in every request."""
    return sum(figures.tokens(name) for name in OVERHEAD)


def fixed(figures: Figures) -> int:
    """Tokens that no compaction can free."""
    return sum(figures.tokens(name) for name in FIXED)


def starts_at(figures: Figures) -> int:
    """Tokens in use from which the next message makes a pass start, or a question come; 0 where neither does."""
    automatic = figures.automatic
    if fixed(figures) >= figures.trigger_tokens or automatic.few or automatic.joins:
        return 0
    match automatic.standing:
        case "auto" | "asks":
            return figures.trigger_tokens
        case "snoozed":
            return max(figures.trigger_tokens, figures.limit + 1)
        case _:
            return 0


def due(figures: Figures, soft_mark: float = 0.60) -> Due:
    """Whether a pass should run before the next request.

    `overhead`: what cannot be compacted is above the trigger alone, so a pass would be in vain. `prepare`: past the soft mark
    (a share of the limit), where a summary is best made ahead.
    """
    used = figures.used - figures.tokens("draft")
    if used < figures.trigger_tokens:
        return "prepare" if used >= figures.limit * soft_mark else "no"
    return "overhead" if fixed(figures) >= figures.trigger_tokens else "compact"
