"""What is amiss with a window, in sentences: a prompt its server cut, a part over its budget, overhead or pins that no
compaction can help with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.automatic import AGAIN, standing_words
from ctxchat.core.context_usage import FIXED, OVERHEAD, Figures, fixed, inside_tokens, overhead
from ctxchat.core.quantities import server_cut
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.core.view import View
from ctxchat.presentation.cache_text import held_words
from ctxchat.presentation.inventory import Row, offenders
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import break_words, budget_words, known, money, starts_words

TALK: tuple[SectionName, ...] = tuple(name for name in SECTIONS if name not in OVERHEAD)
"""Parts that are the conversation's."""

NAMED = 3
"""The biggest parts that an alarm names."""


def alarms(figures: Figures, view: View) -> dict[str, str]:
    """A sentence or two for each thing that is amiss, the weightiest first; by `cut`, `fixed`, `stopped`,
    `breaks` (what the next message costs because what was sent has changed), or the name of a part."""
    budgets = zip(figures.over_budget, budget_words(figures), strict=True)
    cut = {"cut": server_cut(figures.cut)} if figures.cut else {}
    stopped = (
        {"stopped": f"{_capital(standing_words(figures.automatic))}. {AGAIN}"} if figures.automatic.stopped else {}
    )
    breaks = {"breaks": words} if (words := break_words(figures)) else {}
    over = {section.name: words for section, words in budgets}
    return cut | _in_vain(figures, view) | stopped | breaks | over


def _in_vain(figures: Figures, view: View) -> dict[str, str]:
    """Names what fills the window where compaction cannot help, with what it costs where that is known."""
    held = fixed(figures)
    if not known(figures) or held < figures.trigger_tokens:
        return {}
    pins = overhead(figures) < figures.trigger_tokens
    who = "Pinned messages with system, tools and memory" if pins else "System, tools and memory alone"
    text = f"{who} hold {short(held)} of {short(figures.limit)}: compaction cannot help."
    if figures.price.input:
        text += f" They cost {money(held * figures.price.input)} a request."
    parts = offenders(view, figures, NAMED, FIXED)
    text += f" Biggest: {', '.join(_priced(row, figures.price.input) for row in parts)}."
    return {"fixed": f"{text} Unpin some in the x-ray." if pins else text}


def _priced(row: Row, price: float) -> str:
    cost = f" ({money(row.tokens * price)})" if row.tokens * price >= 0.005 else ""
    return f"{_named(row)} {short(row.tokens)}{cost}"


def _named(row: Row) -> str:
    """A part of what is fixed by name: a tool's, a file's, the system prompt, the beginning of a message."""
    if row.section == "tools":
        return row.what.split(":")[0]
    if row.section == "pinned":
        return f"“{row.what[:24].rstrip()}”"
    return "system prompt" if row.section == "system" else row.source


def cached_words(figures: Figures) -> str:
    """`cached 33 %, $0.02 saved a request`; empty where nothing was cached."""
    if not figures.cached or not figures.used:
        return ""
    cached = min(figures.cached, figures.used)
    share = f"cached {cached * 100 // figures.used} %"
    return f"{share}, {money(figures.saved)} saved a request" if figures.saved > 0 else share


def _marks(figures: Figures) -> list[str]:
    """Where compaction starts and ends, or why it does not start by itself."""
    automatic, words = figures.automatic, starts_words(figures)
    if automatic.stopped:
        return []  # an alarm says so
    if not automatic.at_trigger:
        return [words]
    inside = int(inside_tokens(figures, automatic.inside))
    within = [f"  inside a turn from {short(inside)}"] if inside else []
    return [f"╷ {words}", *within, f"╎ down to {short(figures.target_tokens)}"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def legend(figures: Figures, now: float) -> Sequence[str]:
    """What the marks on the bar stand for, one a line: those that are on it at that second of the epoch."""
    if not known(figures):
        return ()
    lines = _marks(figures)
    if figures.claimed_window > figures.window:
        guess = f"~{short(figures.window)} (refused {short(figures.refused_window)})" if figures.refused_window else ""
        lines.append(f"┃ learned limit {guess or short(figures.window)}, not {short(figures.claimed_window)}")
    if figures.cache.hold(now):
        lines.append(f"◂ {held_words(figures.cache, now)}")
    if figures.price_step and figures.price_step.above < figures.limit:
        lines.append(f"¦ above {short(figures.price_step.above)} all costs ×{figures.price_step.times:g}")
    if figures.band:
        lines.append(f": perhaps used, ±{short(round(figures.band * figures.used))}")
    return lines
