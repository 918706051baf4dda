"""What the settings could do about how a session went, with its own figures. Pure; knows no screen.

The direction matters: who compacts too often needs room, so a *higher* trigger or a larger window, never a lower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from ctxchat.config.schema import ContextSettings
from ctxchat.core.context_usage import OVERHEAD, ContextUsage, overhead
from ctxchat.core.journal import SessionState
from ctxchat.core.record import CompactionRecord
from ctxchat.presentation.effects import with_marks
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import PARTS, count, percent, working_limit_words

MIN_TURNS_BETWEEN = 3
"""Fewer turns than this between two automatic compactions, on average, are too few."""

RECENT_TURNS = 12
"""Turns of the session that are looked at."""

HEAVY_SHARE = 0.3
"""Share of the limit from which what no compaction can free is worth a word."""

BY_ITSELF = frozenset({"auto", "reactive_micro", "reactive_full"})

LABELS: Mapping[str, str] = {name: part.label for name, part in PARTS.items()}


class Advice(msgspec.Struct, frozen=True):
    """A sentence or two, and the option it is about."""

    text: str
    key: str


WITHIN = frozenset({"reactive_micro", "reactive_full", "oversize"})
"""What is done between the rounds of a turn before a request could be refused."""


def advice(context_usage: ContextUsage, state: SessionState, context: ContextSettings) -> tuple[Advice, ...]:
    """What is worth saying, the most pressing first; nothing for a session that went well."""
    found = (_overflows(context_usage, state, context), _heavy(context_usage), _often(context_usage, state, context))
    return tuple(a for a in found if a)


def _overflows(context_usage: ContextUsage, state: SessionState, context: ContextSettings) -> Advice | None:
    refused = sum(
        p.reason == "context_overflow" and p.outcome == "compacted" and p.strategy not in WITHIN
        for p in state.compactions
    )
    if not refused:
        return None
    times = f"{count(refused, 'request')} here {'was' if refused == 1 else 'were'} too long for the server."
    if context_usage.window_source == "learned":
        held = (
            f"at most {short(context_usage.refused_window)}"
            if context_usage.refused_window
            else f"{short(context_usage.window)}, as learned"
        )
        remedy = f"Its window is {held}: set context.max_tokens = {context_usage.window}"
        return Advice(f"{times} {remedy}, and room is made in time in every session.", "context.max_tokens")
    lower = max(0.1, round(context.compression_trigger - 0.1, 2))
    at = with_marks(context_usage, compression_trigger=lower).trigger_tokens
    if (
        not context_usage.automatic.at_trigger or at >= context_usage.trigger_tokens
    ):  # a mark at which nothing happens, or one held lower
        return Advice(f"{times} Set context.max_tokens to what it really holds.", "context.max_tokens")
    remedy = f"Lower context.compression_trigger ({context.compression_trigger:g} → {lower:g}, at {short(at)})"
    return Advice(
        f"{times} {remedy}, or set context.max_tokens to what it really holds.", "context.compression_trigger"
    )


def _heavy(context_usage: ContextUsage) -> Advice | None:
    fixed = overhead(context_usage)
    if fixed < HEAVY_SHARE * context_usage.limit:
        return None
    parts = sorted(((context_usage.tokens(name), name) for name in OVERHEAD), reverse=True)
    named = ", ".join(f"{LABELS[name]} {short(tokens)}" for tokens, name in parts if tokens)
    over = (
        " That is above the trigger, so a compaction would not help." if fixed >= context_usage.trigger_tokens else ""
    )
    share = f"{short(fixed)} of {short(context_usage.limit)} ({percent(fixed / context_usage.limit)})"
    return Advice(
        f"No compaction can free {share}: {named}.{over} Fewer tools (an agent), shorter memory files, a larger window help.",
        "context.providers" if parts[0][1] == "injected" else "agent",
    )


def _often(context_usage: ContextUsage, state: SessionState, context: ContextSettings) -> Advice | None:
    if not (context_usage.automatic.at_trigger or context_usage.automatic.stopped):
        return None  # no more of them come
    now = len(state.fills)
    turns = [fills for fills, p in zip(state.endings, state.compactions, strict=False) if _by_itself(p)]
    lately = [turn for turn in turns if now - turn <= RECENT_TURNS]
    if len(lately) < 3 or _mean_gap(lately) >= MIN_TURNS_BETWEEN:
        return None
    said = f"{len(lately)} compactions in the last {count(now - lately[0] + 1, 'turn')}."
    higher = min(0.95, round(context.compression_trigger + 0.1, 2))
    at = with_marks(context_usage, compression_trigger=higher).trigger_tokens
    if at <= context_usage.trigger_tokens and (why := working_limit_words(context_usage)):
        return Advice(
            f"{said} The trigger stands at {short(at)} ({why}): a higher context.working_limit gives room.",
            "context.working_limit",
        )
    if at <= context_usage.trigger_tokens:
        return Advice(
            f"{said} The trigger is as high as this window of {short(context_usage.window)} allows: a larger window gives room.",
            "context.max_tokens",
        )
    remedy = (
        f"Raise context.compression_trigger ({context.compression_trigger:g} → {higher:g}, at {short(at)} instead of "
    )
    return Advice(
        f"{said} {remedy}{short(context_usage.trigger_tokens)}), or use a model with a larger window.",
        "context.compression_trigger",
    )


def _by_itself(one: CompactionRecord) -> bool:
    return one.outcome == "compacted" and one.reason in BY_ITSELF


def _mean_gap(turns: Sequence[int]) -> float:
    return sum(b - a for a, b in pairwise(turns)) / (len(turns) - 1)
