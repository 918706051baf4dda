"""What comes next for the window, in a line below the gauge: how far compaction is, what stands ready to be freed, how long the
server holds the cache. Pure."""

from __future__ import annotations

from ctxchat.core.automatic import standing_words
from ctxchat.core.context_usage import Figures, fixed, starts_at
from ctxchat.presentation.cache_text import state_words
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import known, uncounted


def outlook(figures: Figures, ghost: int, now: float, key: str) -> tuple[str, ...]:
    """The parts of the line, the most important first: `1.1k until compaction (26.9k)`, `14.6k ready to free F8`, `warm 41 min`.
    `ghost` is what a prepared compaction would leave in tokens, 0 for none; `now` a second of the epoch; `key` the one that makes
    room, empty for none."""
    if not known(figures) or uncounted(figures):
        return ()
    ready = f"{short(figures.used - ghost)} ready to free {key}".rstrip() if 0 < ghost < figures.used else ""
    return tuple(filter(None, (_compaction(figures, key), ready, state_words(figures.cache, now))))


def _compaction(figures: Figures, key: str) -> str:
    """How far compaction is, or why none comes."""
    if (over := figures.used - figures.limit) > 0:
        return f"{short(over)} too much{f': {key} makes room' if key else ''}"
    if fixed(figures) >= figures.trigger_tokens:
        return "what is always in the window leaves no room: compaction cannot help"
    if not figures.automatic.at_trigger:
        return standing_words(figures.automatic)
    at, asks = starts_at(figures) or figures.trigger_tokens, figures.automatic.standing == "asks"
    if (left := at - figures.used) > 0:
        return f"{short(left)} until {'you are asked to compact' if asks else 'compaction'} ({short(at)})"
    return "you are asked to compact with the next message" if asks else "the next message compacts first"
