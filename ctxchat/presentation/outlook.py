"""Writes the line below the gauge: how far compaction is, how much is ready to be freed, how long the server holds the cache.
Pure."""

from __future__ import annotations

from ctxchat.core.automatic import standing_words
from ctxchat.core.context_usage import ContextUsage, fixed, starts_at
from ctxchat.presentation.cache_text import state_words
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import is_measured, uncounted


def outlook(context_usage: ContextUsage, ghost: int, now: float, key: str) -> tuple[str, ...]:
    """The parts of the line, the most important first: `1.1k until compaction (26.9k)`, `14.6k ready to free F8`, `warm 41 min`.
    `ghost` is what a prepared compaction would leave in tokens, 0 for none; `now` a second of the epoch; `key` the one that makes
    room, empty for none."""
    if not is_measured(context_usage) or uncounted(context_usage):
        return ()
    ready = (
        f"{short(context_usage.used - ghost)} ready to free {key}".rstrip() if 0 < ghost < context_usage.used else ""
    )
    return tuple(filter(None, (_compaction(context_usage, key), ready, state_words(context_usage.cache, now))))


def _compaction(context_usage: ContextUsage, key: str) -> str:
    """The text on how far compaction is, or why none comes."""
    if (over := context_usage.used - context_usage.limit) > 0:
        return f"{short(over)} too much{f': {key} makes room' if key else ''}"
    if fixed(context_usage) >= context_usage.trigger_tokens:
        return "what is always in the window leaves no room: compaction cannot help"
    if not context_usage.automatic.at_trigger:
        return standing_words(context_usage.automatic)
    at, asks = starts_at(context_usage) or context_usage.trigger_tokens, context_usage.automatic.standing == "asks"
    if (left := at - context_usage.used) > 0:
        return f"{short(left)} until {'you are asked to compact' if asks else 'compaction'} ({short(at)})"
    return "you are asked to compact with the next message" if asks else "compaction is due"
