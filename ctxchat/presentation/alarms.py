"""What is amiss with a window, in sentences: a prompt its server cut, a part over its budget, overhead or pins that no
compaction can help with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.automatic import AGAIN, standing_words
from ctxchat.core.context_usage import FIXED, OVERHEAD, ContextUsage, fixed, inside_tokens, overhead
from ctxchat.core.quantities import server_cut
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.core.view import View
from ctxchat.presentation.cache_text import held_words
from ctxchat.presentation.inventory import Row, offenders
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import (
    break_words,
    budget_words,
    is_measured,
    money,
    starts_words,
    working_limit_words,
)

CHANGEABLE: tuple[SectionName, ...] = tuple(name for name in SECTIONS if name not in OVERHEAD or name == "memory")
"""Parts whose messages and files a person can make smaller."""

MAX_NAMED_PARTS = 3
"""The biggest parts that an alarm names."""


def alarms(context_usage: ContextUsage, view: View) -> dict[str, str]:
    """A sentence or two for each thing that is amiss, the weightiest first; by `cut`, `fixed`, `stopped`,
    `breaks` (what the next message costs because what was sent has changed), or the name of a part."""
    budgets = zip(context_usage.over_budget, budget_words(context_usage), strict=True)
    cut = {"cut": server_cut(context_usage.cut)} if context_usage.cut else {}
    stopped = (
        {"stopped": f"{_capital(standing_words(context_usage.automatic))}. {AGAIN}"}
        if context_usage.automatic.stopped
        else {}
    )
    breaks = {"breaks": words} if (words := break_words(context_usage)) else {}
    over = {section.name: words for section, words in budgets}
    return cut | _in_vain(context_usage, view) | stopped | breaks | over


def _in_vain(context_usage: ContextUsage, view: View) -> dict[str, str]:
    """Names what fills the window where compaction cannot help, with what it costs where that is known."""
    held = fixed(context_usage)
    if not is_measured(context_usage) or held < context_usage.trigger_tokens:
        return {}
    pins = overhead(context_usage) < context_usage.trigger_tokens
    who = "Pinned messages with system, tools and memory" if pins else "System, tools and memory alone"
    text = f"{who} hold {short(held)} of {short(context_usage.limit)}: compaction cannot help."
    if context_usage.price.input:
        text += f" They cost {money(held * context_usage.price.input)} a request."
    parts = offenders(view, context_usage, MAX_NAMED_PARTS, FIXED)
    text += f" Biggest: {', '.join(_priced(row, context_usage.price.input) for row in parts)}."
    return {"fixed": f"{text} Unpin some in the x-ray." if pins else text}


def _priced(row: Row, price: float) -> str:
    cost = f" ({money(row.tokens * price)})" if row.tokens * price >= 0.005 else ""
    return f"{_row_name(row)} {short(row.tokens)}{cost}"


def _row_name(row: Row) -> str:
    """A part of what is fixed by name: a tool's, a file's, the system prompt, the beginning of a message."""
    if row.section == "tools":
        return row.what.split(":")[0]
    if row.section == "pinned":
        return f"“{row.what[:24].rstrip()}”"
    return "system prompt" if row.section == "system" else row.source


def cached_words(context_usage: ContextUsage) -> str:
    """`cached 33 %, $0.02 saved a request`; empty where nothing was cached."""
    if not context_usage.cached or not context_usage.used:
        return ""
    cached = min(context_usage.cached, context_usage.used)
    share = f"cached {cached * 100 // context_usage.used} %"
    return f"{share}, {money(context_usage.saved)} saved a request" if context_usage.saved > 0 else share


def _marks(context_usage: ContextUsage) -> list[str]:
    """Where compaction starts and ends, or why it does not start by itself."""
    automatic, words = context_usage.automatic, starts_words(context_usage)
    if automatic.stopped:
        return []  # an alarm says so
    if automatic.resumes:
        return [
            words,
            f"╷ then from {short(context_usage.trigger_tokens)}",
            f"╎ down to {short(context_usage.target_tokens)}",
        ]
    if not automatic.at_trigger:
        return [words]
    inside = int(inside_tokens(context_usage, automatic.inside))
    within = [f"  inside a turn from {short(inside)}"] if inside else []
    why = [f"  {why}"] if (why := working_limit_words(context_usage)) else []
    return [f"╷ {words}", *why, *within, f"╎ down to {short(context_usage.target_tokens)}"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def legend(context_usage: ContextUsage, now: float) -> Sequence[str]:
    """What the marks on the bar stand for, one a line: those that are on it at that second of the epoch."""
    if not is_measured(context_usage):
        return ()
    lines = _marks(context_usage)
    if context_usage.claimed_window > context_usage.window:
        guess = (
            f"~{short(context_usage.window)} (refused {short(context_usage.refused_window)})"
            if context_usage.refused_window
            else ""
        )
        lines.append(
            f"┃ learned limit {guess or short(context_usage.window)}, not {short(context_usage.claimed_window)}"
        )
    if context_usage.cache.held_at(now):
        lines.append(f"◂ {held_words(context_usage.cache, now)}")
    if context_usage.price_step and context_usage.price_step.above < context_usage.limit:
        lines.append(f"¦ above {short(context_usage.price_step.above)} all costs ×{context_usage.price_step.times:g}")
    if context_usage.band:
        lines.append(f": perhaps used, ±{short(round(context_usage.band * context_usage.used))}")
    return lines
