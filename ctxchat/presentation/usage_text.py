"""Writes figures as text: tokens, shares, money, times, and the gauge as words. Pure; knows no widget and no theme."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ctxchat.core.automatic import standing_words
from ctxchat.core.budget import WindowSource, WorkingLimitSource
from ctxchat.core.context_usage import OFFLINE_NAME, ContextUsage, fixed, overhead, starts_at
from ctxchat.core.quantities import brief as brief  # handed on: figures and their nouns go together
from ctxchat.core.quantities import count as count
from ctxchat.core.quantities import percent as percent
from ctxchat.core.quantities import server_cut
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.presentation.text import short


class PartStyle(msgspec.Struct, frozen=True):
    """The letter and the name by which one part of the context is shown everywhere."""

    letter: str
    label: str


PARTS: dict[SectionName, PartStyle] = {
    "system": PartStyle("S", "system"),
    "tools": PartStyle("T", "tools"),
    "memory": PartStyle("M", "memory"),
    "injected": PartStyle("I", "injected"),
    "summary": PartStyle("Σ", "summary"),
    "pinned": PartStyle("P", "pinned"),
    "user": PartStyle("U", "you"),
    "assistant": PartStyle("A", "answers"),
    "tool_results": PartStyle("R", "tool results"),
    "draft": PartStyle("~", "draft"),
    "reserved": PartStyle("▒", "reserved"),
    "free": PartStyle("·", "free"),
}

SOURCES: dict[WindowSource, str] = {
    "loaded": "from the server",
    "configured": "configured",
    "provider": "its provider's list",
    "catalogue": "catalogue",
    "learned": "learned from a rejection",
    "family": "as its family",
    "assumed": "assumed",
}

WORKING_LIMITS: dict[WorkingLimitSource, str] = {
    "configured": "context.working_limit",
    "price_step": "where the price rises",
    "large_window": "default for large windows",
}

_LEARNED: dict[WindowSource, str] = {
    "loaded": "which the server says it has loaded",
    "configured": "as configured",
    "provider": "from its provider's list",
    "catalogue": "from the catalogue",
    "learned": "learned from a rejection",
    "family": "which others of its family have; nobody lists this one",
    "assumed": "which is assumed, not known",
}

MINUS = "−"


def steady(n: int) -> str:
    """A number of tokens as by `brief`, but always with its decimal, `2.0k`, so that a growing number does not make its line
    jump."""
    text = short(n)
    return text if len(text) <= len("99.9k") else brief(n)


def exact(n: int) -> str:
    """A whole number with every digit, in groups of three: `21,304`."""
    return f"{n:,}".replace("-", MINUS)


def gain(n: int) -> str:
    """The tokens that a compaction frees, as a change: `−14.2k`; `0` for none, `+1.0k` if the context grew."""
    return f"{MINUS}{short(n)}" if n > 0 else f"+{short(-n)}" if n < 0 else "0"


def share(part: int, whole: int) -> str:
    """A part of a whole in percent; `0 %` if the whole is 0."""
    return f"{int(part * 100 / whole + 0.5)} %" if whole > 0 else "0 %"


def money(usd: float) -> str:
    """US dollars: `$0.04`, `<$0.01`, `$12.30`; `$0` for nothing."""
    if usd <= 0:
        return "$0"
    return f"${usd:,.2f}" if usd >= 0.01 else "<$0.01"


def about(amount: str) -> str:
    """An amount marked as an estimate: `≈ $0.04`; `<$0.01` stays as it is."""
    return amount if amount.startswith("<") else f"≈ {amount}"


def per_million(input_cost: float | None, output_cost: float | None) -> str:
    """The price of a million input and output tokens in US dollars: `3.00 / 15.00`, or `free`; empty if unknown."""
    if input_cost is None or output_cost is None:
        return ""
    return "free" if input_cost == output_cost == 0 else f"{input_cost:.2f} / {output_cost:.2f}"


def moment(at: str) -> datetime | None:
    """The time that an ISO 8601 text stands for (UTC if it names no zone); None if it is no time."""
    try:
        value = datetime.fromisoformat(at)
    except ValueError:
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def day_and_clock(at: str) -> str:
    """A stored time in the local zone: `21 Nov 14:02`; empty if it is no time."""
    value = moment(at)
    return value.astimezone().strftime("%d %b %H:%M").lstrip("0") if value else ""


def age(at: str, now: datetime) -> str:
    """How long ago a stored time was: `now`, `3 min`, `2 h`, `5 days`, then the date; empty if it is no time."""
    value = moment(at)
    if value is None:
        return ""
    minutes = (now - value).total_seconds() / 60
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes:.0f} min"
    if minutes < 24 * 60:
        return f"{minutes / 60:.0f} h"
    if minutes < 30 * 24 * 60:
        return count(round(minutes / 1440), "day")
    return value.astimezone().strftime("%d %b %Y").lstrip("0")


def is_measured(context_usage: ContextUsage) -> bool:
    """Whether the window is known, so that shares of it can be told."""
    return context_usage.window > 0 and context_usage.limit > 0


def tilde(context_usage: ContextUsage) -> str:
    """The mark before figures: `~` if they are estimated, else empty."""
    return "~" if context_usage.estimated else ""


def window_words(context_usage: ContextUsage) -> str:
    """The size of the window, and how it is known: `window 200k, catalogue`. `window 128k, not 200k` if a refused request named
    another size than was claimed, `window ≤131k, not 200k` if it only showed a bound, `window ≥41k, not 33k` if a request that
    was accepted showed that the assumed window was too small."""
    if not is_measured(context_usage):
        return "window unknown"
    if context_usage.claimed_window and context_usage.refused_window:
        return f"window ≤{brief(context_usage.refused_window)}, not {brief(context_usage.claimed_window)}"
    if 0 < context_usage.claimed_window < context_usage.window and context_usage.window_source == "assumed":
        return f"window ≥{brief(context_usage.window)}, not {brief(context_usage.claimed_window)}"
    if context_usage.claimed_window > context_usage.window:
        return f"window {brief(context_usage.window)}, not {brief(context_usage.claimed_window)}"
    return f"window {brief(context_usage.window)}, {SOURCES[context_usage.window_source]}"


def off_by(context_usage: ContextUsage) -> int:
    """Percent of the limit by which the used tokens may be wrong; 0 if that is below half a percent."""
    return round(100 * context_usage.band * context_usage.pressure)


def remarks(context_usage: ContextUsage) -> tuple[str, ...]:
    """The warning before the gauge's figures, longest first; empty if nothing is wrong. It has as many lengths as
    `gauge_words`."""
    if not is_measured(context_usage):
        return ()
    if context_usage.cut:
        cut = f"server cut ~{short(context_usage.cut)}"
        return (cut, cut, cut, "cut!")
    if fixed(context_usage) >= context_usage.trigger_tokens:
        if overhead(context_usage) >= context_usage.trigger_tokens:
            return ("too much overhead", "too much overhead", "overhead!", "!")
        return ("too many pins", "too many pins", "pins!", "!")
    if context_usage.automatic.stopped:
        return ("compaction stopped", "compaction stopped", "stopped", "!")
    if over := context_usage.over_budget:
        name, letter = PARTS[over[0].name].label, PARTS[over[0].name].letter
        if len(over) == 1:
            return (f"{name} over budget", f"{name} over budget", f"{name} over", f"{letter}!")
        return (
            f"{len(over)} parts over budget",
            f"{len(over)} parts over budget",
            f"{len(over)} over",
            f"{len(over)}!",
        )
    return ()


def break_words(context_usage: ContextUsage) -> str:
    """A sentence on what the next message costs because something sent before has changed: tokens that the server reads anew,
    money, and reasoning that is lost; empty if it costs nothing."""
    breaks, price = context_usage.breaks, context_usage.price
    if breaks is None or not (breaks.lost or breaks.thoughts) or context_usage.model == OFFLINE_NAME:
        return ""
    dearer = ""
    if price.cached:
        anew = breaks.kept * price.cached + breaks.lost * (price.written or price.input)
        dearer = f", {money(anew)} instead of {money((breaks.kept + breaks.lost) * price.cached)}"
    start = breaks.message or "the beginning"
    words = f"The server reads {short(breaks.lost)} tokens of the next message anew, from {start} on{dearer}"
    if breaks.thoughts:
        words += f"; the reasoning of {count(breaks.thoughts, 'reply', 'replies')} is not sent back any more"
    return f"{words} ({breaks.cause or 'the reason is not known'})."


def uncounted(context_usage: ContextUsage) -> bool:
    """Whether nothing has been counted yet, as in a session that was just opened: later there are instructions at least."""
    return not context_usage.used and context_usage.estimated


def gauge_words(context_usage: ContextUsage) -> tuple[str, ...]:
    """The text beside the bar in four lengths, the longest first: percent with its error, used and limit; the same shorter twice;
    percent alone. A warning (`remarks`) stands before it."""
    if uncounted(context_usage):
        return ("counting …", "counting …", "counting …", "…")
    sign = tilde(context_usage)
    if not is_measured(context_usage):
        return (
            f"{sign}{short(context_usage.used)} used, window unknown",
            f"{sign}{steady(context_usage.used)} of ?",
            "? %",
            "? %",
        )
    head = f"{sign}{percent(context_usage.pressure)}"
    band = f"{head[:-2]} ±{off} %" if (off := off_by(context_usage)) else head
    over = " over" if context_usage.used > context_usage.limit else ""
    said = (
        f"{band}{over}  {sign}{short(context_usage.used)}/{short(context_usage.limit)}",
        f"{band}{over}  {sign}{steady(context_usage.used)}/{brief(context_usage.limit)}",
        f"{head}{over}  {sign}{steady(context_usage.used)}/{brief(context_usage.limit)}",
        head,
    )
    amiss = remarks(context_usage)
    return tuple(f"{a}  {s}" for a, s in zip(amiss, (*said[:2], head, head), strict=True)) if amiss else said


def sentence(context_usage: ContextUsage) -> str:
    """The gauge as sentences, for a screen reader: how full it is and how sure that is, the window, the largest parts, warnings,
    and what comes next."""
    if uncounted(context_usage):
        return "What the context holds is being counted."
    about = "about " if context_usage.estimated else ""
    if not is_measured(context_usage):
        return f"{about}{short(context_usage.used)} tokens are used; the window is unknown.".capitalize()
    inside = [s for s in context_usage.sections if s.tokens > 0 and s.name not in ("reserved", "free")]
    inside.sort(key=lambda s: -s.tokens)
    largest = ", ".join(f"{PARTS[s.name].label} {short(s.tokens)}" for s in inside[:3])
    sure = f", give or take {off} percent" if (off := off_by(context_usage)) else ""
    believed = f" instead of {short(context_usage.claimed_window)}" if context_usage.claimed_window else ""
    turns = forecast_words(context_usage)
    return " ".join(
        [
            f"The context is {percent(context_usage.pressure)} full{sure}: "
            f"{about}{short(context_usage.used)} of {short(context_usage.limit)} tokens.",
            f"{short(context_usage.reserved_output)} more are reserved for the reply,",
            f"in a window of {_window_told(context_usage)}{believed}.",
            *([f"Largest: {largest}."] if largest else []),
            *([server_cut(context_usage.cut)] if context_usage.cut else []),
            *budget_words(context_usage),
            *_what_starts(context_usage),
            *([f"{turns[0].upper()}{turns[1:]}.".replace("~", "About ")] if turns else []),
        ]
    )


def _window_told(context_usage: ContextUsage) -> str:
    """The size of the window and how it is known; a bound is told as a bound."""
    if context_usage.refused_window:
        return (
            f"at most {short(context_usage.refused_window)}, taken for {short(context_usage.window)} since a rejection"
        )
    if context_usage.claimed_window and context_usage.window_source == "assumed":
        return f"at least {short(context_usage.window)}, as the server has taken so much,"
    return f"{short(context_usage.window)}, {_LEARNED[context_usage.window_source]}"


def _what_starts(context_usage: ContextUsage) -> tuple[str, ...]:
    """A sentence on when compaction starts by itself, or why it does not; empty if nothing needs saying."""
    if not context_usage.automatic.at_trigger:
        words = starts_words(context_usage)
        return (f"{words[0].upper()}{words[1:]}.",)
    if fixed(context_usage) >= context_usage.trigger_tokens:
        return ("Compaction cannot help.",)
    left, asks = context_usage.trigger_tokens - context_usage.used, context_usage.automatic.standing == "asks"
    if left > 0:
        why = (
            f" (at {short(context_usage.trigger_tokens)}, {why})" if (why := working_limit_words(context_usage)) else ""
        )
        return (f"Compaction {'asks' if asks else 'starts'} after {short(left)} more{why}.",)
    return ("Compaction is due, and asks first." if asks else "Compaction is due.",)


def budget_words(context_usage: ContextUsage) -> tuple[str, ...]:
    """A sentence for each part that is over its own budget: `Tool results 58.6k: 8.6k over the budget of 50.0k.`"""
    return tuple(
        f"{PARTS[s.name].label} {short(s.tokens)}: {short(s.over)} over the budget of {short(s.budget)}.".capitalize()
        for s in context_usage.over_budget
    )


def fit_words(used: int, limit: int) -> str:
    """Whether `used` tokens fit into a limit, in a few words; a limit of 0 is unknown."""
    if limit <= 0:
        return "not known"
    return f"fits, {percent(used / limit)}" if used <= limit else f"{short(used - limit)} over"


def part_words(context_usage: ContextUsage, name: SectionName) -> str:
    """One part in words: `tool results: ~58.6k tokens, 30 % of the limit`."""
    found = next((s for s in context_usage.sections if s.name == name), None)
    if found is None:
        return PARTS[name].label
    sign = "~" if found.estimated else ""
    of_limit = f", {share(found.tokens, context_usage.limit)} of the limit" if is_measured(context_usage) else ""
    over = f", {short(found.over)} over its budget" if found.over else ""
    return f"{PARTS[name].label}: {sign}{short(found.tokens)} tokens{of_limit}{over}"


def draft_words(context_usage: ContextUsage) -> str:
    """The effect of sending the draft: `this message +18k → 92 %, compaction would start`; empty without a draft."""
    draft = context_usage.tokens("draft")
    if draft <= 0:
        return ""
    if not is_measured(context_usage):
        return f"this message +{short(draft)}"
    ends = f"this message +{short(draft)} → {percent(context_usage.pressure)}"
    if context_usage.used > context_usage.limit:
        ends += f", over the limit by {short(context_usage.excess)}"
    if not starts_with_draft(context_usage):
        return ends
    return f"{ends}, {'you would be asked' if context_usage.automatic.by_word else 'compaction would start'}"


def starts_words(context_usage: ContextUsage) -> str:
    """The number of used tokens from which compaction starts: `compaction from 21.5k`, `compaction asks from 21.5k`; or why it
    does not start by itself."""
    if not context_usage.automatic.at_trigger:
        return standing_words(context_usage.automatic)
    asks = " asks" if context_usage.automatic.standing == "asks" else ""
    return f"compaction{asks} from {short(context_usage.trigger_tokens)}"


def working_limit_words(context_usage: ContextUsage) -> str:
    """Why compaction starts though the window would hold more: `default for large windows`; empty where it starts at the usual
    share of the limit, or not by itself."""
    if not context_usage.automatic.at_trigger or context_usage.trigger_tokens != context_usage.working_limit:
        return ""
    return WORKING_LIMITS.get(context_usage.working_limit_source, "")


def starts_with_draft(context_usage: ContextUsage) -> bool:
    """Whether sending the draft would make compaction start, or ask."""
    return 0 < starts_at(context_usage) <= context_usage.used


def forecast_words(context_usage: ContextUsage) -> str:
    """The number of turns until compaction at the present pace, or until the window is full where none starts by itself:
    `~6 turns until compaction`, `~4–9 turns until the window is full`; empty if that cannot be told."""
    if context_usage.forecast_span is None:
        return ""
    fewest, most = context_usage.forecast_span
    end = "compaction" if context_usage.automatic.at_trigger else "the window is full"
    return (
        f"~{f'{fewest}–' if fewest < most else ''}{count(most, 'turn')} until {end}" if most else f"no turn until {end}"
    )


assert tuple(PARTS) == SECTIONS, "the gauge's parts must stand in the order of the sections"
